"""Conversions to PyTorch: types, shared memory, errors."""

from __future__ import annotations

import gc

import numpy as np
import pytest
import torch

from headrace import contact_sheet, types
from headrace.errors import DataTypeError, ShapeError
from headrace.plugin.pytorch import feed_ndarray, to_torch_type
from headrace.plugin.pytorch.convert import to_dense, to_list
from headrace.plugin.pytorch.sparse import to_sparse_coo
from headrace.plugin.pytorch.torch_utils import to_torch_tensor
from headrace.tensors import TensorCPU, TensorListCPU
from headrace.tensors.pool import HostPool


def ragged(dtype=np.float32):
    return TensorListCPU([np.array(v, dtype) for v in ([1, 2, 0], [], [5])], contiguous=False)


@pytest.mark.parametrize("dtype", list(to_torch_type), ids=lambda t: t.name)
def test_every_type_is_shared(dtype):
    array = np.ones((3, 2, 2), types.to_numpy_type(dtype))
    tensor = to_torch_tensor(TensorListCPU(array))
    assert tensor.dtype == to_torch_type[dtype]
    assert tensor.shape == (3, 2, 2)
    assert tensor.data_ptr() == array.ctypes.data
    assert torch.equal(tensor, torch.ones((3, 2, 2), dtype=tensor.dtype))
    assert to_torch_tensor(TensorCPU(array)).data_ptr() == array.ctypes.data


def test_copy():
    array = np.zeros((2, 3), np.int32)
    copied = to_torch_tensor(TensorListCPU(array), copy=True)
    array[:] = 1
    assert not copied.any()
    assert to_torch_tensor(TensorListCPU(array), copy=False).all()


def test_memory_lives_as_long_as_the_tensor():
    pool = HostPool()
    array = pool.empty((4, 1000), np.uint8)
    array[:] = 7
    tensor = to_dense(TensorListCPU(array), 2, "x")
    del array
    gc.collect()
    assert pool.stats().buffers_in_use == 1
    view = tensor[1:]
    del tensor
    gc.collect()
    assert pool.stats().buffers_in_use == 1
    assert (view == 7).all()
    del view
    gc.collect()
    assert pool.stats().buffers_in_use == 0


def test_dense_cut():
    array = np.arange(12, dtype=np.int64).reshape(4, 3)
    batch = TensorListCPU(array)
    assert to_dense(batch, 4, "x").tolist() == array.tolist()
    front = to_dense(batch, 2, "x")
    assert front.tolist() == array[:2].tolist()
    assert front.data_ptr() == array.ctypes.data
    assert to_dense(batch, 0, "x").shape == (0, 3)
    assert to_dense(batch, [0, 3], "x").tolist() == array[[0, 3]].tolist()
    assert to_dense(batch, [], "x").shape == (0, 3)


def test_scalars():
    batch = TensorListCPU(np.arange(3, dtype=np.float32))
    assert to_dense(batch, 2, "x").tolist() == [0, 1]
    assert [t.item() for t in to_list(batch, 3)] == [0, 1, 2]
    assert to_sparse_coo(batch, 3).to_dense().tolist() == [0, 1, 2]


def test_samples_in_separate_memory():
    batch = TensorListCPU([np.full((2,), k, np.int32) for k in range(3)], contiguous=False)
    assert to_dense(batch, 3, "x").tolist() == [[0, 0], [1, 1], [2, 2]]


def test_ragged_is_no_dense_tensor():
    with pytest.raises(ShapeError, match=r'"boxes".*\(3,\), \(0,\), \(1,\).*DALIRaggedIterator'):
        to_dense(ragged(), 3, "boxes")
    assert to_dense(ragged(), 1, "boxes").tolist() == [[1, 2, 0]]


def test_list():
    batch = ragged()
    tensors = to_list(batch, 3)
    assert [t.tolist() for t in tensors] == [[1, 2, 0], [], [5]]
    assert tensors[0].data_ptr() == batch.at(0).ctypes.data
    assert [t.tolist() for t in to_list(batch, [0, 2])] == [[1, 2, 0], [5]]


@pytest.mark.parametrize("dtype", [np.float32, np.int16, np.uint8, np.float64, np.bool_])
def test_sparse(dtype):
    tensor = to_sparse_coo(ragged(dtype), 3)
    assert tensor.layout is torch.sparse_coo
    assert tensor.is_coalesced()
    assert tensor.shape == (3, 3)
    assert tensor.indices().tolist() == [[0, 0, 0, 2], [0, 1, 2, 0]]
    assert tensor.values().tolist() == np.array([1, 2, 0, 5], dtype).tolist()
    assert tensor.values().dtype == torch.from_numpy(np.empty(0, dtype)).dtype
    assert to_sparse_coo(ragged(dtype), [0, 2]).shape == (2, 3)
    assert to_sparse_coo(ragged(dtype), 0).shape == (0, 0)


def test_sparse_images():
    a = np.arange(6, dtype=np.int32).reshape(2, 3) + 1
    b = np.arange(4, dtype=np.int32).reshape(4, 1) + 10
    tensor = to_sparse_coo(TensorListCPU([a, b], contiguous=False), 2)
    expected = np.zeros((2, 4, 3), np.int32)
    expected[0, :2, :3] = a
    expected[1, :4, :1] = b
    assert tensor.to_dense().tolist() == expected.tolist()


def test_feed_ndarray():
    array = np.arange(6, dtype=np.int16).reshape(2, 3)
    target = torch.zeros((2, 3), dtype=torch.int16)
    assert feed_ndarray(TensorListCPU(array), target) is target
    assert target.tolist() == array.tolist()
    strided = torch.zeros((3, 2), dtype=torch.int16).T
    assert feed_ndarray(TensorCPU(array), strided).tolist() == array.tolist()


def test_feed_ndarray_into_something_else():
    batch = TensorListCPU(np.zeros((2, 3), np.int16))
    with pytest.raises(DataTypeError, match=r"torch\.int16.*torch\.int32") as caught:
        feed_ndarray(batch, torch.zeros((2, 3), dtype=torch.int32))
    assert isinstance(caught.value, AssertionError)  # what DALI raises
    with pytest.raises(ShapeError, match=r"\(2, 3\).*\(3, 2\)") as caught:
        feed_ndarray(batch, torch.zeros((3, 2), dtype=torch.int16))
    assert isinstance(caught.value, AssertionError)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.bfloat16])
def test_contact_sheets_of_tensors(dtype):
    levels = torch.arange(2 * 3 * 8 * 8).reshape(2, 3, 8, 8) % 200
    images = levels.to(dtype).requires_grad_(dtype.is_floating_point)
    expected = contact_sheet(levels.numpy().astype(np.uint8), size=8)
    for data in (images, [{"data": images, "label": torch.zeros(2, 0)}]):
        found = contact_sheet(data, size=8)
        assert np.array_equal(found[34:42, :34], expected[34:42, :34])
