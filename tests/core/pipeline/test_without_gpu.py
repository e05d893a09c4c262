"""Programs written for a GPU that are asked to run on the CPU."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

from headrace import Pipeline, backend, errors, fn, types
from headrace.executor import fallback
from headrace.experimental import dynamic
from headrace.operators import BatchOperator, Input, operator
from headrace.pipeline import experimental
from headrace.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from headrace.tensors.gpu import runtime
from tests.support.encoded_images import png

BATCH = 3


@pytest.fixture
def no_gpu(monkeypatch):
    """A machine without one."""

    def none():
        raise errors.GpuNotAvailableError(f"There is no driver. {runtime.WITHOUT_GPU}")

    monkeypatch.delenv("HEADRACE_GPU", raising=False)
    monkeypatch.setattr(fallback, "_told", False)
    monkeypatch.setattr(fallback, "check_available", none)


def images():
    image = np.add.outer(np.arange(40) * 3, np.arange(48) * 2)[..., None] + np.arange(3)
    return [np.frombuffer(png(np.uint8(image + 9 * k), 8, 2), np.uint8) for k in range(BATCH)]


def training(device_id, *, on_gpu: bool, debug: bool = False, **arguments):
    """Decoding, resampling, random numbers, branches, constants, and what is moved."""
    gpu, mixed = ("gpu", "mixed") if on_gpu else ("cpu", "cpu")

    @experimental.pipeline_def(
        batch_size=BATCH,
        num_threads=2,
        device_id=device_id,
        seed=7,
        enable_conditionals=not debug,
        debug=debug,
        **arguments,
    )
    def define():
        encoded = fn.external_source(lambda: images(), name="files")
        label = fn.external_source(lambda: np.arange(BATCH).reshape(-1, 1), device=gpu)
        decoded = fn.decoders.image(encoded, device=mixed)
        resized = fn.resize(decoded, size=(20, 24))
        if not debug:
            if fn.random.coin_flip(seed=5):
                resized = fn.flip(resized)
            else:
                resized = resized + fn.constant(idata=[1], dtype=types.UINT8, device=gpu)
        out = fn.crop_mirror_normalize(resized, mirror=fn.random.coin_flip())
        noise = fn.random.uniform(shape=[2], device=gpu)
        if not on_gpu:
            return out, label, noise, encoded, fn.reductions.mean(out)
        back = fn.reductions.mean(out.gpu()).cpu()
        return out, label.gpu(), noise, encoded.gpu().cpu(), back

    return define()


def taken(pipe, count=3, *stream):
    found = []
    for _ in range(count):
        outputs = pipe.run(*stream)
        assert all(isinstance(batch, TensorListCPU) for batch in outputs)
        found.append([np.array(sample) for batch in outputs for sample in batch.as_cpu()])
    return found


def assert_same(found, expected):
    for ours, theirs in zip(found, expected, strict=True):
        for a, b in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("debug", [False, True])
@pytest.mark.parametrize("device_id", [0, 5, "auto", None])
def test_never(device_id, debug, gpu_is_off, recwarn):
    pipe = training(device_id, on_gpu=True, debug=debug)
    found = taken(pipe)
    again = taken(training(1, on_gpu=True, debug=debug))
    (warned,) = recwarn
    assert "asks for a GPU, and the CPU does the work" in str(warned.message)
    assert "HEADRACE_GPU is 'never'" in str(warned.message)
    assert warned.filename == __file__
    assert pipe.device_id is None
    expected = taken(training(None, on_gpu=False, debug=debug))
    assert_same(found, expected)
    assert_same(again, expected)


def test_auto_where_there_is_none(no_gpu):
    with pytest.warns(UserWarning, match="There is no driver. Data that") as warned:
        found = taken(training("auto", on_gpu=True), 3, 1234)
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert_same(found, taken(training(None, on_gpu=False)))
    with pytest.raises(errors.ArgumentTypeError, match="Cannot interpret the object 1234"):
        training(None, on_gpu=False).run(1234)


@pytest.mark.filterwarnings("ignore:.*asks for a GPU:UserWarning")
def test_what_is_stored_is_for_a_gpu(gpu_is_off, monkeypatch):
    """A pipeline that is serialized, or copied, asks for what it was made with."""
    pipe = Pipeline(BATCH, 2, 3)
    with pipe:
        pipe.set_outputs(fn.random.uniform(device="gpu", seed=4), fn.constant(idata=1).gpu())
    stored = pipe.serialize()
    expected = taken(pipe)
    assert_same(taken(Pipeline.deserialize(stored)), expected)
    loaded = Pipeline(BATCH, 2, "auto")
    loaded.deserialize_and_build(stored)
    assert_same(taken(loaded), expected)
    monkeypatch.delenv("HEADRACE_GPU")
    monkeypatch.setattr(runtime, "get_runtime", None)
    back = Pipeline(num_threads=2)
    monkeypatch.setattr(back, "build", lambda: None)
    back.deserialize_and_build(stored)
    assert back.device_id == 3


def test_what_nobody_asked_for_stays(monkeypatch):
    """Without a word about it, a GPU that is not there is an error, as ever."""
    monkeypatch.delenv("HEADRACE_GPU", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipe = training(1000, on_gpu=True)
        with pytest.raises((errors.GpuNotAvailableError, errors.ArgumentValueError)):
            pipe.build()
    with pytest.raises(errors.ArgumentTypeError, match="`device_id` is 'never'; expected an int"):
        Pipeline(1, 1, "never")
    monkeypatch.setenv("HEADRACE_GPU", "always")
    with pytest.raises(errors.ArgumentValueError, match="HEADRACE_GPU is 'always'"):
        Pipeline(1, 1, None)


@operator("testing.gpu_alone", inputs=Input(), devices=("gpu",))
class GpuAlone(BatchOperator):
    """Has no code for the CPU."""

    def gpu(self, c, x):
        """Not called here."""
        raise AssertionError


@pytest.mark.filterwarnings("ignore:.*asks for a GPU:UserWarning")
def test_what_needs_a_gpu_says_so(gpu_is_off):
    pipe = Pipeline(BATCH, 2, 0)
    with pipe:
        pipe.set_outputs(fn.testing.gpu_alone(fn.constant(idata=1).gpu()))
    with pytest.raises(
        errors.GpuNotAvailableError,
        match=r"`fn.testing.gpu_alone`, created at .*test_without_gpu.*, works on a GPU only: it "
        r"has no implementation for the CPU. There is none: .*HEADRACE_GPU is 'never'.",
    ):
        pipe.build()


@pytest.mark.filterwarnings("ignore:.*asks for a GPU:UserWarning")
def test_a_kernel_of_the_user_needs_a_gpu(gpu_is_off):
    from headrace.plugin.numba.fn.experimental import numba_function

    pipe = Pipeline(BATCH, 2, 0)
    with pipe:
        data = fn.external_source(lambda: np.zeros((BATCH, 2), np.uint8)).gpu()
        made = numba_function(
            data,
            run_fn=lambda out, x: None,
            out_types=[types.UINT8],
            in_types=[types.UINT8],
            outs_ndim=[1],
            ins_ndim=[1],
            device="gpu",
            blocks=[1, 1, 1],
            threads_per_block=[1, 1, 1],
        )
        pipe.set_outputs(made)
    with pytest.raises(errors.GpuNotAvailableError, match="GPU only: its function is a kernel"):
        pipe.build()


def test_memory_of_a_gpu_is_not_prepared(gpu_is_off):
    with pytest.warns(UserWarning, match="`PreallocateDeviceMemory` asks for a GPU"):
        backend.PreallocateDeviceMemory(1000, 3)
    backend.PreallocatePinnedMemory(1000)
    backend.SetCUDACurrentDevice(3)
    with pytest.raises(errors.ArgumentTypeError):
        backend.PreallocatePinnedMemory(-1)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_readers_on_a_gpu(gpu_is_off, tmp_path):
    np.save(tmp_path / "a.npy", np.arange(12).reshape(3, 4))
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=0)
    with pipe:
        pipe.set_outputs(fn.readers.numpy(file_root=tmp_path, device="gpu", roi_end=[2, 4]))
    (read,) = pipe.run()
    assert isinstance(read, TensorListCPU)
    np.testing.assert_array_equal(read.as_array(), [np.arange(8).reshape(2, 4)] * 2)
    reader = dynamic.readers.Numpy(file_root=tmp_path, device="gpu")
    (read,) = next(reader.next_epoch(batch_size=1))
    np.testing.assert_array_equal(read.cpu().tensors[0], np.arange(12).reshape(3, 4))


def both(debug=False):
    """An output that would be on a GPU, and one in host memory."""

    @experimental.pipeline_def(batch_size=BATCH, num_threads=1, device_id=0, debug=debug)
    def define():
        data = fn.external_source(
            lambda: np.arange(BATCH * 6, dtype=np.uint8).reshape(BATCH, 2, 3, 1), layout="HWC"
        )
        return data.gpu(), data

    return define().run()


def public(cls):
    names = {n for n in dir(cls) if not n.startswith("_")}
    return names | {"__len__", "__iter__", "__getitem__", "__dlpack__", "__dlpack_device__"} & set(
        dir(cls)
    )


@pytest.mark.filterwarnings("ignore:.*asks for a GPU:UserWarning")
@pytest.mark.parametrize("debug", [False, True])
def test_all_methods_of_a_gpu_are_there(gpu_is_off, debug):
    batch, _ = both(debug)
    of_a_batch = [batch.at(1), batch[1], list(batch)[1], batch[:2].at(1)]
    whole = [batch.as_tensor(), batch.as_reshaped_tensor([BATCH * 2, 3])]
    for found, cls in ((batch, TensorListGPU), *((t, TensorGPU) for t in of_a_batch + whole)):
        for name in public(cls):
            wanted = inspect.getattr_static(cls, name)
            own = getattr(found, name)
            if not inspect.isfunction(wanted):
                continue
            assert callable(own), name
            if not isinstance(own, (tuple, int)):
                taken_by = inspect.signature(own).parameters.keys()
                assert taken_by >= inspect.signature(wanted).parameters.keys() - {"self"}, name
    for tensor in of_a_batch:
        assert tensor.shape() == [2, 3, 1] == list(tensor.shape)
        assert (tensor.ndim(), tensor.layout(), tensor.dtype) == (3, "HWC", types.UINT8)
        assert (tensor.device_id(), tensor.stream) == (0, None)
        assert not hasattr(tensor, "__cuda_array_interface__")
        assert type(tensor.as_cpu()) is TensorCPU
        np.testing.assert_array_equal(tensor, np.arange(6, 12).reshape(2, 3, 1))
        np.testing.assert_array_equal(np.from_dlpack(tensor), np.asarray(tensor.as_cpu()))
        copied = np.zeros((2, 3, 1), np.uint8)
        tensor.copy_to_external(copied, cuda_stream=None, non_blocking=True, use_copy_kernel=True)
        assert copied.tolist() == (np.asarray(tensor) + 0).tolist() == (tensor + 0).tolist()
        assert tensor[1, 0, 0] == 9
        assert tensor.max() == 11
        assert (tensor == copied).all()
    assert of_a_batch[0].squeeze()
    assert of_a_batch[0].shape() == [2, 3]
    assert (batch.device_id(), batch.stream, len(batch)) == (0, None, BATCH)
    assert type(batch.as_cpu()) is TensorListCPU
    assert type(batch.as_cpu().at(0)) is np.ndarray
    copied = np.zeros((BATCH, 2, 3, 1), np.uint8)
    batch.copy_to_external(copied, None, True)
    np.testing.assert_array_equal(copied, np.asarray(batch))
    assert whole[0].layout() == "NHWC"
    assert not hasattr(batch, "__cuda_array_interface__")
    assert "TensorListCPU" in repr(batch)


@pytest.mark.filterwarnings("ignore:.*asks for a GPU:UserWarning")
def test_what_was_on_the_host_stays_what_it_was(gpu_is_off):
    _, batch = both()
    assert type(batch) is TensorListCPU
    assert type(batch.at(0)) is np.ndarray
