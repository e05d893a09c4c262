"""`clahe` on the GPU: the bytes of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gpu.alike import check_alike, check_same_error

_rng = np.random.default_rng(0)
SHAPES = [(24, 32), (33, 21), (24, 21), (1, 1), (1, 9), (7, 1), (3, 2), (0, 4)]
SETTINGS = [
    {"tiles_x": 4, "tiles_y": 3, "clip_limit": 2.0},
    {"tiles_x": 1, "tiles_y": 5, "clip_limit": 0.3, "luma_only": False},
    {"tiles_x": 40, "tiles_y": 2, "clip_limit": 0.0},
    {"tiles_x": 2, "tiles_y": 2, "clip_limit": 40.0, "luma_only": False},
]


@pytest.mark.parametrize("options", SETTINGS)
def test_bytes(options):
    images = [
        _rng.normal(120, 30, (*shape, channels)).clip(0, 255).astype(np.uint8)
        for shape in SHAPES
        for channels in (1, 3)
    ]
    check_alike("clahe", images, layout="HWC", **options)
    check_alike("clahe", [images[3]] * 2, layout="HWC", **options)


def test_all_colors():
    """Both ways through CIE L*a*b*, of colours from all over the cube."""
    steps = np.arange(0, 256, 5, dtype=np.uint8)
    cube = np.stack(np.meshgrid(steps, steps, steps), axis=-1).reshape(-1, 52, 3)
    noise = _rng.integers(0, 256, (100, 100, 3), np.uint8)
    options = {"tiles_x": 2, "tiles_y": 2, "clip_limit": 3.0}
    check_alike("clahe", [cube, noise], layout="HWC", **options)


def test_errors():
    images = [np.zeros((4, 5, n), np.uint8) for n in (3, 2)]
    check_same_error("clahe", images, layout="HWC", sample=1, **SETTINGS[0])
