"""Conversions between colour spaces, by OpenCV and by the loops here."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.color import transform_pixels
from headrace.kernels.cpu.color_spaces import CHANNELS, CONVERSIONS, convert_pixels


@pytest.mark.parametrize("pair", CONVERSIONS, ids="-".join)
def test_opencv_has_the_same_bytes(pair):
    channels, made = CHANNELS[pair[0]], CHANNELS[pair[1]]
    pixels = np.random.default_rng(0).integers(0, 256, (4, 100, 301, channels), np.uint8)
    for source in (pixels, pixels[0], pixels[:, ::2, 3:], pixels[1, ::-1, ::-1], pixels[:, :0]):
        got, want = (np.zeros((*source.shape[:-1], made), np.uint8) for _ in range(2))
        convert_pixels(source, pair, got)
        numbers, reverses = CONVERSIONS[pair]
        transform_pixels(source, numbers, want, reverses=reverses)
        np.testing.assert_array_equal(got, want)
