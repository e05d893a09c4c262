"""`fn.equalize` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

BATCHES = {
    "HWC": [(9, 11, 3), (1, 1, 3), (40, 33, 3)],
    "HW": [(9, 11), (3, 70), (1, 5)],
    "CHW": [(3, 9, 11), (2, 0, 4)],
    "FHW": [(3, 9, 11), (0, 3, 3)],
    "FHWC": [(2, 9, 11, 3), (0, 3, 3, 3)],
    "FCHW": [(2, 3, 9, 11)],
}


def levels(shape, seed=0):
    rng = np.random.default_rng(seed)
    return (rng.random(shape) ** (3 * rng.random()) * rng.integers(1, 257)).astype(np.uint8)


@pytest.mark.parametrize("layout", BATCHES)
def test_layouts(layout):
    batch = [levels(shape) for shape in BATCHES[layout]]
    assert_parity(lambda lib, x: lib.fn.equalize(x), batch, layouts=layout, max_levels=0)


def test_many_histograms():
    batch = [levels((1 + seed % 37, 1 + seed % 23, 1 + seed % 5), seed) for seed in range(60)]
    batch += [np.full((3, 4, 2), 99, np.uint8), levels((5, 6, 20))]
    assert_parity(lambda lib, x: lib.fn.equalize(x), batch, layouts="HWC", max_levels=0)


@pytest.mark.parametrize("shape", [(9, 11), (9, 11, 3), (2, 9, 11, 3)])
def test_layouts_by_default(shape):
    assert_parity(lambda lib, x: lib.fn.equalize(x), [levels(shape)], max_levels=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_former_name():
    assert_parity(
        lambda lib, x: lib.fn.experimental.equalize(x),
        [levels((9, 11, 3))],
        layouts="HWC",
        max_levels=0,
    )


@pytest.mark.parametrize(
    ("layout", "shape", "dtype"),
    [
        ("HWC", (3, 3, 3), "float32"),
        ("HWC", (3, 3, 3), "int8"),
        ("DHWC", (2, 3, 3, 3), "uint8"),
        ("CFHW", (2, 3, 3, 3), "uint8"),
        ("", (5,), "uint8"),
    ],
)
def test_data_that_is_not_taken(layout, shape, dtype):
    assert_both_raise(lambda lib, x: lib.fn.equalize(x), [np.zeros(shape, dtype)], layouts=layout)
