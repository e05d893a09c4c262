from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace.kernels.cpu.decode import convert as cpu
from headrace.kernels.cpu.decode.exif import turned, upright
from headrace.kernels.gpu.decode.convert import DecodedImages, convert
from tests.support.gpu.session import gpu_session

SHAPES = ((1, 1), (1, 300), (300, 1), (33, 65), (64, 32), (5, 7), (100, 3))
SOURCES = (np.uint8, np.uint16)
TARGETS = (np.uint8, np.uint16, np.uint32, np.int8, np.int16, np.int32, np.float32)
COMBINATIONS = tuple(itertools.product(SOURCES, TARGETS))


def pictures(dtype, channels=(3,)):
    rng = np.random.default_rng(3)
    high = np.iinfo(dtype).max
    return [
        rng.integers(0, high, (*shape, channel), dtype, endpoint=True)
        for shape in SHAPES
        for channel in channels
    ]


def converted(images, orientations, target, *, ycbcr=False, scattered=False):
    """What the kernels make of images as they are stored."""
    native = images[0].dtype
    shapes = []
    for image, orientation in zip(images, orientations, strict=True):
        rows, columns, channels = image.shape
        shapes.append((columns, rows, channels) if turned(orientation) else image.shape)
    with gpu_session(scattered=scattered) as s:
        stored = s.upload(images)
        out = s.queue.empty(shapes, target)
        work = [
            DecodedImages(source, place, *image.shape, orientation, image.shape[1])
            for source, place, image, orientation in zip(
                stored.pointers.tolist(), out.pointers.tolist(), images, orientations, strict=True
            )
        ]
        convert(s.queue, work, native, np.dtype(target), ycbcr=ycbcr)
        return s.download(out)


def expected(image, orientation, target, *, ycbcr=False):
    image = np.ascontiguousarray(upright(image, orientation))
    out = np.empty(image.shape, target)
    (cpu.ycbcr if ycbcr else cpu.rescale)(image, out)
    return out


@pytest.mark.parametrize(("source", "target"), COMBINATIONS)
def test_types(source, target):
    images = pictures(source, (1, 3))
    got = converted(images, [1] * len(images), target)
    for ours, image in zip(got, images, strict=True):
        np.testing.assert_array_equal(ours, expected(image, 1, target))


@pytest.mark.sweep
@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("target", TARGETS)
def test_every_value(source, target):
    values = np.arange(np.iinfo(source).max + 1, dtype=source).reshape(-1, 16, 1)
    (got,) = converted([values], [1], target)
    np.testing.assert_array_equal(got, expected(values, 1, target))


@pytest.mark.parametrize("orientation", range(1, 9))
def test_orientations(orientation):
    images = pictures(np.uint8, (1, 3))
    got = converted(images, [orientation] * len(images), np.uint8)
    for ours, image in zip(got, images, strict=True):
        np.testing.assert_array_equal(ours, upright(image, orientation))


def test_orientations_of_a_batch_differ():
    images = pictures(np.uint16, (1, 3))
    orientations = [1 + i % 8 for i in range(len(images))]
    got = converted(images, orientations, np.float32)
    for ours, image, orientation in zip(got, images, orientations, strict=True):
        np.testing.assert_array_equal(ours, expected(image, orientation, np.float32))


@pytest.mark.parametrize(("source", "target"), COMBINATIONS)
def test_ycbcr(source, target):
    images = pictures(source)
    orientations = [1 + i % 8 for i in range(len(images))]
    got = converted(images, orientations, target, ycbcr=True)
    full = cpu.largest(np.dtype(target))
    for ours, image, orientation in zip(got, images, orientations, strict=True):
        want = expected(image, orientation, target, ycbcr=True)
        # OpenCV multiplies and adds at once in most pixels of a row, but not in the last few.
        step = max(full * 2.0**-23, float(np.dtype(target).kind != "f"))
        difference = np.abs(ours.astype(np.float64) - want.astype(np.float64))
        assert difference.max() <= step
        assert (difference > full * 2.0**-23).mean() < 0.01


@pytest.mark.parametrize("target", [np.uint16, np.float32])
def test_places_that_are_not_aligned(target):
    images = pictures(np.uint8, (1, 3))
    got = converted(images, [1 + i % 8 for i in range(len(images))], target, scattered=True)
    for i, (ours, image) in enumerate(zip(got, images, strict=True)):
        np.testing.assert_array_equal(ours, expected(image, 1 + i % 8, target))


@pytest.mark.parametrize("ycbcr", [False, True])
@pytest.mark.parametrize("target", [np.uint8, np.float32])
def test_windows(target, ycbcr):
    images = pictures(np.uint8)
    orientations = [1 + i % 8 for i in range(2 * len(images))]
    windows = []
    for image in images:
        rows, columns, _ = image.shape
        windows += [(rows // 3, columns // 4, rows, columns), (rows // 2, 0, rows, columns)]
    shapes, wanted = [], []
    for i, (y, x, end_y, end_x) in enumerate(windows):
        window = images[i // 2][y:end_y, x:end_x]
        wanted.append(expected(window, orientations[i], target, ycbcr=ycbcr))
        shapes.append(wanted[-1].shape)
    with gpu_session() as s:
        stored = s.upload(images)
        out = s.queue.empty(shapes, target)
        begins, places = stored.pointers.tolist(), out.pointers.tolist()
        work = []
        for i, (y, x, end_y, end_x) in enumerate(windows):
            columns = images[i // 2].shape[1]
            begin = begins[i // 2] + (y * columns + x) * 3
            work.append(
                DecodedImages(begin, places[i], end_y - y, end_x - x, 3, orientations[i], columns)
            )
        convert(s.queue, work, np.dtype(np.uint8), np.dtype(target), ycbcr=ycbcr)
        got = s.download(out)
    for ours, want in zip(got, wanted, strict=True):
        np.testing.assert_allclose(
            ours.astype(float), want.astype(float), rtol=0, atol=1e-6 + ycbcr
        )
