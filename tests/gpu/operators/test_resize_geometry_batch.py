"""Geometry of whole batches is that of each sample by itself, to the last bit."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from penstock.errors import ArgumentValueError
from penstock.kernels.cpu.random import sample_uniforms
from penstock.kernels.cpu.random_crop import choose_crop, uniforms_needed
from penstock.kernels.gpu.random_crop import random_crops
from penstock.operators.image.resize_geometry import MODES, resize_geometry
from penstock.operators.image.resize_geometry_batch import OneByOneError, batch_geometry


@pytest.fixture(autouse=True)
def gpu_runtime() -> None:
    """Nothing runs on a GPU here."""


def assert_same(extents, sizes, mode, max_size, rois, subpixel):
    """All arguments but the last three are lists, a tuple for each sample."""
    expected = []
    for i, (extent, size) in enumerate(zip(extents, sizes, strict=True)):
        roi = None if rois is None else (tuple(rois[0][i]), tuple(rois[1][i]))
        try:
            expected.append(resize_geometry(extent, size, mode, max_size, roi, subpixel))
        except (ArgumentValueError, OverflowError):
            expected = None
            break

    def arrays():
        regions = None
        if rois is not None:
            regions = tuple(columns(r, np.float64) for r in rois)
        return batch_geometry(
            columns(extents, np.int64),
            columns(sizes, np.float64),
            mode,
            max_size,
            regions,
            subpixel,
            FILTERS,
        )

    if expected is None:
        with pytest.raises(OneByOneError):
            arrays()
        return
    found = arrays()
    for k, name in enumerate(("in_size", "out_size", "start", "end")):
        wanted = np.array([[axis[k] for axis in sample] for sample in expected]).T
        np.testing.assert_array_equal(np.broadcast_to(found[name], wanted.shape), wanted, name)
    np.testing.assert_array_equal(found["length"], found["out_size"])
    assert (found["begin"] == 0).all()
    assert (found["step"] == 1).all()
    for i, sample in enumerate(expected):
        for axis, (_, out_size, start, end) in enumerate(sample):
            shrinks = np.float32(abs(end - start)) > out_size
            filters = np.broadcast_to(found["filter"][axis], len(expected))
            assert filters[i] == FILTERS[0 if shrinks else 1][0]


FILTERS = np.array([3]), np.array([2])


def columns(values, dtype):
    """One column where all samples have the same values, as the engine has it."""
    found = np.array(values, dtype).T
    if (found == found[:, :1]).all():
        found = found[:, :1]
    return np.ascontiguousarray(found)


pixels = st.floats(-50, 700) | st.integers(-40, 300).map(float) | st.just(0.0)
odd = st.sampled_from([-0.0, 0.4, 1e-30, 2.0**31, 1e39, float("inf"), float("nan")])
regions = st.floats(-50, 700) | st.integers(-10, 300).map(float)


@st.composite
def requests(draw):
    ndim = draw(st.sampled_from([2, 3]))
    count = draw(st.integers(1, 5))

    def each(values):
        return [draw(st.tuples(*[values] * ndim)) for _ in range(count)]

    extents = each(st.integers(0, 600))
    sizes = each(pixels if draw(st.integers(0, 9)) else pixels | odd)
    max_size = draw(st.none() | st.tuples(*[st.floats(-1, 400)] * ndim))
    rois = draw(st.none() | st.builds(lambda: (each(regions), each(regions))))
    return extents, sizes, draw(st.sampled_from(MODES)), max_size, rois, draw(st.booleans())


@settings(max_examples=400, deadline=None)
@given(requests())
def test_any_request(request_):
    assert_same(*request_)


@pytest.mark.parametrize("mode", MODES)
def test_thin_regions(mode):
    rois = [(5.0, 3.0), (2.0, 2.0)], [(5.0, 3.0004), (2.0, 9.0)]
    assert_same([(20, 30)] * 2, [(10.0, 0.0)] * 2, mode, None, rois, True)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 2000), st.integers(1, 2000)), min_size=1, max_size=6),
    st.tuples(st.floats(0, 1.5), st.floats(0.01, 1.5)),
    st.tuples(st.floats(1e-3, 1e3), st.floats(1, 100)),
    st.integers(0, 12),
    st.integers(0, 1 << 32),
)
def test_any_random_crop(extents, area, ratio, attempts, seed):
    area = min(area), max(area)
    ratio = ratio[0], ratio[0] * ratio[1]
    size, iteration = (224, 57), seed >> 7
    found = random_crops(
        columns(extents, np.int64),
        len(extents),
        size,
        area,
        ratio,
        attempts,
        seed,
        iteration,
        FILTERS,
    )
    for i, (height, width) in enumerate(extents):
        uniforms = sample_uniforms(seed, iteration, i, uniforms_needed(attempts)).tolist()
        y, x, rows, cols = choose_crop(height, width, uniforms, area, ratio, attempts)
        for axis, (extent, out, begin, length) in enumerate(
            zip((height, width), size, (y, x), (rows, cols), strict=True)
        ):
            kind = FILTERS[0 if length > out else 1][0]
            wanted = (extent, out, begin, begin + length, kind, 0, out, 1)
            assert found[axis, i].tolist() == wanted
