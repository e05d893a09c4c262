from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernels.cpu.random_crop import crop_windows


def draw(seed, height, width, area=(0.08, 1.0), ratio=(0.75, 4 / 3), attempts=10):
    window, extents = np.empty((1, 4), np.int64), np.array([[height, width]])
    state = tuple(map(np.uint64, (seed, 0, 0, seed % 4)))
    crop_windows(window, extents, tuple(area), tuple(ratio), attempts, np.zeros(1, int), state)
    return tuple(window[0].tolist())


@given(
    st.integers(1, 600),
    st.integers(1, 600),
    st.tuples(st.floats(0, 1), st.floats(0, 1.5)).map(sorted),
    st.tuples(st.floats(0.01, 20), st.floats(0.01, 20)).map(sorted),
    st.integers(0, 12),
    st.integers(0, 2**32),
)
def test_window_is_inside_and_not_empty(height, width, area, ratio, attempts, seed):
    y, x, h, w = draw(seed, height, width, tuple(area), tuple(ratio), attempts)
    assert h >= 1
    assert w >= 1
    assert 0 <= y <= height - h
    assert 0 <= x <= width - w


def test_area_and_ratio_are_uniform_where_everything_fits():
    crops = np.array(
        [draw(i, 1000, 1000, (0.1, 0.3), (0.5, 2.0)) for i in range(20_000)], np.float64
    )
    area = np.sort(crops[:, 2] * crops[:, 3] / 1e6)
    log_ratio = np.sort(np.log(crops[:, 3] / crops[:, 2]))
    steps = np.arange(len(crops)) / len(crops)
    assert np.abs((area - 0.1) / 0.2 - steps).max() < 0.015
    assert np.abs((log_ratio + np.log(2)) / np.log(4) - steps).max() < 0.015
    places = np.sort(crops[:, 0] / (1001 - crops[:, 2]))
    assert np.abs(places - steps).max() < 0.015


@pytest.mark.parametrize(
    ("area", "ratio", "expected"),
    [
        ((0.9, 1.0), (0.2, 0.4), (120, 48)),  # wide image, tall crop
        ((0.9, 1.0), (4.0, 5.0), (50, 200)),  # tall crop impossible
        ((0.9, 1.0), (0.2, 5.0), None),
    ],
)
def test_impossible_areas_give_the_largest_window(area, ratio, expected):
    sizes = {draw(i, 120, 200, area, ratio)[2:] for i in range(200)}
    if expected is None:
        assert len(sizes) > 10
    else:
        assert sizes == {expected}


def test_no_attempts_give_the_largest_window():
    assert {draw(i, 120, 200, attempts=0)[2:] for i in range(50)} == {(120, 160)}
    assert draw(0, 120, 200, area=(0.1, 0.25), attempts=0)[2:] == (
        int(120 * (6000 / 19200) ** 0.5),
        int(160 * (6000 / 19200) ** 0.5),
    )


def test_one_pixel():
    assert draw(0, 1, 1) == (0, 0, 1, 1)
    assert draw(0, 1, 100)[2:] == (1, 1)
