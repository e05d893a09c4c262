"""Batches as eager tensors, on the host and on a GPU, up to where TensorFlow takes them.

TensorFlow for the CPU takes the emulated GPU's memory for the host's, which it is. So what it is
given is real; only what it would do on a GPU's streams is not.
"""

from __future__ import annotations

import gc

import numpy as np
import pytest
import tensorflow as tf

from headrace import Pipeline, errors, fn
from headrace.plugin.tf import DALIGenericIterator, DALIIteratorWrapper, eager
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.runtime import install_runtime
from tests.jax.pipelines import file_pipeline, source_pipeline
from tests.support.gpu.cpu_functions import missing
from tests.support.gpu.late import late_batch
from tests.support.gpu.runtime import EmulatedRuntime, current_emulated

BATCHES = [np.full((4, 16), k, np.float32) for k in range(9)]


@pytest.fixture
def gpu(monkeypatch):
    """GPU 0, emulated; TensorFlow has it, too."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    runtime = EmulatedRuntime(0)
    install_runtime(lambda device_id: runtime, current_emulated)
    runtime.activate()
    monkeypatch.setattr(eager, "_gpus", lambda: frozenset({0}))
    eager.take_back()
    yield runtime
    eager.take_back()
    gc.collect()
    install_runtime(None)
    runtime.check()


def address(tensor):
    return np.asarray(memoryview(tensor)).ctypes.data


def on_gpu(batches=BATCHES, **arguments):
    pipe = Pipeline(4, 1, 0, **arguments)
    with pipe:
        pipe.set_outputs(fn.external_source(source=list(batches)).gpu())
    return pipe


def test_epochs_of_tensors_of_the_host(files):
    pipe = file_pipeline(files, pad_last_batch=True)
    it = DALIGenericIterator(pipe, ["data", "label"], reader_name="reader")
    for _ in range(2):
        epoch = list(it)
        assert [d["label"].numpy().ravel().tolist() for d in epoch[:2]] == [
            [0, 1, 2, 3],
            [4, 5, 6, 7],
        ]
        assert len(epoch) == 6
        assert all(isinstance(d["data"], type(tf.constant(0))) for d in epoch)
        assert np.array_equal(epoch[1]["data"], np.arange(4, 8)[:, None] * np.ones((1, 64)))


def test_memory_of_the_host_is_shared_if_tensorflow_can(monkeypatch):
    places = []
    share = Pipeline.share_outputs

    def spy(self, *arguments):
        outputs = share(self, *arguments)
        places.append(outputs[0].data_ptr())
        return outputs

    monkeypatch.setattr(Pipeline, "share_outputs", spy)
    it = DALIGenericIterator(source_pipeline([np.ones((2, 3), np.float32)] * 4), ["x"])
    assert [address(next(it)["x"]) for _ in range(3)] == places[:3]
    memory = np.zeros(256, np.uint8)
    begin = -memory.ctypes.data % 64
    for offset in (4, 16, 48):  # with these, TensorFlow would abort the process
        array = memory[begin + offset : begin + offset + 64].view(np.float32)
        tensor = eager.from_host(array)
        assert address(tensor) != array.ctypes.data
        assert float(tf.reduce_sum(tensor + 1)) == 16
    frozen = memory[begin : begin + 64]
    frozen.flags.writeable = False
    assert eager.from_host(frozen).shape == (64,)


def test_memory_of_a_gpu_is_shared_and_written_when_tensorflow_gets_it(gpu, monkeypatch):
    """The emulated GPU's streams run when they are waited for, and not before."""
    places = []
    share = Pipeline.share_outputs

    def spy(self, *arguments):
        outputs = share(self, *arguments)
        places.append(outputs[0].data_ptr())
        return outputs

    monkeypatch.setattr(Pipeline, "share_outputs", spy)
    kept = []
    for k, step in enumerate(DALIGenericIterator(on_gpu(), ["x"])):
        assert address(step["x"]) == places[k]
        assert np.array_equal(step["x"], BATCHES[k])
        kept.append(step["x"])
    assert len(kept) == len(BATCHES)
    assert all(np.array_equal(a, b) for a, b in zip(kept, BATCHES, strict=True))


def test_memory_of_a_gpu_is_used_anew_when_tensorflow_has_done_its_work(gpu, monkeypatch):
    """TensorFlow lets go of a tensor while its streams have yet to read it."""
    waited = []
    pool = get_device(0).memory

    def returned():
        return {address for address, *_ in pool._returned}

    def sync_devices():
        waited.append(returned())

    monkeypatch.setattr(tf.test.experimental, "sync_devices", sync_devices)
    it = DALIGenericIterator(on_gpu(), ["x"])
    first = next(it)["x"]
    where = address(first)
    next(it)
    assert len(waited) <= 1  # of the second batch nobody has let go before
    del first
    gc.collect()
    assert where not in returned()
    before = len(waited)
    eager.take_back()
    assert len(waited) == before + 1
    assert where not in waited[-1]
    assert where in returned()
    eager.take_back()
    assert len(waited) == before + 1  # there was nothing to wait for


def test_memory_of_a_gpu_that_is_not_aligned_is_copied(gpu):
    values = np.arange(12, dtype=np.float32).reshape(4, 3)
    batch = late_batch(gpu, list(values))
    sample = batch[1]
    assert sample._address % eager.ALIGNMENT_BYTES
    tensor = eager.from_gpu(sample)
    assert address(tensor) % eager.ALIGNMENT_BYTES == 0
    assert float(tf.reduce_sum(tensor + 1)) == values[1].sum() + 3


def test_eager_operations_leave_batches_on_the_gpu(gpu):
    pipe = on_gpu()
    for k in range(2):
        (tensor,) = DALIIteratorWrapper(pipe, shapes=[(4, 16)], dtypes=[tf.float32])
        assert np.array_equal(tensor, BATCHES[k])
    with pytest.raises(errors.ShapeError, match=r"\[4, 15\]"):
        DALIIteratorWrapper(on_gpu(), shapes=[(4, 15)], dtypes=[tf.float32])
    with pytest.raises(errors.DataTypeError, match="int8"):
        DALIIteratorWrapper(on_gpu(), dtypes=[tf.int8])


def test_without_a_gpu_of_tensorflows(gpu, monkeypatch):
    """The iterator says so; the operation, as DALI's does on the CPU, copies."""
    monkeypatch.setattr(eager, "_gpus", frozenset)
    it = DALIGenericIterator(on_gpu(), ["x"])
    with pytest.raises(errors.UsageError, match=r"GPU 0, and TensorFlow has no GPU: .*`\.cpu\(\)`"):
        next(it)
    (tensor,) = DALIIteratorWrapper(on_gpu(), dtypes=[tf.float32])
    assert np.array_equal(tensor, BATCHES[0])


def test_what_the_iterator_refuses(files):
    with pytest.raises(errors.ArgumentTypeError, match="list of 2 pipelines"):
        DALIGenericIterator([file_pipeline(files), file_pipeline(files)], ["a", "b"])
    it = DALIGenericIterator(file_pipeline(files), ["a", "b"])
    with tf.Graph().as_default(), pytest.raises(errors.UsageError, match="building a graph"):
        next(it)
    different = Pipeline(2, 1, None)
    with different:
        different.set_outputs(fn.external_source(source=[[np.zeros(1), np.zeros(2)]]))
    with pytest.raises(errors.ShapeError, match=r"index '0'.*\(1,\), \(2,\)"):
        next(DALIGenericIterator(different, ["x"]))
