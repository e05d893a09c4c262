"""`fn.cast` and `fn.cast_like` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

TYPES = {
    "uint8": "UINT8",
    "int8": "INT8",
    "uint16": "UINT16",
    "int16": "INT16",
    "uint32": "UINT32",
    "int32": "INT32",
    "uint64": "UINT64",
    "int64": "INT64",
    "float16": "FLOAT16",
    "float32": "FLOAT",
    "float64": "FLOAT64",
    "bool": "BOOL",
}
REAL = [0, -0.0, 0.4, 0.5, 0.6, 0.49999997, 0.50000006, 1.5, 2.5, 3.5, -0.4, -0.5, -0.6, -1.5, -2.5]
REAL += [127.4, 127.5, 128, -128.5, -128.6, 254.5, 255.4, 255.5, 256, 300, -300, 32767.5, 40000]
REAL += [65504, 65535.5, 70000, -7e4, 2147483520.0, 2147483648.0, 4294967040.0, 4294967296.0, -3e9]
REAL += [8388607.5, 8388608.5, 16777215, 9.2e18, 9.3e18, 1.8e19, 1.9e19, -9.3e18, -1e20, 1e38]
REAL += [np.inf, -np.inf, np.nan, 1e-40, 6e-8, 1e-5, 65519, 65520]
WHOLE = [0, 1, 2, 127, 128, 255, 256, 2051, 32767, 32768, 65519, 65520, 65535, 65536]
WHOLE += [2**31 - 1, 2**31, 2**32 - 1, 2**32, 16777217, 16777219, 2**53 + 1, 2**63 - 1, 2**63]
WHOLE += [2**64 - 1, -1, -2, -128, -129, -32768, -32769, -(2**31), -(2**31) - 1, -(2**63)]


def values(dtype: str) -> np.ndarray:
    """Everything near a limit or a half."""
    if dtype == "bool":
        return np.array([False, True])
    if dtype.startswith("float"):
        with np.errstate(all="ignore"):
            return np.array(REAL, np.float64).astype(dtype)
    info = np.iinfo(dtype)
    return np.array([v for v in WHOLE if info.min <= v <= info.max], dtype)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.parametrize("source", TYPES)
def test_every_pair_of_types(source):
    exact(
        lambda lib, x: tuple(lib.fn.cast(x, dtype=getattr(lib.types, t)) for t in TYPES.values()),
        [values(source), values(source)[::-1].copy()],
    )


@pytest.mark.parametrize("layout", ["HWC", "DHWC", "FHWC", "CHW", ""])
def test_layouts_stay(layout):
    shape = (2, 3, 4, 5)[: len(layout) or 2]
    exact(
        lambda lib, x: (
            lib.fn.cast(x, dtype=lib.types.FLOAT),
            lib.fn.cast(x, dtype=lib.types.UINT8),
            lib.fn.cast(x, dtype=lib.types.INT16),
        ),
        [np.linspace(-3, 300, np.prod(shape), dtype=np.float32).reshape(shape)],
        layouts=layout,
    )


def test_random_images_there_and_back():
    rng = np.random.default_rng(0)
    images = [rng.normal(120, 90, (h, w, 3)).astype(np.float32) for h, w in ((9, 31), (64, 17))]
    exact(
        lambda lib, x: (
            lib.fn.cast(x, dtype=lib.types.UINT8),
            lib.fn.cast(lib.fn.cast(x, dtype=lib.types.UINT8), dtype=lib.types.FLOAT),
            lib.fn.cast(x, dtype=lib.types.INT32),
        ),
        images,
        layouts="HWC",
    )


def test_float16_may_differ_from_dali_in_ties_only():
    rng = np.random.default_rng(0)
    assert_parity(
        lambda lib, x: lib.fn.cast(x, dtype=lib.types.FLOAT16),
        [rng.normal(0, 1e4, 100_000).astype(np.float32)],
        relative=1e-3,
    )


def test_windows_and_mirror_images():
    rng = np.random.default_rng(0)
    images = [rng.normal(120, 90, (h, w, 3)).astype(np.float32) for h, w in ((9, 31), (24, 17))]
    exact(
        lambda lib, x: tuple(
            lib.fn.cast(f(x), dtype=t)
            for t in (lib.types.UINT8, lib.types.INT64, lib.types.FLOAT64, lib.types.BOOL)
            for f in (
                lambda x: lib.fn.crop(x, crop=(7, 9)),
                lambda x: lib.fn.flip(x, horizontal=0, vertical=1),
                lambda x: lib.fn.slice(x, start=[1], end=[2], axes=[2]),
            )
        ),
        images,
        layouts="HWC",
    )


def test_scalars_and_empty_data():
    exact(
        lambda lib, x: (
            lib.fn.cast(x, dtype=lib.types.UINT8),
            lib.fn.cast(x, dtype=lib.types.FLOAT16),
        ),
        [np.array(2.5, np.float32), np.array(700, np.float32)],
    )
    exact(
        lambda lib, x: (
            lib.fn.cast(x, dtype=lib.types.UINT8),
            lib.fn.cast(x, dtype=lib.types.FLOAT16),
            lib.fn.cast(x, dtype=lib.types.BOOL),
        ),
        [np.zeros((0, 3), np.float32), np.ones((2, 3), np.float32)],
    )


def test_cast_like():
    exact(
        lambda lib, x, y: (lib.fn.cast_like(x, y), lib.fn.cast_like(y, x)),
        [np.array([[1.5, 300, -4]], np.float32)] * 2,
        [np.arange(4, dtype=np.uint8), np.arange(0, dtype=np.uint8)],
        layouts=("HW", "X"),
    )


def test_errors():
    data = [np.zeros((2, 2), np.float32)]
    assert_both_raise(lambda lib, x: lib.fn.cast(x, dtype=lib.types.STRING), data, match="dtype")
    assert_both_raise(lambda lib, x: lib.fn.cast(x), data, match="dtype")
