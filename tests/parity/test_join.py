"""`fn.cat` and `fn.stack` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity, run_graph

DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
DTYPES += ("float16", "float32", "float64", "bool")


def numbered(*shape: int, dtype: str = "int32", first: int = 0) -> np.ndarray:
    return (np.arange(first, first + np.prod(shape, dtype=int)) % 120).astype(dtype).reshape(shape)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


A = [numbered(5, 4, 3), numbered(2, 6, 3)]
B = [numbered(5, 4, 3, first=50), numbered(2, 6, 3, first=70)]


@pytest.mark.parametrize("layout", ["HWC", ""])
def test_axes(layout):
    exact(
        lambda lib, a, b: (
            *(lib.fn.cat(a, b, a, axis=axis) for axis in range(-3, 3)),
            *(lib.fn.stack(a, b, axis=axis) for axis in range(-3, 4)),
            lib.fn.cat(a, b),
            lib.fn.cat(a),
            lib.fn.stack(a, b),
            lib.fn.stack(a, axis=-1),
        ),
        A,
        B,
        layouts=layout,
    )


def test_names_of_axes():
    exact(
        lambda lib, a, b: (
            *(lib.fn.cat(a, b, axis_name=name) for name in "HWC"),
            *(lib.fn.stack(a, b, axis=axis, axis_name="N") for axis in range(-3, 4)),
            lib.fn.stack(a, b, axis_name="H"),
            lib.fn.stack(a, axis_name="F"),
        ),
        A,
        B,
        layouts="HWC",
    )
    exact(
        lambda lib, a, b: (lib.fn.cat(a, b), lib.fn.cat(b, a), lib.fn.stack(a, b, axis_name="N")),
        A,
        B,
        layouts=["HWC", "WHC"],
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_element_types(dtype):
    exact(
        lambda lib, a, b: (
            lib.fn.cat(a, b),
            lib.fn.cat(a, b, axis=2),
            lib.fn.stack(a, b, a, axis=-1),
            lib.fn.stack(a, b, axis=1),
        ),
        [each.astype(dtype) for each in A],
        [each.astype(dtype) for each in B],
    )


def test_images_large_enough_for_every_way_to_copy():
    images = [numbered(40, 30, 3, dtype="uint8"), numbered(25, 50, 3, dtype="uint8", first=7)]
    masks = [image[..., :1].copy() for image in images]
    wide = [np.tile(image, 9) for image in images]
    exact(
        lambda lib, a, b, c: (
            lib.fn.cat(a, b, axis=2),
            lib.fn.cat(b, a, b, axis=-1),
            lib.fn.cat(a, c, axis=2),
            lib.fn.stack(*[a] * 5, axis=3),
            lib.fn.stack(a[:, :, 0], a[:, :, 1], a[:, :, 2], axis=2),
            lib.fn.cat(lib.fn.flip(a), a, axis=2),
            lib.fn.cat(a, a, axis=1),
        ),
        images,
        masks,
        wide,
        layouts="HWC",
    )


def test_differing_extents_and_no_elements():
    some = [numbered(2, 3), numbered(0, 3), numbered(1, 5)]
    others = [numbered(0, 3), numbered(1, 3), numbered(4, 5)]
    exact(lambda lib, a, b: (lib.fn.cat(a, b), lib.fn.cat(b, a, a)), some, others)
    exact(lambda lib, a: (lib.fn.stack(a, a, axis=1), lib.fn.cat(a, a, axis=1)), some)
    exact(lambda lib, a, b: lib.fn.cat(a, b, axis=1), [numbered(70, 0)], [numbered(70, 2)])


def test_extents_of_what_has_no_elements_are_added_up():
    """DALI takes those of the first input."""

    def graph(lib, a, b):
        return lib.fn.cat(a, b, axis=1)

    feeds = [numbered(0, 3, 5)], [numbered(0, 1, 5)]
    shapes = {
        library: run_graph(library, graph, *feeds)[0][0].samples[0].shape
        for library in ("dali", "headrace")
    }
    assert shapes == {"dali": (0, 3, 5), "headrace": (0, 4, 5)}


def test_single_numbers_and_small_values():
    exact(
        lambda lib, a: (
            lib.fn.stack(a, a + 1, a * 2),
            lib.fn.stack(a, axis=0),
            lib.fn.stack(a, 3),
            lib.fn.stack(3, 4),
            lib.fn.stack(a, a, axis_name="X"),
            lib.fn.cat(a[lib.newaxis], np.array([1, 2], np.int32)),
            lib.fn.cat(lib.fn.stack(a, a), lib.fn.stack(a)),
        ),
        [np.int32(3), np.int32(4), np.int32(-5)],
    )
    exact(lambda lib, a: lib.fn.cat(a.shape(), a.shape()[1:]), A, layouts="HWC")


def test_many_inputs():
    exact(lambda lib, a: (lib.fn.cat(*[a] * 200), lib.fn.stack(*[a] * 70, axis=1)), A)


def test_sequences():
    video = [numbered(3, 4, 5, 3, dtype="uint8"), numbered(2, 4, 5, 3, dtype="uint8")]
    exact(
        lambda lib, v: (lib.fn.cat(v, v), lib.fn.cat(v, v, axis_name="W"), lib.fn.stack(v, v)),
        video,
        layouts="FHWC",
    )


@pytest.mark.parametrize(
    ("operator", "arguments", "match"),
    [
        ("cat", {"axis": 3}, "axis"),
        ("cat", {"axis": -4}, "axis"),
        ("cat", {"axis_name": "D"}, "axis_name"),
        ("cat", {"axis_name": "HW"}, "single character"),
        ("cat", {"axis_name": ""}, "single character"),
        ("cat", {"axis_name": "H", "axis": 0}, "cannot be used together"),
        ("stack", {"axis": 4}, "axis"),
        ("stack", {"axis": -4}, "axis"),
        ("stack", {"axis_name": "AB"}, "single character"),
    ],
)
def test_wrong_arguments(operator, arguments, match):
    def graph(lib, a, b):
        return getattr(lib.fn, operator)(a, b, **arguments)

    assert_both_raise(graph, A, B, layouts="HWC", match=match)


def test_wrong_inputs():
    numbers = [np.int32(1)] * 2
    narrow = [each[:, 1:] for each in B]
    for graph, feeds, match in (
        (lambda lib, a, b: lib.fn.cat(a, b), (A, narrow), "shape"),
        (lambda lib, a, b: lib.fn.stack(a, b), (A, narrow), "shape"),
        (lambda lib, a, b: lib.fn.cat(a, b), (A, [b.astype("uint32") for b in B]), "same type"),
        (lambda lib, a, b: lib.fn.cat(a, b[0]), (A, B), "number of dimensions"),
        (lambda lib, a, b: lib.fn.stack(a, b[0]), (A, B), "number of dimensions"),
        (lambda lib, a, b: lib.fn.stack(a, b, axis_name="N"), (A, B), "layout"),
        (lambda lib, a, b: lib.fn.cat(a, b, axis_name="H"), (A, B), "layout"),
        (lambda lib, a, b: lib.fn.cat(a, b), (numbers, numbers), "stack"),
        (lambda lib, a, b: lib.fn.stack(a, b, axis=-1), (numbers, numbers), "axis"),
        (lambda lib, a, b: lib.fn.stack(a, 2.5), (numbers, numbers), "same type"),
        (lambda lib, a, b: lib.fn.cat(), (A, B), "expects"),
    ):
        assert_both_raise(graph, *feeds, match=match)
