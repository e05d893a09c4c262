"""`fn.normalize` against DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

DALI_NAME = {
    "uint8": "UINT8",
    "int8": "INT8",
    "uint16": "UINT16",
    "int16": "INT16",
    "uint32": "UINT32",
    "int32": "INT32",
    "float32": "FLOAT",
}
EXTRAS = ({}, {"ddof": 1}, {"epsilon": 3.0}, {"scale": 2.0, "shift": 5.0})
SUBSETS = [s for n in (1, 2, 3) for s in itertools.combinations(range(3), n)]


def noise(*shape: int, dtype: str = "float32", seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random(shape) * 100).astype(dtype)


def reduced(shape, axes):
    return tuple(1 if k in axes else extent for k, extent in enumerate(shape))


@pytest.mark.sweep
@pytest.mark.parametrize("axes", SUBSETS, ids=str)
@pytest.mark.parametrize("extra", EXTRAS, ids=str)
def test_axes(axes, extra):
    shape = (5, 60, 3)
    assert_parity(
        lambda lib, x, mean, stddev: (
            lib.fn.normalize(x, axes=axes, **extra),
            lib.fn.normalize(x, axes=axes, mean=50.0, **extra),
            lib.fn.normalize(x, axes=axes, stddev=7.0, **extra),
            lib.fn.normalize(x, axes=axes, mean=mean, **extra),
            lib.fn.normalize(x, axes=axes, stddev=stddev, **extra),
            lib.fn.normalize(x, axes=axes, mean=mean, stddev=stddev, **extra),
            lib.fn.normalize(x, axes=axes, mean=mean, stddev=3.0, **extra),
            lib.fn.normalize(x, axes=axes, mean=3.0, stddev=stddev, **extra),
            lib.fn.normalize(x, mean=mean, **extra),
            lib.fn.normalize(x, stddev=stddev, **extra),
            lib.fn.normalize(x, mean=mean, stddev=stddev, **extra),
        ),
        [noise(*shape), noise(*shape, seed=1)],
        [noise(*reduced(shape, axes), seed=2)] * 2,
        [noise(*reduced(shape, axes), seed=3) + 1] * 2,
    )


@pytest.mark.parametrize(
    "axes", [(0, 2, 4), (1, 3), (0,), (4,), (2, 3), (0, 1, 2, 3, 4), (1, 2, 4)], ids=str
)
def test_axes_of_more_dimensions(axes):
    assert_parity(lambda lib, x: lib.fn.normalize(x, axes=axes), [noise(2, 5, 6, 3, 70)])


@pytest.mark.parametrize(
    ("layout", "names"),
    [("HWC", "HW"), ("HWC", "WC"), ("HWC", "C"), ("FHWC", "HW"), ("CHW", "WH"), ("HWC", "")],
)
def test_axes_by_name(layout, names):
    shape = (3, 5, 6, 3)[4 - len(layout) :]
    assert_parity(
        lambda lib, x: lib.fn.normalize(x, axis_names=names), [noise(*shape)] * 2, layouts=layout
    )


@pytest.mark.parametrize("extra", EXTRAS, ids=str)
def test_numbers(extra):
    assert_parity(
        lambda lib, x: (
            lib.fn.normalize(x, **extra),
            lib.fn.normalize(x, mean=30.0, **extra),
            lib.fn.normalize(x, stddev=30.0, **extra),
            lib.fn.normalize(x, mean=10.0, stddev=30.0, **extra),
            lib.fn.normalize(x, mean=10.0, stddev=-30.0, **extra),
        ),
        [noise(5, 60, 3), noise(1, 1, 1), noise(7, 2, 1)],
        layouts="HWC",
    )


def test_constant_arrays():
    mean, stddev = noise(1, 1, 3, seed=2), noise(1, 1, 3, seed=3) + 1
    assert_parity(
        lambda lib, x: (
            lib.fn.normalize(x, mean=mean),
            lib.fn.normalize(x, mean=mean, stddev=stddev),
            lib.fn.normalize(x, mean=mean, stddev=stddev, axes=(0, 1)),
            lib.fn.normalize(x, mean=np.float32(3)),
        ),
        [noise(9, 8, 3)] * 2,
        layouts="HWC",
    )


def test_whole_array_as_mean():
    assert_parity(
        lambda lib, x, m: lib.fn.normalize(x, mean=m, stddev=2.0),
        [noise(5, 6, 3), noise(2, 3, 3)],
        [noise(5, 6, 3, seed=1), noise(2, 3, 3, seed=1)],
    )


@pytest.mark.sweep
@pytest.mark.parametrize("source", DALI_NAME)
@pytest.mark.parametrize("target", DALI_NAME)
def test_element_types(source, target):
    data = noise(20, 30, 3).astype(source)
    if not source.startswith("u"):
        data -= np.array(50, source)
    assert_parity(
        lambda lib, x: (
            lib.fn.normalize(x, dtype=getattr(lib.types, DALI_NAME[target]), scale=60, shift=100),
            lib.fn.normalize(
                x, dtype=getattr(lib.types, DALI_NAME[target]), axes=(0, 1), scale=300
            ),
        ),
        [data],
        layouts="HWC",
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"mean": 7.0},
        {"epsilon": 1.0},
        {"mean": 6.0, "epsilon": 1.0},
        {"stddev": 0.0},
        {"mean": 5.0, "stddev": 0.0},
        {"mean": 5.0, "stddev": 0.0, "epsilon": 1.0},
        {"ddof": 12},
        {"ddof": 13, "epsilon": 2.0},
        {"ddof": -1},
        {"epsilon": -100.0},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*`std(dev)?` is 0")
def test_nothing_to_divide_by(arguments):
    assert_parity(
        lambda lib, x: lib.fn.normalize(x, **arguments),
        [np.full((3, 4), 7, np.float32), np.arange(12, dtype=np.float32).reshape(3, 4)],
    )


def test_deviation_of_zero_in_an_array():
    assert_parity(
        lambda lib, x, s: lib.fn.normalize(x, stddev=s, axes=0),
        [np.arange(12, dtype=np.float32).reshape(3, 4)],
        [np.array([[0, 1, 2, 3]], np.float32)],
    )


@pytest.mark.sweep
@pytest.mark.parametrize("axes", [None, (0, 1), (0,), (1,)], ids=str)
@pytest.mark.parametrize(
    "extra", [*EXTRAS, {"mean": 40.0}, {"stddev": 3.0}, {"ddof": 100000}], ids=str
)
def test_whole_batch(axes, extra):
    shapes = [(5, 60, 3), (7, 2, 3), (1, 1, 3)]
    if axes is not None and len(axes) == 1:
        shapes = [(4, 6, 3)] * 3
        for k in range(3):
            shapes[k] = tuple(e + k if axis in axes else e for axis, e in enumerate((4, 6, 3)))
    given = {} if axes is None else {"axes": axes}
    assert_parity(
        lambda lib, x: lib.fn.normalize(x, batch=True, **given, **extra),
        [noise(*s, seed=k) * (k + 1) for k, s in enumerate(shapes)],
        layouts="HWC",
        iterations=2,
    )


def test_whole_batch_of_integers_to_integers():
    assert_parity(
        lambda lib, x: lib.fn.normalize(
            x, batch=True, axis_names="HW", scale=50, shift=128, dtype=lib.types.UINT8
        ),
        [noise(20, 30, 3, dtype="uint8", seed=k) for k in range(4)],
        layouts="HWC",
    )


def test_whole_batch_with_numbers_for_both():
    assert_parity(
        lambda lib, x: lib.fn.normalize(x, batch=True, mean=1.0, stddev=2.0), [noise(2, 3)] * 2
    )


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1,), (7,), (1, 1, 1)])
def test_few_elements(shape):
    assert_parity(
        lambda lib, x: (lib.fn.normalize(x), lib.fn.normalize(x, axes=0, ddof=1)), [noise(*shape)]
    )


def test_views_are_read_in_place():
    assert_parity(
        lambda lib, x: lib.fn.normalize(lib.fn.crop(lib.fn.flip(x), crop=(9, 30)), axes=(0, 1)),
        [noise(40, 90, 3)],
        layouts="HWC",
    )


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"axes": 0, "axis_names": "H"}, "axis_names"),
        ({"axis_names": "D"}, "axis_names"),
        ({"axes": -1}, "`axes`"),
        ({"axes": 3}, "`axes`"),
        ({"axes": ()}, "`axes`"),
        ({"mean": 1.0, "stddev": 2.0, "axes": 0}, "`axes`"),
        ({"mean": 1.0, "stddev": 2.0, "axis_names": "H"}, "`axes`"),
        ({"mean": np.ones((1, 1, 3), np.float32), "batch": True}, "`batch`"),
        ({"mean": np.ones((1, 1, 2), np.float32)}, "shape"),
        ({"mean": np.ones((3,), np.float32)}, "shape"),
        ({"mean": np.ones((1, 1, 3), np.float32), "axes": 0}, "shape"),
        ({"stddev": np.ones((5, 6, 3), np.float32), "axes": (0, 1)}, "shape"),
    ],
    ids=str,
)
def test_errors(arguments, match):
    assert_both_raise(
        lambda lib, x: lib.fn.normalize(x, **arguments),
        [noise(5, 6, 3)],
        layouts="HWC",
        match=match,
    )


def test_samples_of_a_batch_have_to_agree():
    assert_both_raise(
        lambda lib, x: lib.fn.normalize(x, batch=True, axes=0),
        [noise(5, 6, 3), noise(7, 2, 3)],
        layouts="HWC",
        match="sample 1",
    )


@pytest.mark.parametrize("dtype", ["uint64", "int64", "float16", "float64", "bool"])
def test_other_element_types_are_refused(dtype):
    assert_both_raise(lambda lib, x: lib.fn.normalize(x), [np.ones((3, 4), dtype)])
