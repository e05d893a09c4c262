"""Several GPUs in one process: a pipeline for each, threads for each, decoders, dynamic mode.

Emulated ones, and real ones where the machine has two.
"""

from __future__ import annotations

import gc
import threading

import cv2
import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import errors, fn, pipeline_def, types
from headrace.experimental.dynamic.modes import THREAD
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.runtime import install_runtime
from tests.support.gpu.foreign import DLPackArray
from tests.support.gpu.runtime import EmulatedRuntime

GPUS = 2
BATCH = 6
FILES = 24


def _count_real() -> int:
    import cupy

    return int(cupy.cuda.runtime.getDeviceCount())


@pytest.fixture(autouse=True)
def several(gpu_runtime):
    """As many GPUs as the tests want; `gpu_runtime` has one of the real ones."""
    THREAD.defaults.clear()  # contexts of an emulated GPU that was another test's
    if isinstance(gpu_runtime, EmulatedRuntime):
        yield
        THREAD.defaults.clear()
        return
    if _count_real() < GPUS:
        pytest.skip("needs two GPUs")
    install_runtime(None)
    yield
    gpu_runtime.activate()


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(5)
    for number in range(FILES):
        image = cv2.GaussianBlur(rng.integers(0, 255, (60 + number, 70, 3), np.uint8), (5, 5), 2)
        name = f"{number:02}.{'png' if number % 5 == 3 else 'jpg'}"
        assert cv2.imwrite(str(folder / name), image)
    return sorted(str(p) for p in folder.iterdir())


@pipeline_def(num_threads=2, batch_size=BATCH)
def training(files, shard):
    encoded, labels = fn.readers.file(
        files=files,
        labels=list(range(len(files))),
        shard_id=shard,
        num_shards=GPUS,
        random_shuffle=True,
        name="reader",
    )
    images = fn.decoders.image(encoded, device="mixed")
    images = fn.random_resized_crop(images, size=(24, 24), random_area=(0.3, 1.0))
    images = fn.rotate(images, angle=fn.random.uniform(range=(-20, 20)), keep_size=True)
    images = fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", std=[50.0])
    return images, labels.gpu(), labels


def on_host(batch):
    host = batch.as_cpu()
    return [host.at(i) for i in range(len(host))]


def epochs(pipe, iterations):
    """Images and labels of so many iterations, on the host, and where the batches were."""
    images, labels, places = [], [], set()
    for _ in range(iterations):
        found, there, here = pipe.run()
        places |= {found.device_id(), there.device_id()}
        images += on_host(found)
        labels += [int(v[0]) for v in on_host(there)]
        assert labels[-BATCH:] == [int(here.at(i)[0]) for i in range(BATCH)]
    return images, labels, places


def assert_same(one, other):
    images, labels, _ = one
    expected, expected_labels, _ = other
    assert labels == expected_labels
    for got, want in zip(images, expected, strict=True):
        np.testing.assert_array_equal(got, want)


def test_what_a_pipeline_makes_does_not_depend_on_its_gpu(files):
    found = [
        epochs(training(files, shard, seed=7, device_id=gpu), 5)
        for shard in range(2)
        for gpu in range(GPUS)
    ]
    assert_same(found[0], found[1])
    assert_same(found[2], found[3])
    assert [places for *_, places in found] == [{0}, {1}, {0}, {1}]
    seen = [set(labels) for _, labels, _ in found]
    assert seen[0] | seen[2] == set(range(FILES))


def test_in_turn_in_one_thread(files):
    alone = [epochs(training(files, k, seed=7, device_id=k), 6) for k in range(GPUS)]
    pipes = [training(files, k, seed=7, device_id=k) for k in range(GPUS)]
    turns = [[epochs(pipe, 1) for pipe in pipes] for _ in range(6)]
    for k in range(GPUS):
        images = [image for turn in turns for image in turn[k][0]]
        labels = [label for turn in turns for label in turn[k][1]]
        assert_same((images, labels, {k}), alone[k])


def test_at_once_in_threads(files):
    alone = [epochs(training(files, k, seed=7, device_id=k), 8) for k in range(GPUS)]
    found = [None] * GPUS
    pipes = [training(files, k, seed=7, device_id=k) for k in range(GPUS)]

    def work(k):
        found[k] = epochs(pipes[k], 8)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(GPUS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for k in range(GPUS):
        assert found[k] is not None
        assert_same(found[k], alone[k])
        assert found[k][2] == {k}


def test_resumed_on_another_gpu(files):
    whole = training(files, 0, seed=7, device_id=0, enable_checkpointing=True)
    epochs(whole, 3)
    state = whole.checkpoint()
    rest = epochs(whole, 4)
    resumed = training(files, 0, seed=7, device_id=1, enable_checkpointing=True, checkpoint=state)
    assert_same(epochs(resumed, 4), rest)


@pipeline_def(num_threads=2, batch_size=3)
def mirrored(given):
    data = fn.external_source(source=lambda: given, device="gpu", layout="HWC")
    return fn.flip(data, horizontal=1)


def arrays(gpu):
    runtime = get_device(gpu).runtime
    runtime.activate()
    return [
        DLPackArray(runtime, np.arange(60, dtype=np.uint8).reshape(4, 5, 3) + k) for k in range(3)
    ]


def test_arrays_of_each_gpu():
    for gpu in (1, 0, 1):
        given = arrays(gpu)
        (found,) = mirrored(given, device_id=gpu).run()
        assert found.device_id() == gpu
        for one, array in zip(on_host(found), given, strict=True):
            np.testing.assert_array_equal(one, array.values[:, ::-1])


def test_arrays_of_another_gpu_are_an_error():
    pipe = mirrored(arrays(0), device_id=1)
    with pytest.raises(errors.HeadraceError, match=r"is on GPU 0; the pipeline runs on GPU 1"):
        pipe.run()


def test_callbacks_that_make_another_gpu_current():
    """What the engine does behind them is on the pipeline's GPU all the same."""
    given = {gpu: arrays(gpu) for gpu in range(GPUS)}

    @pipeline_def(num_threads=2, batch_size=3)
    def definition(gpu):
        def source():
            get_device(1 - gpu).runtime.activate()
            return given[gpu]

        def host():
            get_device(1 - gpu).runtime.activate()
            return [array.values for array in given[gpu]]

        there = fn.external_source(source=source, device="gpu", layout="HWC")
        uploaded = fn.external_source(source=host, layout="HWC").gpu()
        return fn.flip(there, horizontal=1), fn.flip(uploaded, horizontal=1)

    for gpu in range(GPUS):
        pipe = definition(gpu, device_id=gpu)
        get_device(0).runtime.activate()
        for _ in range(4):
            for found in pipe.run():
                assert found.device_id() == gpu
                for one, array in zip(on_host(found), given[gpu], strict=True):
                    np.testing.assert_array_equal(one, array.values[:, ::-1])


def test_a_consumer_with_another_current_gpu(files):
    expected = epochs(training(files, 0, seed=7, device_id=0), 5)
    pipe = training(files, 0, seed=7, device_id=0)
    get_device(1).runtime.activate()
    try:
        assert_same(epochs(pipe, 5), expected)
    finally:
        get_device(0).runtime.activate()


MODES = list(ndd.EvalMode)


def some_images():
    rng = np.random.default_rng(3)
    return [rng.integers(0, 255, (20 + k, 30, 3), np.uint8) for k in range(4)]


def values_of(batch):
    return [np.asarray(t) for t in batch.cpu().tensors]


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_dynamic_mode_on_each(mode):
    found = []
    for gpu in range(GPUS):
        with mode, ndd.EvalContext(num_threads=2, device_id=gpu):
            there = ndd.batch(some_images(), layout="HWC").gpu()
            turned = ndd.rotate(ndd.resize(there, size=(16, 18)), angle=30, keep_size=True)
            made = ndd.crop_mirror_normalize(turned, mean=[100.0], std=[50.0]) * 2
            assert there.device == made.device == ndd.Device("gpu", gpu)
        found.append(values_of(made))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_from_one_gpu_to_the_other(mode):
    with mode:
        first = ndd.batch(some_images(), layout="HWC").gpu(0)
        flipped = ndd.flip(first, horizontal=1)
        second = flipped.to_device("gpu:1")
        third = second.gpu(0)
        back = [flipped, second, third, second.gpu(1), ndd.batch(some_images()).gpu(1)]
        assert [b.device.device_id for b in back] == [0, 1, 0, 1, 1]
        assert back[3] is second
        assert second.layout == "HWC"
        for batch in back[:4]:
            for one, image in zip(values_of(batch), some_images(), strict=True):
                np.testing.assert_array_equal(one, image[:, ::-1])
        single = second.tensors[2].to_device(ndd.Device("gpu:0"))
        assert single.device.device_id == 0
        np.testing.assert_array_equal(np.asarray(single.cpu()), some_images()[2][:, ::-1])


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_a_context_works_on_its_gpu_only(mode):
    with mode:
        there = ndd.batch(some_images(), layout="HWC").gpu(1)
        with pytest.raises(
            errors.MisusedArgumentError, match=r"flip` is on GPU 1.*on GPU 0.*gpu\(0\)"
        ):
            ndd.flip(there)
        with pytest.raises(
            errors.MisusedArgumentError, match=r"on GPU 1.*EvalContext\(device_id=1"
        ):
            there + 1
        with ndd.EvalContext(device_id=1):
            values_of(ndd.flip(there) + 1)
        with ndd.Device("gpu", 1):
            values_of(ndd.flip(there) + 1)


def test_contexts_make_their_gpu_current():
    values = np.arange(12, dtype=np.float32)
    for gpu in (1, 0):
        with ndd.EvalContext(num_threads=1, device_id=gpu):
            assert ndd.Device.current() == ndd.Device("gpu", gpu)
            there = ndd.tensor(values).gpu()
            assert there.device == ndd.Device("gpu", gpu)
            np.testing.assert_array_equal(np.asarray((there * 2).cpu()), values * 2)
    assert ndd.Device.current() == ndd.Device("gpu", 0)


@pytest.mark.parametrize("mode", MODES, ids=lambda m: m.name)
def test_work_for_another_gpu_leaves_the_current_one_alone(mode):
    here = ndd.Device("gpu", 0)
    with mode:
        there = ndd.batch(some_images(), layout="HWC").gpu(1)
        assert ndd.Device.current() == here
        with ndd.EvalContext(device_id=1):
            flipped = ndd.flip(there)
        assert ndd.Device.current() == here
        values_of(flipped)
        assert ndd.Device.current() == here
    gc.collect()  # what a context had is given back where it came from
    assert ndd.Device.current() == here


def test_the_users_device_stays_current(files, gpu_runtime):
    if isinstance(gpu_runtime, EmulatedRuntime):
        pytest.skip("PyTorch knows real GPUs only")
    torch = pytest.importorskip("torch")
    from headrace.plugin.pytorch import DALIGenericIterator

    torch.cuda.set_device(0)
    pipes = [training(files, k, seed=7, device_id=k) for k in range(GPUS)]
    iterator = DALIGenericIterator(pipes, ["image", "label", "here"], reader_name="reader")
    alone = [epochs(training(files, k, seed=7, device_id=k), 2) for k in range(GPUS)]
    seen = set()
    for number, step in enumerate(iterator):
        assert torch.cuda.current_device() == 0
        for k, batch in enumerate(step):
            assert batch["image"].device == batch["label"].device == torch.device("cuda", k)
            if number < 2:
                expected = np.stack(alone[k][0][number * BATCH : (number + 1) * BATCH])
                np.testing.assert_array_equal(batch["image"].cpu().numpy(), expected)
            seen |= set(batch["label"].flatten().tolist())
    assert seen == set(range(FILES))
