"""Pixels of masks between two values."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.mask_pixels import count_between, place_between
from headrace.tensors.rows import Rows


@pytest.mark.parametrize("dtype", [np.int32, np.float32])
def test_those_between_two_values_are_found_by_number(dtype):
    draw = np.random.default_rng(0)
    masks = [draw.integers(0, 9, size).astype(dtype) for size in (1, 7, 300)]
    rows = Rows(masks)
    low, high = np.array([3, 8, 0], dtype), np.array([5, 8, 3], dtype)
    inside = [np.flatnonzero((m >= a) & (m <= b)) for m, a, b in zip(masks, low, high, strict=True)]
    counts = count_between(rows.addresses, rows.sizes, low, high)
    assert counts.tolist() == [len(each) for each in inside]
    for number in range(counts.max()):
        places = np.where(counts > number, number, -1)
        place_between(rows.addresses, rows.sizes, low, high, places)
        assert places.tolist() == [e[number] if number < len(e) else -1 for e in inside]
