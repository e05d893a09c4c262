"""What workers hand over, written to memory and read back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from headrace.errors import DataTypeError
from headrace.operators.support.external.parallel.wire_format import copied, read, unpack, write
from headrace.tensors.pool import HOST_POOL

DTYPES = st.sampled_from(["u1", "i2", "f2", "f4", "f8", "i8", "?"])


def through_memory(parts):
    blocks = []

    def take(size):
        blocks.append(np.zeros(size + 64, np.uint8))
        return blocks[0]

    described = write(parts, take)
    return read(blocks[0], described)


@st.composite
def batches(draw):
    dtype, ndim = draw(DTYPES), draw(st.integers(0, 3))
    shape = st.tuples(*[st.integers(0, 4)] * ndim)
    count = draw(st.integers(1, 5))
    shapes = [draw(shape)] * count if draw(st.booleans()) else [draw(shape) for _ in range(count)]
    return [draw(arrays.arrays(dtype, s)) for s in shapes]


@given(st.lists(batches(), min_size=1, max_size=3))
def test_samples_are_the_same_behind_shared_memory(data):
    parts = through_memory([unpack(batch) for batch in data])
    for part, batch in zip(parts, data, strict=True):
        assert len(part.samples) == len(batch)
        for got, want in zip(part.samples, batch, strict=True):
            assert got.dtype == want.dtype
            assert got.shape == want.shape
            np.testing.assert_array_equal(got, want)
            assert got.nbytes == 0 or got.ctypes.data % got.itemsize == 0


def test_samples_of_one_shape_are_one_array():
    (part,) = through_memory([unpack([np.ones((2, 3)), np.zeros((2, 3))])])
    assert part.dense.shape == (2, 2, 3)
    assert all(s.base is part.dense.base for s in part.samples)


def test_views_are_taken_without_being_contiguous():
    image = np.arange(24).reshape(2, 3, 4)
    (part,) = through_memory([unpack([image[:, ::-1], image[:, ::-1] + 1])])
    np.testing.assert_array_equal(part.samples[0], image[:, ::-1])


def test_a_batch_without_samples():
    (part,) = through_memory([unpack([])])
    assert part.samples == []


def test_layouts_come_along():
    from headrace.tensors import TensorListCPU

    (part,) = through_memory([unpack(TensorListCPU(np.zeros((2, 4, 4, 3), np.uint8), "HWC"))])
    assert part.layout == "HWC"


def test_copies_are_apart():
    dense, ragged = unpack(np.zeros((2, 3))), unpack([np.zeros(1), np.zeros(2)])
    for part in (dense, ragged):
        other = copied(part, HOST_POOL)
        other.samples[0][...] = 1
        assert not part.samples[0].any()


def test_data_on_a_gpu_does_not_go_through_shared_memory():
    part = unpack(np.zeros((1, 1)))
    part.on_gpu = object()
    with pytest.raises(DataTypeError, match='parallel="threads"'):
        write([part], lambda size: np.zeros(size, np.uint8))
