from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernels.cpu import cast, half
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.rows import as_rows

INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")


def convert(values, target: str, **options) -> np.ndarray:
    out = np.empty(values.shape, target)
    converter(values.dtype, np.dtype(target), **options)(values, out)
    return out


@pytest.mark.sweep
@pytest.mark.parametrize("source", ["float32", "float64"])
@pytest.mark.parametrize("target", INTEGERS)
@given(st.lists(st.floats(allow_nan=False, width=32), min_size=1, max_size=40))
def test_halves_go_away_from_zero_and_limits_hold(source, target, numbers):
    info = np.iinfo(target)
    values = np.array(numbers, np.float32).astype(source)
    wanted = []
    for value in map(float, values):
        if np.isinf(value):
            wanted.append(info.max if value > 0 else info.min)
        else:
            rounded = _nearest(value) if value >= 0 else -_nearest(-value)
            wanted.append(min(max(rounded, info.min), info.max))
    np.testing.assert_array_equal(convert(values, target), np.array(wanted, target))


def _nearest(value: float) -> int:
    whole = int(value)
    return whole + (value - whole >= 0.5)


@pytest.mark.sweep
@pytest.mark.parametrize("target", INTEGERS)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_saturate(source, target):
    have, want = np.iinfo(source), np.iinfo(target)
    values = [v for v in (0, 1, 127, 128, 255, 256, 2**31, have.min, have.max) if v <= have.max]
    expected = [min(max(v, want.min), want.max) for v in values]
    np.testing.assert_array_equal(
        convert(np.array(values, source), target), np.array(expected, target)
    )


@pytest.mark.parametrize("source", ["float16", "float32", "float64", "int8", "uint64", "bool"])
def test_truth(source):
    values = np.array([0, 1, 2], source)
    np.testing.assert_array_equal(convert(values, "bool"), [False, True, True])
    if source.startswith("float"):
        values = np.array([0.4, 0.5, -0.4, -0.6, np.nan], source)
        np.testing.assert_array_equal(convert(values, "bool"), [False, True, False, True, True])


@given(st.lists(st.floats(width=32), min_size=1, max_size=60))
def test_float16_is_that_of_numpy(numbers):
    values = np.array(numbers, np.float32)
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16)
    np.testing.assert_array_equal(convert(values, "float16"), expected)


def test_all_float16_survive_a_round_trip():
    every = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    wide = convert(every, "float32")
    np.testing.assert_array_equal(wide, every.astype(np.float32))
    np.testing.assert_array_equal(convert(wide, "float16"), every)


def test_without_the_instructions_float16_is_the_same(monkeypatch):
    monkeypatch.setattr(half, "available", lambda: False)
    values = np.array([0.1, 2049, 70000, -np.inf, np.nan, 1e-7], np.float32)
    out = np.empty(values.shape, np.float16)
    cast._to_half(saturate=False)(values, out)
    np.testing.assert_array_equal(out, convert(values, "float16"))
    cast._to_half(saturate=True)(values, out)
    np.testing.assert_array_equal(out, convert(values, "float16", rounded=False))
    wide = np.empty(values.shape, np.float32)
    cast._from_half()(out, wide)
    np.testing.assert_array_equal(wide, out.astype(np.float32))


def test_rules_of_slice():
    values = np.array([2.5, 3.9, -0.9, 300, -np.inf, np.nan], np.float32)
    np.testing.assert_array_equal(convert(values, "uint8", rounded=False), [2, 3, 0, 255, 0, 0])
    large = np.array([1e300, -np.inf, np.nan])
    limit = np.finfo(np.float32).max
    np.testing.assert_array_equal(convert(large, "float32", rounded=False), [limit, -limit, np.nan])
    np.testing.assert_array_equal(
        convert(large, "float16", rounded=False), np.float16([65504, -65504, np.nan])
    )


@pytest.mark.parametrize(("source", "target"), [("float32", "uint8"), ("float32", "float16")])
def test_views(source, target):
    large = np.random.default_rng(0).normal(100, 200, (9, 8, 7)).astype(source)
    for view in (
        large[1:-1, 2:-1],
        large[:, :, 1:2],
        large[::2],
        large[::-1],
        large.T,
        large[:, ::-1],
        large[1:1],
        large[0, 0, 0],
        large[1:-1, 2:-1, 1:-1],
    ):
        np.testing.assert_array_equal(convert(view, target), convert(view.copy(), target))


def test_windows_are_read_in_place():
    image = np.arange(6 * 5 * 3, dtype=np.int32).reshape(6, 5, 3)
    window = image[1:4, 2:4]
    flat, rows, width, stride = as_rows(window)
    assert np.shares_memory(flat, image)
    assert (rows, width, stride) == (3, 6, 15)
    taken = [flat[r * stride : r * stride + width] for r in range(rows)]
    np.testing.assert_array_equal(np.concatenate(taken), window.reshape(-1))
