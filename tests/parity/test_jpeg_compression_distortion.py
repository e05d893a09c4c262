"""`fn.jpeg_compression_distortion` against DALI: the same bytes."""

from __future__ import annotations

import numpy as np

from tests.parity.support import assert_both_raise, assert_parity

_rng = np.random.default_rng(0)
SHAPES = [(50, 70, 3), (33, 21, 3), (16, 16, 3), (1, 9, 3), (9, 1, 3), (8, 4, 3), (1, 1, 3)]


def image(shape):
    y, x = np.mgrid[: shape[-3], : shape[-2]]
    waves = [127 + 100 * np.sin(x / 9 + y / 17), 127 + 90 * np.cos(x / 5 - y / 11), x * 3 + y * 2]
    noise = _rng.normal(0, 12, shape)
    return np.clip(np.stack(waves[: shape[-1]], -1) + noise, 0, 255).astype(np.uint8)


def distort(lib, images, *quality):
    return lib.fn.jpeg_compression_distortion(images, quality=quality[0] if quality else 50)


def test_bytes():
    images = [image(shape) for shape in SHAPES]
    for quality in (-7, 0, 1, 20, 49, 50, 75, 90, 96, 100, 107):
        graph = lambda lib, x: lib.fn.jpeg_compression_distortion(x, quality=quality)  # noqa: B023, E731
        assert_parity(graph, images, layouts="HWC", max_levels=0)
    each = [np.int32(q) for q in (0, 10, 30, 50, 70, 95, 100)]
    assert_parity(distort, images, each, layouts=["HWC", ""], max_levels=0)
    assert_parity(lambda lib, x: lib.fn.jpeg_compression_distortion(x), images, max_levels=0)
    sequences = [image((n, 20, 30, 3)) for n in (3, 1, 0)]
    for layout in ("FHWC", ""):
        assert_parity(distort, sequences, each[:3], layouts=[layout, ""], max_levels=0)


def test_errors():
    images = [image((20, 30, 3))]
    for wrong in (images[0][..., :2], np.concatenate([images[0]] * 2, axis=2)):
        feed = [np.ascontiguousarray(wrong)]
        assert_both_raise(distort, feed, layouts="HWC", match="Invalid number of channels")
    for dtype in (np.float32, np.int8):
        assert_both_raise(distort, [images[0].astype(dtype)], layouts="HWC")
    for layout in ("CHW", "DHW"):
        assert_both_raise(distort, images, layouts=layout)
    for quality in (np.float32(30), np.array([1, 2], np.int32)):
        assert_both_raise(distort, images, [quality], layouts=["HWC", ""])
