"""`pad` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gpu.alike import check_alike, check_same_error

_rng = np.random.default_rng(0)
IMAGES = [_rng.integers(0, 256, (*s, 3), np.uint8) for s in [(30, 41), (9, 12), (24, 9), (17, 17)]]
SIGNALS = [_rng.standard_normal(n).astype(np.float32) for n in (100, 1, 37, 2000)]


def each(*values, dtype=np.int32):
    return [np.asarray(v, dtype) for v in values]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"axis_names": "WH", "align": (2, 16)},
        {"axes": (0,), "fill_value": 300.0},
        {"shape": (20, -1, 5), "fill_value": -3.0},
        {"shape": (1,)},
        {"shape": each((40, 40, 3), (1, 1, 4), (0, 0, 0), (17, 17, 3))},
        {"align": each((4,), (5,), (6,), (7,))},
        {"axes": each((0,), (1,), (2,), (0,)), "align": (4,)},
        {"fill_value": each(1, 2, 1, 250, dtype=np.float32)},
    ],
    ids=str,
)
def test_images(arguments):
    check_alike("pad", IMAGES, layout="HWC", **arguments)


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float32", "int64", "float64"])
def test_signals(dtype):
    rows = [(100 * row).astype(dtype) for row in SIGNALS]
    check_alike("pad", rows, fill_value=2.5)
    check_alike("pad", [*rows[:2], rows[0][:0]], align=64)


def test_errors():
    check_same_error("pad", IMAGES, layout="HWC", sample=1, align=each((1,), (0,), (1,), (1,)))
    check_same_error("pad", IMAGES, layout="HWC", sample=2, axes=each((1,), (0,), (5,), (1,)))
