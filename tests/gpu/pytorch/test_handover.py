"""PyTorch on a real GPU reads the engine's memory: once it is written, before it is used anew."""

from __future__ import annotations

import gc

import numpy as np
import pytest

from headrace import Pipeline, fn, types

torch = pytest.importorskip("torch")

from headrace.plugin.pytorch import (  # noqa: E402 - where there is PyTorch
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    feed_ndarray,
)
from headrace.plugin.pytorch.fn import torch_python_function  # noqa: E402
from headrace.plugin.pytorch.torch_utils import to_torch_tensor  # noqa: E402

pytestmark = pytest.mark.gpu

SHAPE = (256, 256, 3)
BATCH = 8
SLOW_CYCLES = 20_000_000
"""About 10 ms of a GPU's time."""


@pytest.fixture(autouse=True)
def _real(gpu_runtime):
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")


def batch(k):
    """Batch number `k`: its samples hold nothing but numbers that tell which they are."""
    first = k * BATCH % 200
    return np.stack([np.full(SHAPE, first + i, np.uint8) for i in range(BATCH)])


def pipeline(*, depth=2, device_id=0, count=None, offset=0):
    def source(k):
        if count is not None and k >= count:
            raise StopIteration
        return batch(k + offset)

    pipe = Pipeline(BATCH, 2, device_id, prefetch_queue_depth=depth)
    with pipe:
        images = fn.external_source(source=source, layout="HWC").gpu()
        pipe.set_outputs(images, fn.cast(images, dtype=types.FLOAT))
    return pipe


def iterator(**arguments):
    return DALIGenericIterator(pipeline(**arguments), ["image", "real"])


def assert_batch(step, k):
    assert torch.equal(step["image"], torch.from_numpy(batch(k)).to(step["image"].device))
    assert torch.equal(step["real"].to(torch.uint8), step["image"])


def test_values():
    it = iterator(count=20)
    for k, (step,) in enumerate(it):
        assert step["image"].is_cuda
        assert (step["image"].dtype, step["real"].dtype) == (torch.uint8, torch.float32)
        assert_batch(step, k)
    assert k == 19


def test_memory_is_shared():
    pipe = pipeline()
    image, real = pipe.run()
    assert to_torch_tensor(image).data_ptr() == image.data_ptr()
    assert to_torch_tensor(real).data_ptr() == real.data_ptr()
    assert to_torch_tensor(real, copy=True).data_ptr() != real.data_ptr()


@pytest.mark.parametrize("side", [False, True])
def test_memory_is_not_used_anew_while_a_slow_kernel_has_yet_to_read_it(side):
    """The program lets go of each batch while the stream is far from reading it."""
    stream = torch.cuda.Stream() if side else torch.cuda.default_stream()
    it = iterator(depth=3)
    sums = []
    with torch.cuda.stream(stream):
        for _ in range(30):
            torch.cuda._sleep(SLOW_CYCLES)
            step = next(it)[0]
            sums.append(step["image"].sum(dim=(1, 2, 3), dtype=torch.int64))
            del step
    torch.cuda.synchronize()
    for k, found in enumerate(sums):
        expected = batch(k).sum(axis=(1, 2, 3), dtype=np.int64)
        assert found.tolist() == expected.tolist(), f"batch {k}"


def test_nobody_waits_on_the_host():
    """Taking batches takes no time, although the stream that uses them is busy for long."""
    import time

    it = iterator(depth=2)
    for _ in range(5):  # everything is compiled and all memory is there
        next(it)
    torch.cuda.synchronize()
    torch.cuda._sleep(50 * SLOW_CYCLES)  # half a second
    begin = time.perf_counter()
    steps = [next(it)[0] for _ in range(3)]
    taken = time.perf_counter() - begin
    busy = not torch.cuda.default_stream().query()
    torch.cuda.synchronize()
    assert busy, f"taking batches lasted until the stream was through: {taken:.3f} s"
    for k, step in enumerate(steps):
        assert_batch(step, 5 + k)


def test_kept_batches_keep_their_values():
    it = iterator(depth=2)
    kept = [next(it)[0] for _ in range(12)]
    for k, step in enumerate(kept):
        assert_batch(step, k)
    views = [step["image"][1:2, ::2] for step in kept]
    del kept, step
    gc.collect()
    for _ in range(12):
        next(it)
    for k, view in enumerate(views):
        assert (view == batch(k)[1, 0, 0, 0]).all()


def test_memory_does_not_grow():
    from headrace.tensors.gpu.device import get_device

    it = iterator(depth=2)
    for _ in range(20):
        next(it)
    torch.cuda.synchronize()
    before = get_device(0).memory.bytes_allocated
    for _ in range(100):
        next(it)
        torch.cuda.synchronize()
    assert get_device(0).memory.bytes_allocated <= before * 1.5


@pytest.mark.filterwarnings("ignore:An iterator with `size`")
def test_several_pipelines():
    pipelines = [pipeline(offset=3 * k) for k in range(3)]
    it = DALIGenericIterator(pipelines, ["image", "real"], size=3 * BATCH * 10)
    for k, steps in enumerate(it):
        assert len(steps) == 3
        for number, step in enumerate(steps):
            assert_batch(step, k + 3 * number)
    assert k == 9


@pytest.mark.filterwarnings("ignore:An iterator with `size`")
def test_a_pipeline_for_each_gpu():
    count = torch.cuda.device_count()
    if count < 2:
        pytest.skip("one GPU")
    from headrace.tensors.gpu.runtime import install_runtime

    install_runtime(None)  # the fixture has one GPU only
    pipelines = [pipeline(device_id=k, offset=k) for k in range(count)]
    it = DALIGenericIterator(pipelines, ["image", "real"], size=count * BATCH * 5)
    for k, steps in enumerate(it):
        for number, step in enumerate(steps):
            assert step["image"].device == torch.device("cuda", number)
            assert_batch(step, k + number)


def test_labels_on_the_host_and_images_on_the_gpu():
    pipe = Pipeline(BATCH, 2, 0)
    with pipe:
        data, label = fn.external_source(
            source=lambda k: (batch(k), np.arange(BATCH, dtype=np.int32) + k), num_outputs=2
        )
        pipe.set_outputs(data.gpu(), label)
    it = DALIClassificationIterator(pipe)
    for k in range(10):
        (step,) = next(it)
        assert step["data"].is_cuda
        assert not step["label"].is_cuda
        assert step["label"].tolist() == list(range(k, k + BATCH))
        moved = step["label"].cuda(non_blocking=True)
        assert moved.tolist() == list(range(k, k + BATCH))


# Some versions of PyTorch do so even if they are told not to check.
@pytest.mark.filterwarnings("ignore:Sparse invariant checks")
def test_ragged():
    def rows(k):
        return [np.full((i % 3, 2 + i), 10 * k + i, np.int32) for i in range(BATCH)]

    pipe = Pipeline(BATCH, 2, 0)
    with pipe:
        x = fn.external_source(source=rows).gpu()
        pipe.set_outputs(x, x + 1)
    tags = [DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.SPARSE_COO_TAG]
    it = DALIRaggedIterator(pipe, ["list", "coo"], output_types=tags)
    for k in range(10):
        (step,) = next(it)
        for found, expected in zip(step["list"], rows(k), strict=True):
            assert found.is_cuda
            np.testing.assert_array_equal(found.cpu(), expected)
        expected = np.zeros((BATCH, 2, 1 + BATCH), np.int32)
        for i, row in enumerate(rows(k)):
            expected[i, : row.shape[0], : row.shape[1]] = row + 1
        assert step["coo"].is_cuda
        np.testing.assert_array_equal(step["coo"].to_dense().cpu(), expected)


@pytest.mark.parametrize("how", ["current", "stream", "number"])
def test_feed_ndarray(how):
    image, _ = pipeline().run()
    target = torch.empty((BATCH, *SHAPE), dtype=torch.uint8, device="cuda")
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    given = {"current": None, "stream": side, "number": side.cuda_stream}[how]
    assert feed_ndarray(image, target, given) is target
    torch.cuda.synchronize()
    np.testing.assert_array_equal(target.cpu(), batch(0))


def test_run_for_a_stream_of_pytorch():
    side = torch.cuda.Stream()
    pipe = pipeline()
    for k in range(10):
        image, _ = pipe.run(side)
        with torch.cuda.stream(side):
            # As a library does that asks for the address and nothing else.
            found = torch.as_tensor(image.as_tensor(), device="cuda").sum(dtype=torch.int64)
            total = int(found)  # on the same stream: others do not wait for it
        assert total == batch(k).sum(dtype=np.int64)


def test_pytorch_tensors_as_external_data():
    pipe = Pipeline(BATCH, 2, 0, prefetch_queue_depth=3)
    with pipe:
        x = fn.external_source(name="x", device="gpu", layout="HWC")
        pipe.set_outputs(x, fn.cast(x, dtype=types.INT32))
    side = torch.cuda.Stream()
    buffer = torch.empty((BATCH, *SHAPE), dtype=torch.uint8, device="cuda")
    with torch.cuda.stream(side):
        for k in range(12):  # one buffer for all
            torch.cuda._sleep(SLOW_CYCLES // 10)
            buffer.copy_(torch.from_numpy(batch(k)))
            pipe.feed_input("x", buffer)
    for k in range(12):
        same, wide = pipe.run()
        np.testing.assert_array_equal(to_torch_tensor(same).cpu(), batch(k))
        np.testing.assert_array_equal(to_torch_tensor(wide).cpu(), batch(k))


@pytest.mark.parametrize("no_copy", [False, True])
def test_lists_of_pytorch_tensors_as_external_data(no_copy):
    """The same buffers for all batches where they are copied, new ones where they are not."""
    pipe = Pipeline(BATCH, 2, 0, prefetch_queue_depth=3)
    with pipe:
        x = fn.external_source(name="x", device="gpu", layout="HWC", no_copy=no_copy)
        pipe.set_outputs(x, fn.cast(x, dtype=types.INT32))

    def shape(i):
        return (SHAPE[0] - 7 * i, *SHAPE[1:])

    def empty():
        return [torch.empty(shape(i), dtype=torch.uint8, device="cuda") for i in range(BATCH)]

    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        buffers = empty()
        for k in range(12):
            if no_copy:
                buffers = empty()
            torch.cuda._sleep(SLOW_CYCLES // 10)
            for i, buffer in enumerate(buffers):
                buffer.fill_(k * BATCH + i)
            pipe.feed_input("x", buffers)
        del buffers
    for k in range(12):
        for batch_of_one_type in pipe.run():
            for i, found in enumerate(batch_of_one_type.as_cpu()):
                assert tuple(found.shape()) == shape(i)
                assert (np.asarray(found) == k * BATCH + i).all()


def test_functions_of_pytorch_on_the_operators_stream():
    streams = set()

    def double(x):
        streams.add(torch.cuda.current_stream().cuda_stream)
        assert x.is_cuda
        torch.cuda._sleep(SLOW_CYCLES // 10)
        return x.float() * 2, x[:2, ::3]

    pipe = Pipeline(BATCH, 2, 0, prefetch_queue_depth=3)
    with pipe:
        images = fn.external_source(source=batch, layout="HWC").gpu()
        doubled, part = torch_python_function(
            images, function=double, num_outputs=2, output_layouts=["HWC"]
        )
        sums = torch_python_function(
            images, function=lambda xs: [x.sum() for x in xs], batch_processing=True
        )
        pipe.set_outputs(doubled + 1, part, sums.cpu())
    for k in range(6):
        more, part, sums = pipe.run()
        np.testing.assert_array_equal(more.as_cpu().as_array(), batch(k) * np.float32(2) + 1)
        np.testing.assert_array_equal(part.as_cpu().as_array(), batch(k)[:, :2, ::3])
        assert sums.as_array().tolist() == batch(k).sum(axis=(1, 2, 3), dtype=np.int64).tolist()
    assert len(streams) == 1
    assert 0 not in streams
