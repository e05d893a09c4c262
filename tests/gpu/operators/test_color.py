"""`hue`, `saturation`, `hsv`, `color_twist` and `color_space_conversion` on the GPU."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu.color_spaces import CHANNELS, CONVERSIONS
from headrace.types import DALIDataType as T
from headrace.types import DALIImageType, to_numpy_type
from tests.support.gpu.alike import check_alike
from tests.support.gpu.run_operator import run_gpu_operator

check = partial(check_alike, layout="HWC")

TYPES = (T.UINT8, T.INT16, T.INT32, T.FLOAT16, T.FLOAT)
SHAPES = [(5, 7, 3), (33, 47, 3), (1, 1, 3), (64, 100, 3), (0, 4, 3)]


def batch(dtype, shapes=SHAPES):
    rng = np.random.default_rng(0)
    numpy_type = np.dtype(to_numpy_type(dtype))
    if numpy_type.kind == "f":
        return [(rng.standard_normal(s) * 300).astype(numpy_type) for s in shapes]
    info = np.iinfo(numpy_type)
    return [rng.integers(info.min, info.max, s, numpy_type, endpoint=True) for s in shapes]


def numbers(*values):
    return [np.asarray(v, np.float32) for v in values]


@pytest.mark.sweep
@pytest.mark.parametrize(("source", "target"), list(itertools.product(TYPES, TYPES)), ids=str)
def test_types(source, target):
    check(
        "color_twist",
        batch(source),
        dtype=target,
        hue=numbers(0, 33, -170, 1e6, 3),
        saturation=numbers(1.3, 0.4, -1.0, 1.0, 0),
        brightness=numbers(1.0, 0.6, 2.0, 1.0, 0),
        contrast=numbers(1.0, 0.6, 2.0, 0.0, 0),
    )


@pytest.mark.parametrize("scattered", [False, True])
def test_arguments(scattered):
    data = batch(T.UINT8)
    check("hue", data, hue=20.0, scattered=scattered)
    check("hue", data, hue=numbers(1, 2, 300, 0, 5), scattered=scattered)
    check("saturation", data, saturation=0.3, scattered=scattered)
    check("hsv", data, value=1.2, saturation=numbers(0, 1, 2, 0.3, 9), scattered=scattered)
    check("color_twist", data, brightness=0.5)
    ones = [v.reshape(1) for v in numbers(1, 2, 3, 0, 4)]
    check("color_twist", data, contrast=ones)


def test_output_types_when_not_given():
    check("hsv", batch(T.INT16))
    check("hue", batch(T.INT16))


def test_numbers_that_are_none():
    data = [np.float32([[[np.nan, np.inf, -np.inf]] * 2])]
    for target in TYPES:
        check("hue", data, hue=20.0, dtype=target)
    check("hue", batch(T.UINT8), hue=numbers(np.nan, 0, np.inf, 1, 2))


@pytest.mark.sweep
@pytest.mark.parametrize("pair", CONVERSIONS, ids="-".join)
@pytest.mark.parametrize("scattered", [False, True])
def test_conversions(pair, scattered):
    given, wanted = (getattr(DALIImageType, space) for space in pair)
    channels = CHANNELS[pair[0]]
    data = batch(T.UINT8, [(*s[:2], channels) for s in SHAPES])
    options = {"image_type": given, "output_type": wanted, "scattered": scattered}
    check("color_space_conversion", data, **options)


def test_one_launch(emulated_gpu):
    check("color_twist", batch(T.UINT8), hue=numbers(*range(5)))
    assert list(emulated_gpu.launches) == ["color<Body, false>"]


@pytest.mark.parametrize("shapes", [[(3, 4, 5, 3), (2, 4, 5, 3)], [(3, 4, 5, 3), (2, 7, 6, 3)]])
def test_sequences(shapes):
    data = batch(T.UINT8, shapes)
    check("color_twist", data, layout="FHWC", hue=numbers(1.5, 50))
    each = [np.float32([1, 2, 3]), np.float32([0.5, 0.1])]
    check("hsv", data, layout="FHWC", saturation=each, arg_layouts={"saturation": "F"})
    grey = {"image_type": DALIImageType.RGB, "output_type": DALIImageType.GRAY}
    check("color_space_conversion", data, layout="FHWC", **grey)
    check("color_space_conversion", [d[None] for d in data], layout="FDHWC", **grey)


def test_volumes():
    check("hue", batch(T.INT16, [(3, 4, 5, 3), (2, 4, 5, 3)]), layout="DHWC", hue=70.0)


def test_pixels_of_other_channels():
    with pytest.raises(ShapeError, match="three channels"):
        run_gpu_operator("hue", batch(T.UINT8, [(4, 5, 3), (4, 5, 4)]), layout="HWC")
    grey = {"image_type": DALIImageType.RGB, "output_type": DALIImageType.GRAY}
    data = batch(T.UINT8, [(4, 5, 3), (4, 5, 1)])
    with pytest.raises(ShapeError, match="3 channels"):
        run_gpu_operator("color_space_conversion", data, layout="HWC", **grey)


def test_arguments_with_too_many_numbers():
    with pytest.raises(ArgumentValueError, match="scalar"):
        run_gpu_operator("hue", batch(T.UINT8), layout="HWC", hue=[np.zeros(2)] * 5)
