"""`filter_separably` gives what the CPU's does."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace.kernels.gpu.filter as filter_module
from headrace.kernels.cpu.filter import filter_separably as filter_on_cpu
from headrace.kernels.cpu.filter import gaussian_window
from headrace.kernels.gpu.filter import FilterWindows, filter_separably, gaussian_windows
from tests.support.gpu.session import gpu_session

INTEGERS = ["uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"]
FLOATS = ["float16", "float32", "float64"]
SHAPES = [(21, 70), (3, 200), (40, 129), (1, 64)]
"""Rows of at least 64 elements: there the CPU rounds a product and a sum once, as on the GPU."""
REACHES = [1, 4, 7, 16, 17, 33]


def noise(shape, dtype, seed=0):
    return (np.random.default_rng(seed).random(shape) * 100).astype(dtype)


def filter_on_gpu(rows, dtype, first_axis, sigmas, sizes):
    with gpu_session(scattered=True) as session:
        batch = session.upload(rows)
        out = session.queue.empty(batch.shapes, dtype)
        windows = gaussian_windows(np.asarray(sigmas, float), np.asarray(sizes))
        filter_separably(session.queue, batch, out, first_axis, windows)
        return session.download(out)


def check(rows, dtype, first_axis, reaches, exact=True):
    """`reaches`: for each sample, one for each axis."""
    sizes = 2 * np.array(reaches) + 1
    sigmas = np.maximum(sizes / 6, 0.5)
    found = filter_on_gpu(rows, dtype, first_axis, sigmas, sizes)
    for row, sigma, size, got in zip(rows, sigmas, sizes, found, strict=True):
        windows = [gaussian_window(float(s), int(z)) for s, z in zip(sigma, size, strict=True)]
        expected = np.empty(row.shape, dtype)
        filter_on_cpu(row, expected, first_axis, windows)
        if exact:
            np.testing.assert_array_equal(got, expected)
        elif got.dtype.kind == "f":
            np.testing.assert_allclose(got, expected, rtol=1e-6)
        else:
            np.testing.assert_allclose(got, expected, atol=1)


@pytest.mark.parametrize("dtype", [*INTEGERS, *FLOATS])
def test_types(dtype):
    rows = [noise((*shape, 3), dtype) for shape in SHAPES]
    check(rows, dtype, 0, [(1, 3), (3, 2), (4, 4), (0, 1)])


@pytest.mark.parametrize("dtype", ["int8", "int64", "float16"])
def test_types_of_long_windows_and_of_floating_point_outputs(dtype):
    rows = [noise((*shape, 3), dtype) for shape in SHAPES]
    check(rows, dtype, 0, [(40, 3)] * 4)
    check(rows, "float32", 0, [(1, 3), (3, 2), (4, 4), (0, 1)])


@pytest.mark.parametrize("reach", REACHES)
def test_windows(reach):
    rows = [noise((*shape, 3), "uint8") for shape in SHAPES]
    check(rows, "uint8", 0, [(reach, reach), (reach, 0), (0, reach), (reach // 2, reach)])


@pytest.mark.sweep
@pytest.mark.parametrize("reach", [1, 2, 3, 5, 8, 11, 16, 21, 32])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_windows_that_reach_as_far(reach, dtype):
    rows = [noise((*shape, 3), dtype) for shape in SHAPES]
    check(rows, dtype, 0, [(reach, reach)] * 4)


@pytest.mark.parametrize("reaches", [(2, 2), (7, 3), (13, 9), (20, 32)])
def test_tall_strips(reaches, monkeypatch):
    monkeypatch.setattr(filter_module, "_ENOUGH_STRIPS", 0)
    rows = [noise((*shape, 3), "uint8") for shape in [(150, 65), (128, 131), (300, 64)]]
    check(rows, "uint8", 0, [reaches] * 3)
    check([noise((2, *row.shape), "uint8") for row in rows], "uint8", 1, [reaches] * 3)


def test_limits_of_bytes_are_not_left():
    rows = [np.full((20, 70, 3), value, dtype) for value, dtype in [(255, "uint8"), (0, "uint8")]]
    check(rows, "uint8", 0, [(8, 8), (5, 32)])
    check([np.full((40, 70, 3), 65535, "uint16")], "uint16", 0, [(32, 32)])


def test_long_lines():
    rows = [noise((2, 70, 3), "float64")] * 2
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(filter_module, "_MOST_LINE_BYTES", 70 * 3 * 8 - 1)
        check(rows, "float64", 0, [(1, 2), (3, 3)])


@pytest.mark.parametrize("channels", [1, 2, 4, 5])
def test_channels(channels):
    rows = [noise((*shape, channels), "uint8") for shape in SHAPES]
    check(rows, "uint8", 0, [(3, 2), (1, 4), (0, 0), (0, 3)])


@pytest.mark.parametrize("extent", [1, 2, 3, 5])
@pytest.mark.parametrize("reach", [3, 50])
def test_windows_beyond_the_data(extent, reach):
    rows = [noise(s, "float32") for s in [(extent, 70, 1), (70, extent, 1), (extent, extent, 1)]]
    check(rows, "float32", 0, [(reach, reach)] * 3, exact=False)


def test_channels_first_and_frames():
    rows = [noise((2, 3, *shape), "uint8") for shape in SHAPES]
    check(rows, "uint8", 2, [(2, 3)] * 4)
    check(rows, "uint8", 2, [(40, 3)] * 4)


@pytest.mark.parametrize("reach", [3, 35])
def test_one_axis(reach):
    rows = [noise(shape, "float32") for shape in SHAPES]
    check(rows, "float32", 1, [(reach,)] * 4)
    check(rows, "float32", 0, [(reach,)] * 4, exact=False)  # on the CPU, a row is a single pixel
    check([noise((300,), "int16"), noise((64,), "int16")], "int16", 0, [(reach,)] * 2)


@pytest.mark.parametrize(("dtype", "channels"), [("uint8", 1), ("float32", 6)])
def test_volumes(dtype, channels):
    rows = [noise(s, dtype) for s in [(4, 9, 70, channels), (1, 1, 64, channels)]]
    check(rows, dtype, 0, [(1, 2, 3), (4, 0, 2)])
    check(rows, dtype, 0, [(33, 2, 3), (4, 34, 2)])


def test_samples_of_different_channels():
    rows = [noise((9, 70, c), "uint8") for c in (1, 3, 30)]
    check(rows, "uint8", 0, [(3, 2)] * 3)


def test_empty_samples():
    rows = [noise(s, "uint8") for s in [(0, 70, 3), (9, 0, 3), (9, 70, 3)]]
    check(rows, "uint8", 0, [(1, 1)] * 3)
    check(rows, "uint8", 0, [(50, 1)] * 3)
    check(rows[:2], "uint8", 0, [(1, 1)] * 2)


def test_what_is_beyond_the_window_does_not_matter():
    row = noise((20, 80, 1), "float32")
    row[10, 40], row[3, 70] = np.nan, np.inf
    check([row], "float32", 0, [(5, 3)])
    check([row, row], "float32", 0, [(2, 3), (0, 7)])


def test_limits_are_kept():
    row = np.full((1, 64, 1), 2**31 - 1, np.int32)
    row[:, ::2] = -(2**31)
    check([row], "int32", 0, [(0, 0)])
    check([np.full((2, 64, 1), 2**64 - 1, np.uint64)], "uint64", 0, [(1, 1)])


@given(
    st.lists(
        st.tuples(st.floats(0.01, 50), st.integers(0, 40), st.floats(0.01, 3)),
        min_size=1,
        max_size=6,
    )
)
def test_windows_of_a_batch(values):
    sigmas = np.array([(a, b) for a, _, b in values])
    sizes = np.array([(2 * r + 1, 3) for _, r, _ in values])
    windows = gaussian_windows(sigmas, sizes)
    for i in range(len(values)):
        own = min(i, len(windows.reaches) - 1)
        for axis in range(2):
            expected = gaussian_window(float(sigmas[i, axis]), int(sizes[i, axis]))
            assert windows.reaches[own, axis] == len(expected) - 1
            got = windows.weights[own, axis]
            np.testing.assert_array_max_ulp(got[: len(expected)], expected, 1)
            assert not got[len(expected) :].any()


def test_both_axes_in_one_launch(emulated_gpu):
    with gpu_session() as session:
        batch = session.upload([noise((*shape, 3), "uint8") for shape in SHAPES])
        out = session.queue.empty(batch.shapes, "uint8")
        windows = FilterWindows(np.array([[1, 2]]), np.ones((1, 2, 3), np.float32))
        before = len(emulated_gpu.launches)
        filter_separably(session.queue, batch, out, 0, windows)
        assert len(emulated_gpu.launches) == before + 1
