"""`brightness`, `contrast` and `brightness_contrast` on the GPU."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from headrace.errors import ArgumentValueError
from headrace.types import DALIDataType as T
from headrace.types import to_numpy_type
from tests.support.gpu.alike import check_alike
from tests.support.gpu.run_operator import run_gpu_operator

check = partial(check_alike, layout="HWC")

TYPES = (T.UINT8, T.INT16, T.INT32, T.FLOAT)
SHAPES = [(5, 7, 3), (33, 47, 1), (1, 1, 3), (40, 50, 3)]


def batch(dtype, shapes=SHAPES):
    rng = np.random.default_rng(0)
    numpy_type = np.dtype(to_numpy_type(dtype))
    if numpy_type.kind == "f":
        return [rng.standard_normal(s).astype(np.float32) * 300 for s in shapes]
    info = np.iinfo(numpy_type)
    return [rng.integers(info.min, info.max, s, numpy_type, endpoint=True) for s in shapes]


def numbers(*values):
    return [np.asarray(v, np.float32) for v in values]


@pytest.mark.parametrize(("source", "target"), list(itertools.product(TYPES, TYPES)), ids=str)
def test_types(source, target):
    check(
        "brightness_contrast",
        batch(source),
        dtype=target,
        brightness=numbers(1.3, 0.4, -1.0, 1.0),
        brightness_shift=numbers(0.0, 0.1, -0.2, 0.0),
        contrast=numbers(1.0, 0.6, 2.0, 1.0),
    )


@pytest.mark.parametrize("scattered", [False, True])
def test_arguments(scattered):
    data = batch(T.UINT8)
    check("brightness", data, brightness=1.2, brightness_shift=0.1, scattered=scattered)
    check("brightness", data, brightness=numbers(1, 2, 3, 0), scattered=scattered)
    check("contrast", data, contrast=1.2, scattered=scattered)
    check("contrast", data, contrast=1.2, contrast_center=numbers(0, 255, 3, 7))
    ones = [v.reshape(1) for v in numbers(1, 2, 3, 0)]
    check("brightness", data, brightness=ones)
    whole = [np.asarray(v, np.int32) for v in (1, 2, 3, 0)]
    check("brightness", data, brightness=whole)


def test_numbers_that_are_none():
    data = [np.float32([[[np.nan, np.inf, -np.inf]]])]
    for target in TYPES:
        check("brightness", data, brightness=2.0, dtype=target)


def test_nothing_to_do(emulated_gpu):
    check("brightness", batch(T.UINT8))
    assert not emulated_gpu.launches
    check("brightness", batch(T.INT32))  # by way of float32
    assert emulated_gpu.launches


def test_samples_that_stay_keep_their_zeros():
    zeros = [np.zeros((2, 2, 3), np.float32), -np.zeros((2, 2, 3), np.float32)] * 2
    got = run_gpu_operator("brightness", zeros, layout="HWC", brightness=numbers(1, 1, 2, 2))
    assert np.signbit(got[1]).all()
    assert not np.signbit(got[0]).any()


def test_one_launch_for_samples_of_one_shape(emulated_gpu):
    data = batch(T.UINT8, [(8, 9, 3)] * 7)
    check("brightness", data, brightness=1.5)
    check("brightness", data, brightness=numbers(*range(7)))
    assert len(emulated_gpu.launches) == 2


@pytest.mark.parametrize("shapes", [[(3, 4, 5, 3), (2, 4, 5, 3)], [(3, 4, 5, 3), (2, 7, 6, 3)]])
def test_sequences(shapes):
    data = batch(T.UINT8, shapes)
    check("brightness", data, layout="FHWC", brightness=numbers(1.5, 0.5))
    each = [np.float32([1, 2, 3]), np.float32([0.5, 0.1])]
    check("brightness", data, layout="FHWC", brightness=each, arg_layouts={"brightness": "F"})


def test_volumes():
    check("contrast", batch(T.INT16, [(3, 4, 5, 3), (2, 4, 5, 3)]), layout="DHWC", contrast=0.5)


def test_arguments_with_too_many_numbers():
    data = batch(T.UINT8)
    with pytest.raises(ArgumentValueError, match="scalar"):
        run_gpu_operator("brightness", data, layout="HWC", brightness=[np.zeros(2)] * 4)
