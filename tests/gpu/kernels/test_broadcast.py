"""Geometry of whole batches against that of single samples."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernels.cpu.broadcast import common_shape
from headrace.kernels.gpu.broadcast import common_shapes, merged_axes
from headrace.kernels.gpu.pointwise_reading import SourceAddressing, reading
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch, contiguous_strides

EXTENTS = st.sampled_from([0, 1, 1, 2, 3, 5])


@st.composite
def batches(draw, fitting=True):
    """Shapes of a few operands of a few samples: a list for each operand."""
    ndim = draw(st.integers(0, 6))
    ranks = draw(st.lists(st.integers(0, ndim), min_size=1, max_size=3))
    ranks[0] = ndim
    samples = []
    for _ in range(draw(st.integers(1, 4))):
        whole = [draw(EXTENTS) for _ in range(ndim)]
        shapes = []
        for rank in ranks:
            taken = whole[ndim - rank :]
            ones = [draw(st.booleans()) for _ in taken]
            shapes.append(tuple(1 if one else e for e, one in zip(taken, ones, strict=True)))
        if not fitting and draw(st.booleans()):
            shapes[-1] = tuple(draw(EXTENTS) for _ in shapes[-1])
        samples.append(shapes)
    return [
        np.array([s[k] for s in samples], np.int64).reshape(len(samples), rank)
        for k, rank in enumerate(ranks)
    ]


@given(batches(fitting=False))
def test_common_shapes(shapes):
    found, bad = common_shapes(shapes)
    for i in range(len(shapes[0])):
        try:
            want = common_shape([tuple(s[i].tolist()) for s in shapes])
        except ValueError:
            assert i in bad
            continue
        assert i not in bad
        assert tuple(found[i].tolist()) == want


def places(found: SourceAddressing, shapes: np.ndarray, sample: int, k: int) -> np.ndarray | None:
    """Element numbers that source `k` is read at, as the kernel computes them; None in step."""
    access = found.accesses[k]
    size = int(np.prod(shapes[sample]))
    if access is None:
        return None
    place = np.zeros(size, np.int64)
    if access:
        assert found.extents is not None
        extents = found.extents[sample % len(found.extents)]
        at = np.unravel_index(np.arange(size), extents)
        strides = found.strides[k]
        assert strides is not None
        for axis, stride in zip(access, strides[sample % len(strides)], strict=True):
            place += at[axis] * stride
    return place


def device_batch(shapes: np.ndarray) -> DeviceBatch:
    pointers = np.zeros(len(shapes), np.uint64)
    return DeviceBatch(SimpleNamespace(), (), pointers, shapes, np.dtype(np.uint8))


@given(batches())
def test_reading(shapes):
    out, bad = common_shapes(shapes)
    assert not bad.size
    whole = device_batch(out)
    found = reading(out, whole.sizes(), whole.uniform_shape, [device_batch(s) for s in shapes])
    for i in range(len(out)):
        for k, s in enumerate(shapes):
            elements = np.arange(np.prod(s[i])).reshape(s[i])
            want = np.broadcast_to(elements, out[i]).reshape(-1)
            got = places(found, out, i, k)
            np.testing.assert_array_equal(np.arange(want.size) if got is None else got, want)


@given(batches(), st.data())
def test_reading_through_strides(shapes, data):
    out, _ = common_shapes(shapes)
    strides = []
    for s in shapes:
        order = data.draw(st.permutations(range(s.shape[1])))
        inverse = np.argsort(order)
        moved = contiguous_strides(s[:, list(order)], 1)[:, inverse] if len(order) else s
        strides.append(moved * data.draw(st.sampled_from([1, -1])))
    views = [
        StridedBatch(SimpleNamespace(), (), np.zeros(len(s), np.uint64), s, t, np.dtype(np.uint8))
        for s, t in zip(shapes, strides, strict=True)
    ]
    whole = device_batch(out)
    found = reading(out, whole.sizes(), whole.uniform_shape, views)
    for i in range(len(out)):
        for k, (s, t) in enumerate(zip(shapes, strides, strict=True)):
            index = np.indices(s[i]).reshape(s.shape[1], int(np.prod(s[i])))
            elements = (index * t[i][:, None]).sum(axis=0).reshape(s[i])
            want = np.broadcast_to(elements, out[i]).reshape(-1)
            got = places(found, out, i, k)
            np.testing.assert_array_equal(np.arange(want.size) if got is None else got, want)


@pytest.mark.parametrize(
    ("shape", "operand", "axes"),
    [
        ((480, 640, 3), (3,), 2),
        ((480, 640, 3), (480, 640, 1), 2),
        ((480, 640, 3), (480, 1, 1), 2),
        ((480, 640, 3), (640, 1), 3),
        ((2, 3, 4, 5), (3, 4, 1), 3),
        ((2, 3, 4, 5), (2, 1, 1, 5), 3),
    ],
)
def test_axes_are_few(shape, operand, axes):
    assert reading(*uniform(shape), [device_batch(np.array([operand] * 2))]).axes == axes


def uniform(shape):
    shapes = np.array([shape] * 2, np.int64)
    return shapes, shapes.prod(axis=1), shape


def test_samples_agree_on_axes():
    shapes = np.array([[4, 5], [1, 5]])
    merged = merged_axes(shapes, [np.array([[5, 1], [0, 1]])])
    assert merged.extents.tolist() == [[20], [5]]
    merged = merged_axes(shapes, [np.array([[0, 1], [0, 1]])])
    assert merged.extents.tolist() == [[4, 5], [1, 5]]


def test_places_beyond_32_bits():
    shape = (1 << 16, 1 << 16)
    assert reading(*uniform(shape), [device_batch(np.array([shape[1:]] * 2))]).wide
    assert not reading(*uniform((100, 100)), [device_batch(np.array([(100,)] * 2))]).wide
