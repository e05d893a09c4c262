"""`fn.clahe` against DALI: the same bytes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity, run_graph
from tests.parity.words import check_words, on

_rng = np.random.default_rng(0)
SHAPES = [(48, 64), (33, 45), (48, 45), (1, 1), (1, 9), (7, 1), (3, 2), (130, 20)]


def images(channels):
    found = []
    for height, width in SHAPES:
        y, x = np.mgrid[:height, :width]
        waves = 110 + 60 * np.sin(x / 9 + y / 17)[..., np.newaxis] + 9 * np.arange(channels)
        noise = _rng.normal(0, 9, (height, width, channels))
        found.append((waves + noise).clip(0, 255).astype(np.uint8))
    return found


@pytest.mark.parametrize("channels", [1, 3])
def test_bytes(channels):
    data = images(channels)

    def graph(lib, x):
        clahe = lib.fn.clahe
        return (
            clahe(x, tiles_x=4, tiles_y=4, clip_limit=2.0),
            clahe(x, tiles_x=3, tiles_y=8, clip_limit=4.5, luma_only=False, bins=256),
            clahe(x, tiles_x=1, tiles_y=1, clip_limit=0.3),
            clahe(x, tiles_x=60, tiles_y=2, clip_limit=0.0),
            clahe(x, tiles_x=2, tiles_y=2, clip_limit=-1.0),
        )

    for layout in ("HWC", ""):
        assert_parity(graph, data, layouts=layout, max_levels=0)
    gray_and_colors = [data[0], images(4 - channels)[1]]
    one = lambda lib, x: lib.fn.clahe(x, tiles_x=4, tiles_y=4, clip_limit=2.0)  # noqa: E731
    assert_parity(one, gray_and_colors, layouts="HWC", max_levels=0)


def test_limits_beyond_all_pixels():
    """What limits nothing: DALI's integers overflow there."""

    def graph(lib, x):
        return tuple(
            lib.fn.clahe(x, tiles_x=2, tiles_y=2, clip_limit=limit)
            for limit in (0.0, 256.0, 1e9, float("inf"))
        )

    ((free, *limited),) = run_graph("headrace", graph, images(1), layouts="HWC")
    for output in limited:
        for got, wanted in zip(output.samples, free.samples, strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_no_pixels():
    """A pipeline of DALI waits forever for them."""
    settings = {"tiles_x": 2, "tiles_y": 2, "clip_limit": 2.0}
    feed = [images(3)[0], np.empty((0, 4, 3), np.uint8)]
    found = run_graph("headrace", lambda lib, x: lib.fn.clahe(x, **settings), feed, layouts="HWC")
    assert found[0][0].samples[1].shape == (0, 4, 3)


def test_errors():
    data = [np.zeros((8, 9, 3), np.uint8)]
    settings = {"tiles_x": 2, "tiles_y": 2, "clip_limit": 2.0}

    def clahe(**changed):
        return lambda lib, x: lib.fn.clahe(x, **{**settings, **changed})

    for channels in (2, 4):
        check_words([(on([np.zeros((8, 9, channels), np.uint8)], clahe(), "HWC"), "channels")])
    for dtype in ("float32", "uint16"):
        for library in ("dali", "headrace"):
            with pytest.raises(ValueError, match=r"(?i)uint8"):
                run_graph(library, clahe(), [data[0].astype(dtype)], layouts="HWC")
    for layout, wrong in (("CHW", data[0]), ("HW", data[0][0]), ("FHWC", data[0][np.newaxis])):
        assert_both_raise(clahe(), [wrong], layouts=layout)
    for name in settings:
        left = {key: value for key, value in settings.items() if key != name}
        assert_both_raise(lambda lib, x: lib.fn.clahe(x, **left), data, layouts="HWC")  # noqa: B023
    assert_both_raise(clahe(tiles_y=-1), data, layouts="HWC")
    # DALI divides by zero, or takes what is no number, or ignores it.
    for name, value in (("tiles_x", 0), ("clip_limit", np.nan)):
        with pytest.raises(ValueError, match=f"`{name}` must be"):
            run_graph("headrace", clahe(**{name: value}), data, layouts="HWC")
    with pytest.raises(NotImplementedError, match="`bins`"):
        run_graph("headrace", clahe(bins=128), data, layouts="HWC")
