from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.operators.support.lazy_image import LazyImage, LazyMirror, LazyWindow
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType, to_dali_type
from tests.support.run_operator import PlainContext, call


class Image(LazyImage):
    """A lazy image that remembers what it was asked for."""

    def __init__(self, array: np.ndarray) -> None:
        self.array = array
        self.shape = array.shape
        self.dtype = array.dtype
        self.asked: list[tuple[int, int, int, int]] = []

    def region(self, y0: int, x0: int, y1: int, x1: int, empty: Any = None) -> np.ndarray:
        height, width, _ = self.shape
        assert 0 <= y0 <= y1 <= height
        assert 0 <= x0 <= x1 <= width
        self.asked.append((y0, x0, y1, x1))
        return self.array[y0:y1, x0:x1]


def image(height: int = 12, width: int = 17) -> Image:
    return Image(np.arange(height * width * 3, dtype=np.uint16).reshape(height, width, 3))


class Made:
    """An operator and its context."""

    def __init__(self, op: Any, specs: Any, context: PlainContext) -> None:
        self._made = op, specs, context

    def cpu(self, data: Any) -> Any:
        return call(*self._made, data)

    def lazy(self, data: Any) -> Any:
        return call(*self._made, data, lazy=True)


def pixels(image: Any) -> np.ndarray:
    """All of an image, lazy or not."""
    return image if isinstance(image, np.ndarray) else image.region(0, 0, *image.shape[:2])


def made(name: str, given: Any = np.uint16, **arguments: Any) -> Made:
    schema = find(name)
    args = {a.name: a.default for a in schema.args.values()}
    args |= {k: schema.args[k].type.constant(v) for k, v in arguments.items()}
    op = schema.cls(args)
    specs = op.infer(Spec(to_dali_type(given), 3, "HWC"))
    return Made(op, specs, PlainContext(SimpleNamespace(**args)))


CASES = [
    ("crop", {}),
    ("crop", {"crop": (5, 6)}),
    ("crop", {"crop": (5, 6), "dtype": DALIDataType.FLOAT}),
    ("crop", {"crop": (15, 6), "out_of_bounds_policy": "pad", "fill_values": 7}),
    ("crop", {"crop": (15, 20), "out_of_bounds_policy": "reflect_101"}),
    ("crop", {"crop": (15, 6), "out_of_bounds_policy": "trim_to_shape"}),
    ("slice", {"start": (3, 2), "shape": (4, 5)}),
    ("slice", {"start": (3, 2), "shape": (0, 5)}),
    ("slice", {"start": (1, 2, 0), "shape": (9, 4, 1), "axes": (0, 1, 2)}),
    ("slice", {"start": (-9, 0), "shape": (4, 5), "out_of_bounds_policy": "pad"}),
    ("flip", {}),
    ("flip", {"horizontal": 0}),
    ("flip", {"horizontal": 0, "vertical": 1}),
    ("flip", {"horizontal": 1, "vertical": 1}),
]


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_lazy_or_not_is_the_same(name, arguments):
    op = made(name, **arguments)
    source = image()
    wanted = op.cpu(source.array)
    np.testing.assert_array_equal(op.cpu(source), wanted)
    np.testing.assert_array_equal(pixels(op.lazy(source)), wanted)
    np.testing.assert_array_equal(pixels(op.lazy(source.array)), wanted)
    found = op.lazy(source)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype


@pytest.mark.parametrize(("name", "arguments"), CASES)
def test_chains(name, arguments):
    first = made(name, **arguments)
    source = image()
    once, later = first.cpu(source.array), first.lazy(source)
    for second, options in (("flip", {"vertical": 1}), ("crop", {"crop": (2, 0), "crop_pos_y": 1})):
        if second == "crop" and once.shape[0] < 2:
            continue
        op = made(second, once.dtype, **options)
        np.testing.assert_array_equal(pixels(op.lazy(later)), op.cpu(np.ascontiguousarray(once)))


def test_only_the_window_is_asked_for():
    flip = made("flip", vertical=1)
    crop = made("crop", crop=(4, 5), crop_pos_x=0.0, crop_pos_y=0.0)
    source = image()
    lazily = crop.lazy(flip.lazy(source))
    assert source.asked == []
    pixels(lazily)
    assert source.asked == [(8, 12, 12, 17)]


def test_padding_asks_only_for_what_shows():
    crop = made("slice", start=(-3, 15), shape=(5, 9), axes=(0, 1), out_of_bounds_policy="pad")
    source = image()
    crop.cpu(source)
    assert source.asked == [(0, 15, 2, 17)]


regions = st.tuples(st.integers(0, 9), st.integers(0, 9)).map(sorted)


@given(regions, regions, st.booleans(), st.booleans())
def test_regions(rows, columns, mirror_rows, mirror_columns):
    source = image()
    y0, y1 = rows
    x0, x1 = columns
    window = LazyWindow(source, 2, 3, 9, 9)
    array = source.array[2:11, 3:12]
    np.testing.assert_array_equal(window.region(y0, x0, y1, x1), array[y0:y1, x0:x1])
    mirror = LazyMirror(window, rows=mirror_rows, columns=mirror_columns)
    array = array[:: -1 if mirror_rows else 1, :: -1 if mirror_columns else 1]
    np.testing.assert_array_equal(mirror.region(y0, x0, y1, x1), array[y0:y1, x0:x1])
