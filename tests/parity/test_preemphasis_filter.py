"""`fn.preemphasis_filter` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity, run_graph
from tests.support.speech import CLIPS, decoded, encoded

TYPES = (
    *("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64"),
    *("float32", "float64"),
)
NAMES = {"float32": "FLOAT", "float64": "FLOAT64"}


def noise(*shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).standard_normal(shape) * 40
    return (np.abs(values) if dtype.startswith("u") else values).astype(dtype)


@pytest.mark.parametrize("border", ["clamp", "zero", "reflect"])
def test_borders(border):
    assert_parity(
        lambda lib, x: lib.fn.preemphasis_filter(x, border=border),
        [noise(100), noise(2), noise(3, seed=5)],
    )


@pytest.mark.parametrize("border", ["clamp", "zero"])
def test_one_sample(border):
    assert_parity(lambda lib, x: lib.fn.preemphasis_filter(x, border=border), [noise(1)])


@pytest.mark.sweep
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_types(source, target):
    data = noise(5000, dtype=source)
    assert_parity(
        lambda lib, x: lib.fn.preemphasis_filter(
            x, dtype=getattr(lib.types, NAMES.get(target, target.upper()))
        ),
        [data],
        max_levels=0,
        relative=0,
        absolute=0,
    )


@pytest.mark.parametrize("source", ["int32", "uint32", "int64", "float32", "float64"])
def test_large_numbers(source):
    data = (np.random.default_rng(0).uniform(0, 2e9, 1000)).astype(source)
    assert_parity(
        lambda lib, x: tuple(
            lib.fn.preemphasis_filter(x, dtype=getattr(lib.types, t), preemph_coeff=1.7)
            for t in ("FLOAT", "FLOAT64", "INT16", "UINT8", "INT64")
        ),
        [data],
        max_levels=0,
        relative=0,
        absolute=0,
    )


@pytest.mark.parametrize("shape", [(30, 1), (30, 2), (4, 5, 6)])
def test_several_axes_are_one_signal(shape):
    assert_parity(lambda lib, x: lib.fn.preemphasis_filter(x), [noise(*shape)])


@pytest.mark.parametrize("layout", ["t", "tc", "ABC"])
def test_layouts(layout):
    assert_parity(
        lambda lib, x: lib.fn.preemphasis_filter(x),
        [noise(*(5, 3, 2)[: len(layout)])],
        layouts=layout,
    )


def test_coefficients():
    data = [noise(50), noise(7), noise(9)]
    for coefficient in (0, 1, -0.5, 0.1, 30):
        assert_parity(
            lambda lib, x, k=coefficient: lib.fn.preemphasis_filter(x, preemph_coeff=k), data
        )
    each = [np.float32(v) for v in (0.5, 0.9, 0)]
    for values in (each, [v.reshape(1) for v in each]):
        assert_parity(lambda lib, x, k: lib.fn.preemphasis_filter(x, preemph_coeff=k), data, values)


def test_not_a_number_and_infinity():
    assert_parity(
        lambda lib, x: tuple(
            lib.fn.preemphasis_filter(x, dtype=getattr(lib.types, t)) for t in ("FLOAT", "INT16")
        ),
        [np.array([np.nan, 1, np.inf, 3, 4], np.float32)],
    )


def test_speech():
    assert_parity(
        lambda lib, x: lib.fn.preemphasis_filter(x),
        [decoded(encoded(name))[:, 0] for name in CLIPS],
    )


def test_an_empty_signal_crashes_dali():
    found = run_graph("headrace", lambda lib, x: lib.fn.preemphasis_filter(x), [noise(0)])
    assert found[0][0].samples[0].shape == (0,)


def test_reflecting_one_sample():
    # DALI reads what lies behind the signal.
    found = run_graph(
        "headrace", lambda lib, x: lib.fn.preemphasis_filter(x, border="reflect"), [noise(1)]
    )
    np.testing.assert_array_equal(found[0][0].samples[0], noise(1))


def test_errors():
    for border in ("wrap", "Clamp", ""):
        assert_both_raise(
            lambda lib, x, border=border: lib.fn.preemphasis_filter(x, border=border),
            [noise(5)],
            match="clamp",
        )
    for dtype in ("float16", "bool"):
        assert_both_raise(lambda lib, x: lib.fn.preemphasis_filter(x), [noise(5).astype(dtype)])
    for dtype in ("FLOAT16", "BOOL"):
        assert_both_raise(
            lambda lib, x, dtype=dtype: lib.fn.preemphasis_filter(
                x, dtype=getattr(lib.types, dtype)
            ),
            [noise(5)],
        )
    assert_both_raise(
        lambda lib, x, k: lib.fn.preemphasis_filter(x, preemph_coeff=k),
        [noise(5)],
        [np.float32([1, 2])],
    )
