"""`experimental.dilate`, `erode` and `median_blur` against OpenCV and SciPy."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from scipy import ndimage

from headrace import Pipeline, fn
from headrace.errors import HeadraceError
from headrace.experimental import dynamic as ndd
from tests.support.run_operator import run_operator

_rng = np.random.default_rng(0)
BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")
SCIPY = {"replicate": "nearest", "reflect": "reflect", "reflect_101": "mirror", "wrap": "grid-wrap"}
TYPES = (np.uint8, np.uint16, np.float32)
CASES = (
    {},
    {"mask_size": 5},
    {"mask_size": [2, 5], "anchor": [0, 4]},
    {"mask_size": [4, 1], "anchor": [-1, 0], "iterations": 3},
)


def images(dtype, shapes=((20, 31), (9, 14, 3), (1, 1, 1), (5, 7, 6), (3, 1, 2))):
    return [(_rng.random(shape) * 200).astype(dtype) for shape in shapes]


def enlarged(options):
    size = np.broadcast_to(options.get("mask_size", 3), 2)
    anchor = np.broadcast_to(options.get("anchor", -1), 2)
    anchor = np.where(anchor < 0, size // 2, anchor)
    times = options.get("iterations", 1)
    return (size - 1) * times + 1, anchor * times


@pytest.mark.parametrize("name", ["dilate", "erode"])
def test_against_opencv(name):
    work = getattr(cv2, name)
    for dtype in TYPES:
        for image in images(dtype):
            for options in CASES:
                window = np.broadcast_to(options.get("mask_size", 3), 2)
                ones = cv2.getStructuringElement(cv2.MORPH_RECT, window.tolist())
                anchor = np.broadcast_to(options.get("anchor", -1), 2).tolist()
                wanted = work(image, ones, anchor=anchor, iterations=options.get("iterations", 1))
                got = run_operator(
                    f"experimental.{name}", image, layout="HWC"[: image.ndim], **options
                )
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, wanted.reshape(image.shape))


@pytest.mark.parametrize("name", ["dilate", "erode"])
def test_borders_against_scipy(name):
    work = {"dilate": ndimage.maximum_filter, "erode": ndimage.minimum_filter}[name]
    for image in images(np.uint8, [(20, 31), (4, 3), (1, 2), (1, 1)]):
        for options in (*CASES, {"mask_size": 25}):
            (width, height), (column, row) = enlarged(options)
            origin = row - height // 2, column - width // 2
            for border, mode in SCIPY.items():
                wanted = work(image, (height, width), mode=mode, origin=origin)
                got = run_operator(
                    f"experimental.{name}", image, layout="HW", border_mode=border, **options
                )
                np.testing.assert_array_equal(got, wanted, f"{border} {options} {image.shape}")


def test_medians():
    for dtype in (*TYPES, np.int32):
        for image in images(dtype):
            for window in (1, 3, 5, 7, 9, [3, 7], [1, 5]):
                width, height = np.broadcast_to(window, 2)
                size = (height, width, *(1,) * (image.ndim - 2))
                wanted = ndimage.median_filter(image, size, mode="nearest")
                got = run_operator(
                    "experimental.median_blur",
                    image,
                    layout="HWC"[: image.ndim],
                    window_size=window,
                )
                np.testing.assert_array_equal(got, wanted, f"{dtype} {window} {image.shape}")


def test_layouts_frames_and_arguments_by_sample():
    batch = [_rng.integers(0, 255, (n, 12, 10, 3), np.uint8) for n in (2, 3, 1)]
    sizes = [np.int32([3, 5]), np.int32([1, 2]), np.int32([4, 4])]
    odd = [np.int32([3, 5]), np.int32([1, 3]), np.int32([7, 7])]
    frames = [np.int32([[3 + k, 2] for k in range(len(b))]) for b in batch]
    for name, argument, values in (
        ("dilate", "mask_size", sizes),
        ("erode", "mask_size", sizes),
        ("median_blur", "window_size", odd),
        ("dilate", "mask_size", frames),
    ):
        pipe = Pipeline(batch_size=3, num_threads=2, device_id=None)
        with pipe:
            data = fn.external_source([batch], cycle=True, layout="FHWC")
            given = fn.external_source([values], cycle=True)
            given = fn.per_frame(given) if values is frames else given
            planes = fn.transpose(data, perm=[0, 3, 1, 2])
            operator = getattr(fn.experimental, name)
            outputs = [operator(x, **{argument: given}) for x in (data, planes)]
            pipe.set_outputs(*outputs)
        first, second = pipe.run()
        assert (first.layout(), second.layout()) == ("FHWC", "FCHW")
        for k, sequence in enumerate(batch):
            for f, frame in enumerate(sequence):
                value = values[k][f] if values is frames else values[k]
                wanted = run_operator(
                    f"experimental.{name}", frame, layout="HWC", **{argument: value.tolist()}
                )
                np.testing.assert_array_equal(first.at(k)[f], wanted)
                np.testing.assert_array_equal(second.at(k)[f].transpose(1, 2, 0), wanted)


def test_dynamic_mode():
    image = images(np.uint8, [(9, 14, 3)])[0]
    tensor = ndd.as_tensor(image, layout="HWC")
    for name, options in (("dilate", {"mask_size": [5, 3]}), ("median_blur", {"window_size": 3})):
        got = getattr(ndd.experimental, name)(tensor, **options)
        wanted = run_operator(f"experimental.{name}", image, layout="HWC", **options)
        np.testing.assert_array_equal(np.asarray(got), wanted)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("dilate", {"mask_size": [3, 0]}, "`mask_size` must be from 1 to 32768, got 0"),
        ("dilate", {"mask_size": [3, 3, 3]}, "list of 2 elements"),
        ("erode", {"anchor": [3, 0]}, "`anchor` must lie in the window.*extent 3.*got 3"),
        ("erode", {"anchor": [-2, 0]}, "got -2"),
        ("erode", {"iterations": 0}, "`iterations` must be at least 1, got 0"),
        ("erode", {"border_mode": "mirror"}, 'border_mode argument: "mirror"'),
        ("median_blur", {"window_size": [3, 4]}, "odd number from 1 to 1023, got 4"),
        ("median_blur", {"window_size": -3}, "got -3"),
    ],
)
def test_errors(name, options, words):
    with pytest.raises(HeadraceError, match=words):
        run_operator(f"experimental.{name}", np.zeros((4, 4, 3), np.uint8), layout="HWC", **options)
