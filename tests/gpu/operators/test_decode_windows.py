from __future__ import annotations

import numpy as np
import pytest

from headrace import types
from tests.support.encoded_images import jpegs, tiffs
from tests.support.gpu.decoding import check_like_cpu, check_pixels, decodable, encoded, without
from tests.support.gpu.run_operator import run_gpu_operator


@pytest.fixture(scope="module")
def images() -> dict[str, bytes]:
    """Images of 37 x 53 pixels, or as many the other way round, or more."""
    return without(decodable(), ("1x1", "1x17", "17x1", "15x33", "16x16"))


def one_each(rng, count, low, high):
    return [np.array(rng.uniform(low, high), np.float32) for _ in range(count)]


def test_crops(images):
    check_like_cpu("decoders.image_crop", images, crop=(20, 35))


def test_crops_differ_from_sample_to_sample(images):
    rng = np.random.default_rng(1)
    check_like_cpu(
        "decoders.image_crop",
        images,
        crop_h=one_each(rng, len(images), 1, 36),
        crop_w=one_each(rng, len(images), 1, 36),
        crop_pos_x=one_each(rng, len(images), 0, 1),
        crop_pos_y=one_each(rng, len(images), 0, 1),
    )


def test_a_crop_of_the_whole_image(images):
    check_like_cpu("decoders.image_crop", images)


@pytest.mark.gpu
def test_a_window_is_a_part_of_the_image(images):
    # Chroma is repeated, on a real GPU, so that no pixel depends on what lies beside the window.
    images = {k: v for k, v in images.items() if k.startswith("jpeg")}
    whole = run_gpu_operator("decoders.image", encoded(images))
    windows = run_gpu_operator("decoders.image_slice", encoded(images), start=(3, 8), end=(30, 36))
    for name, window, image in zip(images, windows, whole, strict=True):
        if not any(kind in name for kind in ("cmyk", "ycck")):  # decoded on the CPU
            check_pixels(name, window, image[8:36, 3:30], exact=False)


@pytest.mark.parametrize("upright", [True, False])
def test_orientation(upright):
    images = {k: v for k, v in {**jpegs(), **tiffs()}.items() if "exif" in k or "orient" in k}
    check_like_cpu(
        "decoders.image_crop",
        images,
        crop=(17, 33),
        crop_pos_x=0.2,
        crop_pos_y=0.9,
        adjust_orientation=upright,
    )


@pytest.mark.parametrize("color", [types.BGR, types.GRAY, types.YCbCr], ids=lambda c: c.name)
def test_colors_and_types(color):
    images = without(jpegs(), ("1x1", "1x17", "17x1", "15x33", "16x16"))
    check_like_cpu("decoders.image_crop", images, crop=(20, 35), output_type=color)
    check_like_cpu(
        "decoders.image_crop", images, crop=(20, 35), output_type=color, dtype=types.FLOAT, ulps=1
    )


def test_slices_by_inputs(images):
    rng = np.random.default_rng(2)
    anchors = [rng.uniform(0, 0.3, 2).astype(np.float32) for _ in images]
    shapes = [rng.uniform(0.1, 0.7, 2).astype(np.float32) for _ in images]
    check_like_cpu("decoders.image_slice", images, anchors, shapes)
    check_like_cpu("decoders.image_slice", images, anchors, shapes, axis_names="HW")


def test_slices_by_arguments(images):
    check_like_cpu("decoders.image_slice", images, rel_start=(0.2, 0.1), rel_end=(0.95, 0.9))
    starts = [np.array([i % 3, i % 5], np.int32) for i in range(len(images))]
    check_like_cpu("decoders.image_slice", images, start=starts, shape=(30, 31))


@pytest.mark.parametrize("seed", range(4))
def test_random_crops(images, seed):
    check_like_cpu("decoders.image_random_crop", images, seed=seed, iteration=5 + seed)


def test_random_crops_of_an_area(images):
    check_like_cpu(
        "decoders.image_random_crop",
        images,
        seed=9,
        random_area=(0.3, 0.5),
        random_aspect_ratio=(0.9, 1.1),
        num_attempts=3,
    )


def test_former_names():
    rows = encoded(without(jpegs(), ("1x1", "1x17", "17x1", "15x33", "16x16")))
    want = run_gpu_operator("decoders.image_crop", rows, crop=(8, 34))
    for name in ("image_decoder_crop", "experimental.decoders.image_crop"):
        for got, expected in zip(run_gpu_operator(name, rows, crop=(8, 34)), want, strict=True):
            np.testing.assert_array_equal(got, expected)
