"""`gaussian_blur` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from headrace.errors import ArgumentValueError
from headrace.types import FLOAT, DALIDataType
from tests.support.gpu.alike import check_alike, each
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

same = partial(check_alike, "gaussian_blur", layout="HWC")

SHAPES = [(31, 70), (1, 64), (9, 130)]


def noise(*shape, dtype="uint8"):
    return (np.random.default_rng(0).random(shape) * 200).astype(dtype)


def images(dtype="uint8", channels=3):
    return [noise(*shape, channels, dtype=dtype) for shape in SHAPES]


@pytest.mark.parametrize("sigma", [0.3, 1.0, 1 / 3, 12.0])
def test_sigma(sigma):
    same(images(), sigma=sigma)


@pytest.mark.parametrize("size", [1, 3, 9, 101])
def test_window_size(size):
    same(images(), window_size=size)
    same(images(), window_size=(size, 5), sigma=(0.0, 3.0))


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_output_in_floating_point(dtype):
    same(images(dtype), sigma=1.5, dtype=DALIDataType.FLOAT)
    same(images(dtype), sigma=1.5)


def test_values_by_sample_and_axis():
    same(images(), sigma=each(0.5, 1.5, 3.0))
    same(images(), sigma=each((0.5, 1), (1.5, 0.2), (3, 3)))
    same(images(), window_size=each(3, 5, 7, dtype="int32"))
    same(images(), sigma=each(0, 2, 0.7), window_size=each((3, 5), (0, 7), (9, 0), dtype="int64"))


def test_values_of_different_lengths_that_are_all_right():
    same(images(), sigma=[np.float32([0.5]), np.float32([1.5, 0.2]), np.float32([3])])


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        ("CHW", (3, 20, 70)),
        ("HW", (20, 70)),
        ("DHWC", (4, 9, 70, 3)),
        ("CDHW", (2, 4, 9, 70)),
        ("FHWC", (3, 9, 70, 3)),
        ("FCHW", (3, 3, 9, 70)),
        ("CFHW", (2, 3, 9, 70)),
        ("", (70, 9, 70)),
        ("W", (300,)),
    ],
)
def test_layouts(layout, shape):
    same([noise(*shape), noise(*shape)], layout=layout, sigma=1.0)
    same([noise(*shape), noise(*shape)], layout=layout, sigma=each(0.5, 1.5))


def test_a_sigma_for_each_frame():
    data = [noise(3, 9, 70, 3), noise(1, 5, 64, 3)]
    sigma = [np.float32([0.5, 1, 2]), np.float32([3])]
    same(data, layout="FHWC", sigma=sigma, arg_layouts={"sigma": "F"})
    sizes = [np.int32([[3, 5], [1, 1], [9, 3]]), np.int32([[5, 7]])]
    same(data, layout="FHWC", window_size=sizes, arg_layouts={"window_size": "F"})


def test_empty_images_and_sequences():
    same([np.zeros(s, np.uint8) for s in [(0, 4, 3), (4, 0, 3), (4, 4, 0)]], sigma=1.0)
    same([np.zeros((0, 4, 70, 3), np.uint8), noise(2, 4, 70, 3)], layout="FHWC", sigma=1.0)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"sigma": each(1, np.nan, 1)}, "`sigma` must have non-negative values, got nan"),
        ({"sigma": each(1, -1, 1)}, "`sigma` must have non-negative values, got -1"),
        ({"sigma": each(1, np.inf, 1)}, "got inf for sample: 1, axis: 0. It must be finite"),
        ({"window_size": each(3, 4, 5, dtype="int32")}, "odd length, got: 4"),
        ({"sigma": each(1, 0, 1)}, "be 0 at the same time"),
        ({"sigma": [np.float32([1]), np.float32([1, 1, 1]), np.float32([1])]}, "got: 3"),
    ],
)
def test_errors_name_the_sample(given, message):
    with pytest.raises(ArgumentValueError, match=rf"{message}[^$]*sample 1"):
        run_gpu_operator("gaussian_blur", images(), layout="HWC", **given)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_laplacian(dtype):
    data = [(image % 200).astype(dtype) for image in images()]
    count = len(data)
    sizes = [np.int32([3, 5]) + 2 * k for k in range(count)]
    scales = [np.float32([1, -0.5]) / (k + 1) for k in range(count)]
    for arguments in (
        {},
        {"window_size": 5, "smoothing_size": 1, "dtype": FLOAT},
        {"window_size": sizes, "scale": scales},
    ):
        got = run_gpu_operator("laplacian", data, layout="HWC", **arguments)
        wanted = run_cpu_operator_on_batch("laplacian", data, layout="HWC", **arguments)
        for a, b in zip(got, wanted, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-4, atol=1 if a.dtype == np.uint8 else 1e-3)
