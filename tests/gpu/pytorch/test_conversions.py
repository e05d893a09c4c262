"""Batches on a GPU as PyTorch tensors: shared, on the stream that is PyTorch's current one.

PyTorch for the CPU takes the emulated GPU's memory for the host's, which it is; only its streams
have to be made up. `test_handover.py` has PyTorch's own.
"""

from __future__ import annotations

import gc
import warnings
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from headrace import types
from headrace.errors import ShapeError
from headrace.plugin.pytorch import feed_ndarray, sparse
from headrace.plugin.pytorch.convert import to_dense, to_list
from headrace.plugin.pytorch.sparse import to_sparse_coo
from headrace.plugin.pytorch.torch_utils import to_torch_tensor
from headrace.tensors import TensorListGPU
from headrace.tensors.gpu.device import get_device
from tests.support.gpu.late import late_batch, read_on


@pytest.fixture
def current(emulated_gpu, monkeypatch):
    """PyTorch's current stream."""
    stream = SimpleNamespace(cuda_stream=emulated_gpu.acquire_stream(), asked=[])

    def current_stream(device):
        stream.asked.append(device)
        return stream

    monkeypatch.setattr(torch.cuda, "current_stream", current_stream)
    own = stream.cuda_stream
    yield stream
    emulated_gpu.release_stream(own)


@pytest.fixture
def data():
    return np.arange(24, dtype=np.float32).reshape(2, 3, 4)


@pytest.fixture
def ragged():
    return [np.arange(n * 3, dtype=np.int16).reshape(n, 3) for n in (2, 0, 5, 1)]


def seen(runtime, current, tensor, like):
    return read_on(runtime, tensor.data_ptr(), like, current.cuda_stream)


def test_the_default_stream_is_1_to_dlpack_and_0_to_pytorch(emulated_gpu, current, data):
    current.cuda_stream = 0
    tensor = to_torch_tensor(late_batch(emulated_gpu, list(data)))
    np.testing.assert_array_equal(read_on(emulated_gpu, tensor.data_ptr(), data, 1), data)


def test_dense_batches_are_shared(emulated_gpu, current, data):
    batch = late_batch(emulated_gpu, list(data))
    tensor = to_dense(batch, 2, "x")
    assert current.asked == [0]
    assert any("copy" in what for what in emulated_gpu.pending()), "the host has waited"
    assert tensor.data_ptr() == batch[0]._address
    assert (tensor.shape, tensor.dtype) == ((2, 3, 4), torch.float32)
    np.testing.assert_array_equal(seen(emulated_gpu, current, tensor, data), data)


@pytest.mark.parametrize("kept", [0, 1, [1], [1, 0], []])
def test_kept_samples(emulated_gpu, current, data, kept):
    batch = late_batch(emulated_gpu, list(data))
    tensor = to_dense(batch, kept, "x")
    expected = data[:kept] if isinstance(kept, int) else data[kept]
    assert tensor.shape == expected.shape
    if expected.size:
        np.testing.assert_array_equal(seen(emulated_gpu, current, tensor, expected), expected)


def test_ragged_batches_are_no_dense_tensor(emulated_gpu, current, ragged):
    batch = late_batch(emulated_gpu, ragged)
    with pytest.raises(ShapeError, match=r'"boxes".*\(2, 3\).*DALIRaggedIterator'):
        to_dense(batch, 4, "boxes")


@pytest.mark.parametrize("kept", [4, 2, [2, 0], 0])
def test_lists_share_one_piece_of_memory(emulated_gpu, current, ragged, kept):
    batch = late_batch(emulated_gpu, ragged)
    numbers = range(kept) if isinstance(kept, int) else kept
    tensors = to_list(batch, kept)
    assert [t.shape for t in tensors] == [ragged[k].shape for k in numbers]
    for tensor, k in zip(tensors, numbers, strict=True):
        if tensor.numel():
            assert tensor.data_ptr() == batch[k]._address
            np.testing.assert_array_equal(seen(emulated_gpu, current, tensor, ragged[k]), ragged[k])


def test_lists_of_one_piece_are_handed_over_once(emulated_gpu, current):
    device = get_device(0)
    queue = device.queue(emulated_gpu.acquire_stream())
    batch = queue.empty(np.array([[n] for n in (3, 1, 4)]), np.uint8)
    made = TensorListGPU._from_batch(batch, "", types.UINT8)
    assert [t.shape for t in to_list(made, 3)] == [(3,), (1,), (4,)]
    assert len(current.asked) == 1
    assert [t.data_ptr() for t in to_list(made, 3)] == batch.pointers.tolist()


def test_sparse(emulated_gpu, current, ragged):
    tensor = to_sparse_coo(late_batch(emulated_gpu, ragged), 4)
    assert tensor.shape == (4, 5, 3)
    values = np.concatenate([row.ravel() for row in ragged])
    found = seen(emulated_gpu, current, tensor.values(), values)
    np.testing.assert_array_equal(found, values)
    expected = [(k, *at) for k, row in enumerate(ragged) for at in np.ndindex(row.shape)]
    assert tensor.indices().T.tolist() == [list(e) for e in expected]


def test_sparse_tensors_come_without_pytorch_s_warning(emulated_gpu, current, ragged, monkeypatch):
    """PyTorch 2.11 gives it once, whatever it is asked for; warnings are errors here."""
    make, given = torch.sparse_coo_tensor, []

    def warning(*args, **options):
        if not given:
            given.append(1)
            warnings.warn("Sparse invariant checks are implicitly disabled.", stacklevel=2)
        return make(*args, **options)

    monkeypatch.setattr(torch, "sparse_coo_tensor", warning)
    sparse._accept_unchecked.cache_clear()
    assert to_sparse_coo(late_batch(emulated_gpu, ragged), 4).shape == (4, 5, 3)
    assert given


def test_memory_comes_back_when_the_stream_is_through(emulated_gpu, current, data):
    batch = late_batch(emulated_gpu, list(data))
    writer, address = batch.stream, batch[0]._address
    tensor = to_torch_tensor(batch)
    view = tensor[1:]
    pool = get_device(0).memory
    del batch, tensor
    gc.collect()
    taken = [pool.take(data.nbytes, writer)]
    assert taken[0].address != address, "a view is left"
    del view
    gc.collect()
    taken.append(pool.take(data.nbytes, writer))
    assert taken[1].address != address, "the stream may still read"
    emulated_gpu.synchronize(current.cuda_stream)
    emulated_gpu.synchronize(1)
    assert pool.take(data.nbytes, writer).address == address


def test_copies_are_pytorch_s_own(emulated_gpu, current, data):
    batch = late_batch(emulated_gpu, list(data))
    emulated_gpu.synchronize(batch.stream)
    tensor = to_torch_tensor(batch, copy=True)
    assert tensor.data_ptr() != batch[0]._address
    np.testing.assert_array_equal(tensor, data)


def test_feed_ndarray(emulated_gpu, current, data):
    batch = late_batch(emulated_gpu, list(data))
    emulated_gpu.synchronize(batch.stream)
    target = torch.zeros((2, 3, 4))
    assert feed_ndarray(batch, target) is target
    np.testing.assert_array_equal(target, data)
