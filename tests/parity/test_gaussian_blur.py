"""`fn.gaussian_blur` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

TYPES = (
    *("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64"),
    *("float32", "float64"),
)
LAYOUTS = {
    "HWC": (17, 80, 3),
    "HW": (17, 80),
    "CHW": (3, 17, 80),
    "W": (80,),
    "H": (9,),
    "CW": (3, 20),
    "DHW": (6, 7, 80),
    "DHWC": (6, 7, 30, 3),
    "CDHW": (2, 6, 7, 8),
    "CHWC": (2, 6, 7, 3),
    "AB": (6, 7),
    "ABC": (6, 7, 8),
    "FHWC": (3, 6, 40, 3),
    "FHW": (3, 6, 7),
    "FW": (3, 70),
    "FCHW": (3, 2, 6, 7),
    "CFHW": (2, 3, 6, 7),
    "FDHWC": (2, 3, 4, 5, 2),
    "FCDHW": (2, 3, 4, 5, 6),
}


def noise(*shape: int, dtype: str = "uint8", seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random(shape) * 120).astype(dtype)


@pytest.mark.sweep
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_layouts(layout, dtype):
    assert_parity(
        lambda lib, x: (
            lib.fn.gaussian_blur(x, sigma=1.2),
            lib.fn.gaussian_blur(x, window_size=5, dtype=lib.types.FLOAT),
        ),
        [noise(*LAYOUTS[layout], dtype=dtype)] * 2,
        layouts=layout,
        differing=0.005 if np.prod(LAYOUTS[layout]) < 1000 else 0.001,
    )


@pytest.mark.parametrize("shape", [(70,), (7, 80), (4, 5, 6)])
def test_without_a_layout_every_axis_is_blurred(shape):
    assert_parity(
        lambda lib, x: lib.fn.gaussian_blur(x, sigma=1.1), [noise(*shape, dtype="float32")]
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_element_types(dtype):
    assert_parity(
        lambda lib, x: (
            lib.fn.gaussian_blur(x, sigma=0.8),
            lib.fn.gaussian_blur(x, sigma=1.7, dtype=lib.types.FLOAT),
        ),
        [noise(40, 50, 3, dtype=dtype)],
        layouts="HWC",
    )


def test_half_precision_is_within_its_own_precision():
    # DALI rounds weights and sums to float16, Headrace only the result.
    assert_parity(
        lambda lib, x: lib.fn.gaussian_blur(x, sigma=1.5),
        [noise(20, 30, 3, dtype="float16")],
        layouts="HWC",
        relative=3e-3,
        absolute=3e-3,
    )


@pytest.mark.parametrize("shape", [(1, 1, 1), (1, 30, 2), (2, 3, 1), (5, 1, 3), (3, 3, 3)])
def test_windows_larger_than_the_image(shape):
    assert_parity(
        lambda lib, x: tuple(
            lib.fn.gaussian_blur(x, sigma=sigma, window_size=size)
            for sigma, size in ((1.5, 0), (0, 5), (0.1, 0), (0, 1), (0.8, 31), (7, 0))
        ),
        [noise(*shape, dtype="float32")],
        layouts="HWC",
    )


def test_reach_follows_sigma_in_single_precision():
    impulse = np.zeros((1, 101, 1), np.float32)
    impulse[0, 50] = 1
    sigmas = [np.array([1, k / 30], np.float32) for k in range(1, 150, 3)]
    assert_parity(
        lambda lib, x, sigma: lib.fn.gaussian_blur(x, sigma=sigma),
        [impulse] * len(sigmas),
        sigmas,
        layouts=["HWC", ""],
        absolute=1e-7,
        relative=1e-4,
    )


def test_values_for_each_axis():
    assert_parity(
        lambda lib, x: (
            lib.fn.gaussian_blur(x, sigma=(1.0, 3.0)),
            lib.fn.gaussian_blur(x, sigma=(0, 3.0), window_size=(7, 0)),
            lib.fn.gaussian_blur(x, window_size=(7, 3)),
        ),
        [noise(20, 80, 3)],
        layouts="HWC",
    )
    assert_parity(
        lambda lib, x: lib.fn.gaussian_blur(x, sigma=(0.5, 1, 2)),
        [noise(6, 20, 30, 3, dtype="float32")],
        layouts="DHWC",
    )


def test_values_for_each_sample_of_a_ragged_batch():
    images = [noise(20 + 3 * k, 90 - 7 * k, 3, seed=k) for k in range(6)]
    assert_parity(
        lambda lib, x, sigma, size: (
            lib.fn.gaussian_blur(x, sigma=sigma),
            lib.fn.gaussian_blur(x, window_size=size),
            lib.fn.gaussian_blur(x, sigma=sigma, window_size=size),
        ),
        images,
        [np.array(0.3 + k / 2, np.float32) for k in range(6)],
        [np.array([2 * k + 1, 3], np.int32) for k in range(6)],
        layouts=["HWC", "", ""],
    )


@pytest.mark.parametrize("layout", ["FHWC", "FCHW", "CFHW"])
def test_values_for_each_frame(layout):
    assert_parity(
        lambda lib, x, sigma: lib.fn.gaussian_blur(x, sigma=lib.fn.per_frame(sigma)),
        [noise(3, 3, 20, 30, dtype="float32")],
        [np.array([[1, 2], [2, 1], [3, 3]], np.float32)],
        layouts=[layout, ""],
    )


def test_views_are_read_in_place():
    assert_parity(
        lambda lib, x: lib.fn.gaussian_blur(lib.fn.crop(lib.fn.flip(x), crop=(20, 70)), sigma=1),
        [noise(40, 90, 3)],
        layouts="HWC",
    )


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "be 0 at the same time"),
        ({"sigma": 0.0}, "be 0 at the same time"),
        ({"sigma": (0.0, 1.0)}, "be 0 at the same time"),
        ({"sigma": -1.0}, "`sigma` must have non-negative values, got -1"),
        ({"window_size": -1}, "`window_size` must have non-negative values, got -1"),
        ({"window_size": 4}, "ernel window should have odd length, got: 4"),
        ({"sigma": (1.0, 1.0, 1.0)}, "2 elements"),
        ({"window_size": (3, 3, 3)}, "2 elements"),
    ],
)
def test_argument_errors(arguments, match):
    assert_both_raise(
        lambda lib, x: lib.fn.gaussian_blur(x, **arguments),
        [noise(5, 6, 3)],
        layouts="HWC",
        match=match,
    )


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        ("HCW", (5, 2, 6)),
        ("C", (3,)),
        ("F", (3,)),
        ("FC", (3, 2)),
        ("ABDE", (2, 3, 4, 5)),
        ("", (3, 5, 6, 3)),
        ("HFWC", (5, 2, 6, 3)),
        ("HFW", (5, 2, 6)),
        ("HWCF", (5, 6, 3, 2)),
        ("DFHWC", (3, 2, 5, 6, 3)),
        ("FFHW", (2, 2, 5, 6)),
    ],
)
def test_layout_errors(layout, shape):
    assert_both_raise(
        lambda lib, x: lib.fn.gaussian_blur(x, sigma=1.0),
        [noise(*shape, dtype="float32")],
        layouts=layout,
    )


@pytest.mark.parametrize(("dtype", "target"), [("uint8", "INT16"), ("float32", "UINT8")])
def test_other_output_types_are_refused(dtype, target):
    assert_both_raise(
        lambda lib, x: lib.fn.gaussian_blur(x, sigma=1.0, dtype=getattr(lib.types, target)),
        [noise(5, 6, 3, dtype=dtype)],
        layouts="HWC",
        match="`dtype`",
    )


def test_booleans_are_refused():
    assert_both_raise(
        lambda lib, x: lib.fn.gaussian_blur(x, sigma=1.0), [np.ones((3, 3, 1), bool)], layouts="HWC"
    )


@pytest.mark.parametrize(("layout", "shape"), [("FHWC", (0, 4, 5, 3)), ("CFHW", (3, 0, 5, 4))])
def test_sequences_without_frames(layout, shape):
    assert_parity(
        lambda lib, x: lib.fn.gaussian_blur(x, sigma=1.0, dtype=lib.types.FLOAT),
        [np.ones(shape, np.uint8)],
        layouts=layout,
    )
