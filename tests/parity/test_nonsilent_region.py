"""`fn.nonsilent_region` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity, run_graph
from tests.support.speech import CLIPS, decoded, encoded

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32")


def signal(begin=3000, end=7000, length=12000, seed=0, dtype="float32", loudness=0.3, floor=0.0):
    values = np.random.default_rng(seed).uniform(-1, 1, length) * floor
    values[begin:end] = np.random.default_rng(seed).uniform(-1, 1, end - begin)
    values *= loudness
    return (np.abs(values) if dtype.startswith("u") else values).astype(dtype)


def same(data, **arguments):
    assert_parity(lambda lib, x: lib.fn.nonsilent_region(x, **arguments), data, max_levels=0)


@pytest.mark.parametrize("length", [1, 2, 5, 2047, 2048, 2049, 2060, 8192, 8193, 20000])
def test_lengths(length):
    same([signal(length // 3, length, length)], reset_interval=8192)
    same([signal(0, length, length)])
    same([signal(0, length, length)], window_length=1)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"window_length": 1},
        {"window_length": 4096},
        {"window_length": 12000, "reset_interval": -1},
        {"window_length": 12001, "reset_interval": -1},
        {"window_length": 50000, "reset_interval": -1},
        {"window_length": 11999, "reset_interval": 11999},
        {"window_length": 5, "reset_interval": 10},
        {"window_length": 5, "reset_interval": -1},
        {"reset_interval": -1},
        {"reset_interval": 2048},
        {"reset_interval": 4096},
        {"cutoff_db": 0},
        {"cutoff_db": 10},
        {"cutoff_db": -10},
        {"cutoff_db": -300},
        {"cutoff_db": -1e6},
        {"cutoff_db": 1e6},
        {"reference_power": 1},
        {"reference_power": 1e9},
        {"reference_power": 0.05, "cutoff_db": -12},
        {"reference_power": 1e-9},
    ],
)
def test_arguments(arguments):
    same([signal(), signal(0, 100), signal(11900, 12000), signal(5, 6)], **arguments)


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    loudness = min(1e6, float(np.iinfo(dtype).max)) if dtype != "float32" else 1
    for cutoff in (-60, -20, -3):
        same([signal(dtype=dtype, loudness=loudness, floor=0.01)], cutoff_db=cutoff)
        same(
            [signal(dtype=dtype, loudness=loudness, floor=0.01)],
            cutoff_db=cutoff,
            window_length=64,
            reference_power=(loudness / 3) ** 2,
        )
    if dtype != "float32":
        # Sums of integers are not made anew, so that the interval of that need not fit.
        same([signal(dtype=dtype, loudness=loudness)], window_length=5)
        same([signal(dtype=dtype, loudness=loudness)], window_length=64, reset_interval=100)


@pytest.mark.parametrize("seed", range(60))
def test_thresholds_below_the_precision_of_the_sum(seed):
    rng = np.random.default_rng(seed)
    window, times = int(rng.integers(1, 60)), int(rng.integers(1, 30))
    begin, end = sorted(rng.integers(0, 1500, 2))
    data = signal(begin, end, 1500, seed, loudness=10 ** rng.uniform(-3, 3))
    cutoff = float(rng.uniform(-140, -50))
    same([data], window_length=window, cutoff_db=cutoff, reset_interval=window * times)


def test_silence():
    silent = [np.zeros(5000, np.float32), np.zeros(10, np.float32)]
    same(silent)
    same(silent, reference_power=1)


def test_speech():
    data = [decoded(encoded(name))[:, 0] for name in CLIPS]
    for cutoff in (-60, -40, -20):
        same(data, cutoff_db=cutoff)
        same(data, cutoff_db=cutoff, window_length=256)


def test_layout():
    assert_parity(lambda lib, x: lib.fn.nonsilent_region(x), [signal()], layouts="t", max_levels=0)


@pytest.mark.parametrize(
    "arguments",
    [
        {"reset_interval": -2},
        {"reset_interval": 100},
        {"reset_interval": 3000},
        {"window_length": 3},
        {"window_length": 20000},
        {"reference_power": 0},
        {"reference_power": -1},
    ],
)
def test_arguments_that_make_no_sense(arguments):
    assert_both_raise(lambda lib, x: lib.fn.nonsilent_region(x, **arguments), [signal()])


@pytest.mark.parametrize("arguments", [{"window_length": 0}, {"reset_interval": 0}])
def test_arguments_that_end_or_hang_dali(arguments):
    with pytest.raises(ValueError, match=r"at least 1|multiple"):
        run_graph("headrace", lambda lib, x: lib.fn.nonsilent_region(x, **arguments), [signal()])


def test_data_that_is_no_signal():
    for data in (signal().reshape(-1, 1), signal()[:12].reshape(3, 4), signal()[0].reshape(())):
        assert_both_raise(lambda lib, x: lib.fn.nonsilent_region(x), [data])
    for dtype in ("float16", "float64", "bool"):
        assert_both_raise(lambda lib, x: lib.fn.nonsilent_region(x), [signal().astype(dtype)])


def test_an_empty_signal_crashes_dali():
    found = run_graph(
        "headrace", lambda lib, x: lib.fn.nonsilent_region(x), [np.zeros(0, np.float32)]
    )
    assert [int(output.samples[0]) for output in found[0]] == [0, 0]
