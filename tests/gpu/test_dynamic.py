"""Dynamic mode on a GPU: transfers, operators, streams, errors."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace.errors import MisusedArgumentError

MODES = list(ndd.EvalMode)


@pytest.fixture(autouse=True)
def own_context(gpu_runtime):
    with ndd.EvalContext(num_threads=2, device_id=0):
        yield


def ragged():
    return [np.arange(6 * (k + 2), dtype=np.float32).reshape(k + 2, 6) for k in range(4)]


def images():
    draw = np.random.default_rng(1)
    return [draw.integers(0, 256, (9 + k, 12, 3), dtype=np.uint8) for k in range(4)]


def host(batch):
    return [np.asarray(t) for t in batch.cpu().tensors]


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_there_and_back(mode):
    with mode:
        there = ndd.batch(ragged(), layout="XY").gpu()
        assert there.device == ndd.Device("gpu", 0)
        assert there.gpu() is there
        back = there.cpu()
        assert back.device == ndd.Device.CPU
        assert back.layout == there.layout == "XY"
        assert there.shape == [s.shape for s in ragged()]
        for got, want in zip(back.tensors, ragged(), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)
        single = ndd.tensor(ragged()[1]).gpu()
        assert single.shape == (3, 6)
        np.testing.assert_array_equal(np.asarray(single.cpu()), ragged()[1])


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_a_chain_is_what_the_cpu_gives(mode):
    def chain(x):
        x = x * 2 + 1
        y = ndd.cast(x, dtype=ndd.int32)
        return ndd.cast(y.slice[:, 1:4] - 3, dtype=ndd.float32)

    want = host(chain(ndd.batch(ragged())))
    with mode:
        there = ndd.batch(ragged()).gpu()
        for _ in range(3):
            got = chain(there)
            assert got.device.device_type == "gpu"
            for one, other in zip(host(got), want, strict=True):
                np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_the_cpu_goes_on_behind_the_gpu(mode):
    with mode:
        x = ndd.batch(ragged())
        y = (x.gpu() * 2).cpu() + 1
        z = (y.gpu() + y.gpu()).cpu()
        for got, want in zip(host(z), ragged(), strict=True):
            np.testing.assert_array_equal(got, 2 * (2 * want + 1))


def test_images():
    x = ndd.batch(images(), layout="HWC")
    arguments = {"crop": [5, 6], "mean": [1.0, 2.0, 3.0], "output_layout": "CHW"}
    mirror = ndd.batch([0, 1, 1, 0])
    want = ndd.crop_mirror_normalize(x, mirror=mirror, **arguments)
    got = ndd.crop_mirror_normalize(x.gpu(), mirror=mirror, **arguments)
    assert got.layout == want.layout == "CHW"
    for one, other in zip(host(got), host(want), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_parts():
    there = ndd.batch(ragged()).gpu()
    np.testing.assert_array_equal(np.asarray(there.tensors[2].cpu()), ragged()[2])
    some = there.select([3, 1])
    assert some.shape == [(5, 6), (3, 6)]
    for got, want in zip(host(some), [ragged()[3], ragged()[1]], strict=True):
        np.testing.assert_array_equal(got, want)
    again = ndd.as_batch([there.tensors[0], there.tensors[1]])
    assert again.device.device_type == "gpu"
    np.testing.assert_array_equal(host(again)[1], ragged()[1])
    same = ndd.Batch.broadcast(there.tensors[0], 3)
    assert [s.tolist() for s in host(same + 1)] == [(ragged()[0] + 1).tolist()] * 3
    stacked = ndd.tensor(ndd.Batch.broadcast(ndd.tensor([1.0, 2.0]).gpu(), 2) * 1)
    assert np.asarray(stacked.cpu()).tolist() == [[1.0, 2.0]] * 2
    split = ndd.batch(stacked)
    assert [s.tolist() for s in host(split)] == [[1.0, 2.0]] * 2


def test_copies():
    there = ndd.tensor([1.0, 2.0], device="gpu")
    assert there.device == ndd.Device("gpu:0")
    other = there.to_device("gpu", force_copy=True)
    assert other is not there
    assert np.asarray(other.cpu()).tolist() == [1.0, 2.0]
    assert ndd.tensor(there).shape == (2,)
    assert ndd.tensor(there, dtype=ndd.int32).dtype == ndd.int32
    assert "gpu" in repr(there)
    assert "1." in repr(there)
    assert there.item if there.size == 1 else True
    assert (there + 1)[0].item() == 2.0


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_devices_do_not_mix(mode):
    with mode:
        here, there = ndd.tensor([1.0]), ndd.tensor([1.0]).gpu()
        with pytest.raises(MisusedArgumentError, match="Cannot mix GPU and CPU inputs"):
            here + there
        with pytest.raises(MisusedArgumentError, match="Cannot mix GPU and CPU inputs"):
            there + np.ones(1, np.float32)
        with pytest.raises(MisusedArgumentError, match="Cannot mix GPU and CPU inputs"):
            ndd.cast_like(there, here.gpu(), device="cpu") + ndd.cast(there, dtype=ndd.int32)
        assert (there + 1).cpu().item() == 2.0
        two = [2.0]
        assert (there + two).cpu().item() == 3.0


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_data_goes_where_an_operator_is_told_to_run(mode):
    with mode:
        here, there = ndd.tensor([1.5]), ndd.tensor([1.5]).gpu()
        for data in (here, there):
            for device in ("cpu", "gpu", ndd.Device("gpu:0")):
                found = ndd.cast(data, dtype=ndd.int32, device=device)
                assert found.device.device_type == str(device)[:3]
                assert found.cpu().item() == 2
        image = ndd.tensor(images()[0], layout="HWC")
        bright = ndd.brightness(image.gpu(), brightness=ndd.tensor(2.0).gpu())
        want = ndd.brightness(image, brightness=2.0)
        np.testing.assert_array_equal(np.asarray(bright.cpu()), np.asarray(want))


def test_random_numbers_depend_on_the_generator():
    def drawn(rng):
        batch = ndd.random.uniform(range=[0, 1], shape=[5], batch_size=3, rng=rng, device="gpu")
        assert batch.device.device_type == "gpu"
        return np.array(host(batch))

    rng = ndd.random.RNG(3)
    first, second = drawn(rng), drawn(rng)
    assert len({*first.reshape(-1), *second.reshape(-1)}) == 30
    assert np.array_equal(drawn(ndd.random.RNG(3)), first)
    with ndd.EvalMode.deferred:
        assert np.array_equal(drawn(ndd.random.RNG(3)), first)


def test_streams():
    stream = ndd.stream(device_id=0)
    assert stream == ndd.Stream(stream=stream.handle, device_id=0)
    assert hash(stream) == hash(ndd.Stream(stream=stream))
    with ndd.EvalContext(num_threads=1, device_id=0, cuda_stream=stream) as context:
        assert context.cuda_stream is stream
        result = ndd.batch(ragged()).gpu() + 1
        np.testing.assert_array_equal(host(result)[0], ragged()[0] + 1)
        assert context._evaluator._stream_executor.stream == stream.handle
    stream.synchronize()
    with ndd.EvalContext(num_threads=1, device_id=0) as context:
        assert context.cuda_stream.handle != stream.handle
        assert context.cuda_stream is context.cuda_stream


def test_an_error_on_the_gpu_comes_up_at_the_use():
    there = ndd.batch(ragged()).gpu()
    bad = there.slice[5, 0]
    fine = there + 1
    with pytest.raises(IndexError, match="out of range"):
        bad.evaluate()
    np.testing.assert_array_equal(host(fine)[0], ragged()[0] + 1)


@pytest.mark.parametrize("mode", [ndd.EvalMode.eager, ndd.EvalMode.sync_cpu], ids=lambda m: m.name)
def test_an_error_of_a_sample_on_the_gpu_names_operator_sample_and_line(mode):
    with mode:
        there = ndd.batch(ragged()).gpu()
        with pytest.raises(IndexError) as caught:
            ndd.slice(there, start=[2], shape=[3], axes=[0]).evaluate()
    assert "`ndd.slice`, at sample 0 of the batch, created at" in str(caught.value)
    assert __file__ in str(caught.value)


def test_numbers_that_change_need_no_new_kernels(gpu_runtime):
    there = ndd.batch(ragged()).gpu()
    for k in range(40):
        got = host(there * (0.5 * k) + k)
        np.testing.assert_array_equal(got[1], ragged()[1] * np.float32(0.5 * k) + np.float32(k))


def test_decoders_take_files_on_the_cpu_and_make_images_on_the_gpu():
    import cv2

    smooth = [cv2.GaussianBlur(image, (0, 0), 3) for image in images()]
    files = ndd.batch([cv2.imencode(".png", image)[1].reshape(-1) for image in smooth])
    there = ndd.decoders.image(files, device="gpu")
    assert there.device.device_type == "gpu"
    assert there.layout == "HWC"
    for got, image in zip(host(there), smooth, strict=True):
        assert np.array_equal(got, image[..., ::-1])
    small = ndd.resize(there, size=[6, 6])
    assert small.shape == [(6, 6, 3)] * 4
    bad = ndd.decoders.image(ndd.batch([np.zeros(9, np.uint8)]), device="gpu")
    with pytest.raises(RuntimeError, match="sample 0"):
        bad.evaluate()


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_warps_by_matrices_on_either_device(mode):
    maps = [np.array([[0.9, 0.2, k], [-0.1, 1.1, 1]], np.float32) for k in range(4)]
    want = host(ndd.warp_affine(ndd.batch(images(), layout="HWC"), ndd.batch(maps)))
    with mode:
        there = ndd.batch(images(), layout="HWC").gpu()
        for given in (ndd.batch(maps), ndd.batch(maps).gpu()):
            warped = ndd.warp_affine(there, given)
            whole = ndd.cast(ndd.flip(warped), dtype=ndd.float32)
            for got, turned, expected in zip(host(warped), host(whole), want, strict=True):
                np.testing.assert_array_equal(got, expected)
                np.testing.assert_array_equal(turned, expected[:, ::-1].astype(np.float32))
        by_argument = ndd.warp_affine(there, matrix=ndd.batch(maps))
        for got, expected in zip(host(by_argument), want, strict=True):
            np.testing.assert_array_equal(got, expected)
