from __future__ import annotations

import numpy as np
import pytest
import scipy.ndimage

from headrace import Pipeline, fn, types
from headrace.errors import ArgumentValueError, OperatorError
from headrace.types import DALIDataType
from tests.support.run_operator import run_operator


def blur(data, layout="HWC", **arguments):
    return run_operator("gaussian_blur", data, layout=layout, **arguments)


def noise(*shape, dtype="uint8"):
    return (np.random.default_rng(0).random(shape) * 200).astype(dtype)


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [(1, 1, 3), (9, 21, 1), (40, 100, 3), (5, 64, 4), (6, 22, 5)])
@pytest.mark.parametrize("sigma", [0.4, 1.5, 4.0])
def test_against_scipy(shape, sigma):
    data = noise(*shape, dtype="float64")
    reach = int(np.ceil(3 * sigma))
    expected = scipy.ndimage.gaussian_filter(
        data, (sigma, sigma, 0), mode="mirror", radius=(reach, reach, 0)
    )
    np.testing.assert_allclose(blur(data, sigma=sigma), expected, rtol=1e-5)
    rounded = np.floor(
        scipy.ndimage.gaussian_filter(
            data.astype(np.uint8).astype(float),
            (sigma, sigma, 0),
            mode="mirror",
            radius=(reach, reach, 0),
        )
        + 0.5
    )
    difference = blur(data.astype(np.uint8), sigma=sigma) - rounded
    assert np.abs(difference).max() <= 1
    assert np.count_nonzero(difference) <= 1 + difference.size // 1000


def test_constants_stay():
    for value in (0, 1, 127, 255):
        image = np.full((30, 70, 3), value, np.uint8)
        np.testing.assert_array_equal(blur(image, sigma=2.0), image)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int16"])
def test_views_are_read_in_place(dtype):
    image = noise(40, 90, 3, dtype=dtype)
    for view in (
        image[5:20, 3:80],
        image[::-1],
        image[:, ::-1],
        image[..., ::-1],
        image[..., 1:2],
        image.transpose(1, 0, 2),
    ):
        np.testing.assert_array_equal(
            blur(view, sigma=1.0), blur(np.ascontiguousarray(view), sigma=1.0)
        )


def test_channels_first_equal_channels_last():
    image = noise(30, 70, 3)
    first = blur(image.transpose(2, 0, 1), "CHW", sigma=1.5)
    np.testing.assert_array_equal(first.transpose(1, 2, 0), blur(image, sigma=1.5))


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (4, 4, 0)])
def test_empty_images(shape):
    assert blur(np.zeros(shape, np.uint8), sigma=1.0).shape == shape


def test_output_in_floating_point():
    image = noise(30, 70, 3)
    out = blur(image, sigma=1.0, dtype=DALIDataType.FLOAT)
    assert out.dtype == np.float32
    np.testing.assert_array_equal(np.floor(out + np.float32(0.5)), blur(image, sigma=1.0))


@pytest.mark.parametrize("sigma", [np.nan, np.inf])
def test_sigma_has_to_be_finite(sigma):
    with pytest.raises(ArgumentValueError, match="`sigma`"):
        blur(noise(3, 3, 1), sigma=sigma)


def test_a_window_that_nobody_could_hold_is_refused():
    with pytest.raises(ArgumentValueError, match="`sigma` must be less than"):
        blur(noise(3, 3, 1), sigma=1e30)


@pytest.mark.parametrize(
    ("sigma", "size", "message"),
    [
        (-1, 3, "got -1 for sample: 3"),
        (1, 4, "odd length, got: 4"),
        (0, 0, "be 0 at the same"),
    ],
)
def test_a_sample_whose_window_is_wrong_is_named(sigma, size, message):
    samples = [np.array([1, 3], np.int32)] * 3 + [np.array([sigma, size], np.int32)]
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        value = fn.external_source(source=lambda: samples)
        images = types.Constant(noise(3, 3, 1), layout="HWC")
        blurred = fn.gaussian_blur(
            images, sigma=fn.cast(value[0], dtype=types.FLOAT), window_size=value[1]
        )
        pipe.set_outputs(blurred)
    with pytest.raises(OperatorError, match=message) as caught:
        pipe.run()
    assert caught.value.where.sample == 3
