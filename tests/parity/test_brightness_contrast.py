"""`fn.brightness_contrast`, `fn.brightness` and `fn.contrast` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

DALI_NAME = {"uint8": "UINT8", "int16": "INT16", "int32": "INT32", "float32": "FLOAT"}
TYPES = tuple(DALI_NAME)
CASES = [
    ("brightness_contrast", {}),
    ("brightness_contrast", {"brightness": 0.7, "contrast": 1.3, "brightness_shift": 0.1}),
    ("brightness_contrast", {"brightness": 1.7, "contrast": 0.3, "contrast_center": 13.0}),
    ("brightness_contrast", {"contrast": -2.0}),
    ("brightness", {"brightness": 0.5, "brightness_shift": -0.2}),
    ("brightness", {"brightness": 1e30, "brightness_shift": 1e20}),
    ("contrast", {"contrast": 1.7}),
    ("contrast", {"contrast": 0.0}),
    ("contrast", {"contrast": 0.5, "contrast_center": -100.0}),
]


def numbers(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(1)
    if dtype == "float32":
        return (rng.random((19, 17, 3), np.float32) - 0.4) * 500
    info = np.iinfo(dtype)
    few = rng.integers(max(info.min, -300), min(info.max, 300), (18, 17, 3))
    all_of_them = rng.integers(info.min, info.max, (1, 17, 3), endpoint=True)
    return np.concatenate([few, all_of_them]).astype(dtype)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.sweep
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_element_types(source, target):
    exact(
        lambda lib, x: tuple(
            getattr(lib.fn, name)(x, dtype=getattr(lib.types, DALI_NAME[target]), **arguments)
            for name, arguments in CASES
        ),
        [numbers(source)],
        layouts="HWC",
    )


@pytest.mark.parametrize("name", ["brightness_contrast", "brightness", "contrast"])
def test_output_type_is_that_of_the_input(name):
    exact(lambda lib, x: getattr(lib.fn, name)(x), [numbers("int16")], layouts="HWC")


def test_values_for_each_sample_of_a_ragged_batch():
    rng = np.random.default_rng(2)
    images = [rng.integers(0, 256, (k, 13 - k, 3)).astype(np.uint8) for k in range(1, 9)]
    draws = [[np.array(v, np.float32) for v in rng.uniform(0, 2, 8)] for _ in range(4)]
    exact(
        lambda lib, x, b, s, c, cc: lib.fn.brightness_contrast(
            x, brightness=b, brightness_shift=s, contrast=c, contrast_center=cc
        ),
        images,
        *draws,
        layouts=["HWC", "", "", "", ""],
    )


@pytest.mark.parametrize("layout", ["DHWC", "FHWC", ""])
def test_four_axes(layout):
    images = np.random.default_rng(3).integers(0, 256, (3, 5, 6, 3)).astype(np.uint8)
    exact(
        lambda lib, x: lib.fn.brightness_contrast(x, brightness=1.2, contrast=0.7),
        [images],
        layouts=layout,
    )


def test_values_for_each_frame():
    clip = np.random.default_rng(4).integers(0, 256, (3, 5, 6, 3)).astype(np.uint8)
    values = np.array([0.5, 1, 1.5], np.float32)
    exact(
        lambda lib, x, v: lib.fn.brightness_contrast(
            x, brightness=lib.fn.per_frame(v), contrast=1.1
        ),
        [clip],
        [values],
        layouts=["FHWC", ""],
    )


def test_views_are_read_in_place():
    exact(
        lambda lib, x: lib.fn.brightness(lib.fn.crop(lib.fn.flip(x), crop=(9, 8)), brightness=1.3),
        [numbers("uint8")],
        layouts="HWC",
    )


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint32", "int64", "float16", "float64"])
def test_other_element_types_are_refused(dtype):
    assert_both_raise(
        lambda lib, x: lib.fn.brightness_contrast(x), [np.ones((3, 4, 1), dtype)], layouts="HWC"
    )
    if dtype != "float64":
        assert_both_raise(
            lambda lib, x: lib.fn.brightness(
                x, dtype=getattr(lib.types, np.dtype(dtype).name.upper())
            ),
            [np.ones((3, 4, 1), np.uint8)],
            layouts="HWC",
            match="`dtype`",
        )


@pytest.mark.parametrize(("layout", "ndim"), [("CHW", 3), ("HW", 2)])
def test_other_layouts_are_refused(layout, ndim):
    assert_both_raise(
        lambda lib, x: lib.fn.contrast(x), [np.ones((3,) * ndim, np.uint8)], layouts=layout
    )


def test_sequences_without_frames():
    sequences = [np.ones((0, 4, 5, 3), np.uint8), np.ones((2, 4, 5, 3), np.uint8)]
    exact(
        lambda lib, x: (
            lib.fn.brightness(x, brightness=2.0),
            lib.fn.contrast(x, dtype=lib.types.FLOAT),
        ),
        sequences,
        layouts="FHWC",
    )
    assert_both_raise(
        lambda lib, x, b: lib.fn.brightness(x, brightness=b),
        sequences,
        [np.ones(0, np.float32), np.ones(2, np.float32)],
        layouts=["FHWC", "F"],
        match="no frames",
    )


def test_arguments_are_float32():
    # 0.9 as float64 would move what is near a half to its other side.
    exact(
        lambda lib, x: lib.fn.brightness_contrast(
            x, brightness_shift=0.9, contrast=0.6, contrast_center=0.0
        ),
        [np.arange(-32768, 32768, dtype=np.int16).reshape(256, 256, 1)],
        layouts="HWC",
    )
