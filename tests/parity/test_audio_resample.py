"""`fn.audio_resample` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity, run_graph
from tests.support.speech import CLIPS, decoded, encoded

TYPES = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "float32")


def noise(*shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    if dtype == "float32":
        return values.astype(dtype)
    info = np.iinfo(dtype)
    return ((values * 0.5 + (0 if info.min else 0.5)) * (info.max * 0.9)).astype(dtype)


def dali_type(lib, dtype):
    return getattr(lib.types, "FLOAT" if dtype == "float32" else dtype.upper())


@pytest.mark.parametrize("length", [1, 2, 3, 10, 31, 32, 33, 300, 5000])
def test_lengths(length):
    assert_parity(
        lambda lib, x: tuple(
            lib.fn.audio_resample(x, **arguments)
            for arguments in (
                {"scale": 0.5},
                {"scale": 1.0},
                {"scale": 1.7},
                {"scale": 1 / 3},
                {"scale": 0.01},
                {"in_rate": 44100, "out_rate": 16000},
                {"in_rate": 16000, "out_rate": 22050},
                {"in_rate": 22050.5, "out_rate": 16000.25},
                {"in_rate": 3, "out_rate": 2},
                {"in_rate": 1, "out_rate": 0},
                {"out_length": 7},
                {"out_length": 1234},
                {"out_length": 0},
            )
        ),
        [noise(length), noise(length + 3, seed=1)],
        absolute=2e-5,
    )


@pytest.mark.parametrize("quality", [0, 1, 10, 25, 33.3, 50, 66.6, 90, 100])
def test_quality(quality):
    assert_parity(
        lambda lib, x: tuple(
            lib.fn.audio_resample(x, scale=scale, quality=quality) for scale in (0.37, 1, 2.9)
        ),
        [noise(700), noise(40)],
        absolute=3e-5,
    )


@pytest.mark.parametrize("channels", [0, 1, 2, 3, 9])
def test_channels(channels):
    assert_parity(
        lambda lib, x: (lib.fn.audio_resample(x, scale=0.77), lib.fn.audio_resample(x, scale=3)),
        [noise(300, channels), noise(20, channels)],
    )


@pytest.mark.parametrize("layout", ["t", "tc", "ct", "FC", ""])
def test_layouts(layout):
    shape = (50, 3)[: len(layout) or 1]
    assert_parity(
        lambda lib, x: lib.fn.audio_resample(x, scale=1.5), [noise(*shape)], layouts=layout
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_types(dtype):
    wide = dtype in ("int32", "uint32")
    assert_parity(
        lambda lib, x: (
            lib.fn.audio_resample(x, scale=0.9),
            lib.fn.audio_resample(x, scale=1.9, dtype=dali_type(lib, dtype)),
        ),
        [noise(500, dtype=dtype)],
        max_levels=30000 if wide else 1,
        differing=1 if wide else 0.01,
    )


@pytest.mark.sweep
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_other_types(source, target):
    wide = target in ("int32", "uint32")
    assert_parity(
        lambda lib, x: lib.fn.audio_resample(x, scale=1.3, dtype=dali_type(lib, target)),
        [noise(500, dtype=source), noise(500, 2, dtype=source).reshape(-1)],
        max_levels=30000 if wide else 1,
        differing=1 if wide else 0.01,
    )


@pytest.mark.parametrize("dtype", TYPES)
def test_full_range(dtype):
    info = None if dtype == "float32" else np.iinfo(dtype)
    ends = (-1.5, 1.5) if info is None else (info.min, info.max)
    data = np.repeat(np.array(ends, dtype), 60)
    wide = ("int32", "uint32")
    for target in TYPES:
        assert_parity(
            lambda lib, x, target=target: lib.fn.audio_resample(
                x, scale=1.3, dtype=dali_type(lib, target)
            ),
            [data],
            max_levels=30000 if target in wide else 1,
            differing=1 if target in wide else 0.02,
        )


def test_silence():
    for dtype in ("float32", "int16"):
        for target in TYPES:
            assert_parity(
                lambda lib, x, target=target: lib.fn.audio_resample(
                    x, scale=1.3, dtype=dali_type(lib, target)
                ),
                [np.zeros(40, dtype)],
                max_levels=5000 if target == "uint32" else 0,
                differing=1,
            )


def test_arguments_for_each_sample():
    data = [noise(100), noise(333, seed=1), noise(50, seed=2)]
    scales = [np.float32(v) for v in (0.5, 1.25, 2)]
    rates = [np.float32(v) for v in (8000, 16000, 44100)]
    lengths = [np.int64(v) for v in (10, 333, 0)]
    resampled = lambda lib, x, **arguments: lib.fn.audio_resample(x, **arguments)  # noqa: E731
    assert_parity(lambda lib, x, a: resampled(lib, x, scale=a), data, scales)
    assert_parity(lambda lib, x, a: resampled(lib, x, in_rate=a, out_rate=16000), data, rates)
    assert_parity(lambda lib, x, a: resampled(lib, x, in_rate=16000, out_rate=a), data, rates)
    assert_parity(
        lambda lib, x, a, b: resampled(lib, x, in_rate=a, out_rate=b), data, rates, rates[::-1]
    )
    assert_parity(lambda lib, x, a: resampled(lib, x, out_length=a), data, lengths)


def test_numbers_for_each_sample_may_be_arrays_of_one():
    # DALI takes scalars only here, and arrays of one number everywhere else.
    data, scale = [noise(100)], [np.float32([2])]
    graph = lambda lib, x, a: lib.fn.audio_resample(x, scale=a)  # noqa: E731
    with pytest.raises(RuntimeError):
        run_graph("dali", graph, data, scale)
    assert run_graph("headrace", graph, data, scale)[0][0].samples[0].shape == (200,)


def test_empty_signals():
    assert_parity(
        lambda lib, x: (
            lib.fn.audio_resample(x, scale=2),
            lib.fn.audio_resample(x, out_length=0),
            lib.fn.audio_resample(x, in_rate=2, out_rate=3),
        ),
        [noise(0)],
    )
    assert_both_raise(
        lambda lib, x: lib.fn.audio_resample(x, out_length=3), [noise(0)], match="empty"
    )


def test_speech():
    assert_parity(
        lambda lib, x: (
            lib.fn.audio_resample(x, in_rate=16000, out_rate=11025),
            lib.fn.audio_resample(x, in_rate=16000, out_rate=44100, quality=90),
        ),
        [decoded(encoded(name))[:, 0] for name in CLIPS],
        absolute=2e-5,
    )


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"in_rate": 1},
        {"out_rate": 1},
        {"scale": 1, "out_length": 1},
        {"scale": 1, "in_rate": 1, "out_rate": 1},
        {"out_length": 1, "in_rate": 1, "out_rate": 1},
        {"scale": -1},
        {"scale": float("nan")},
        {"scale": float("inf")},
        {"in_rate": 0, "out_rate": 1},
        {"in_rate": -1, "out_rate": -1},
        {"in_rate": 1, "out_rate": -1},
        {"out_length": -1},
        {"scale": 2, "quality": -1},
        {"scale": 2, "quality": 101},
        {"scale": 1e15},
    ],
)
def test_arguments_that_make_no_sense(arguments):
    assert_both_raise(lambda lib, x: lib.fn.audio_resample(x, **arguments), [noise(10)])


@pytest.mark.parametrize("dtype", ["float16", "float64", "int64", "uint64", "bool"])
def test_types_that_there_are_not(dtype):
    assert_both_raise(lambda lib, x: lib.fn.audio_resample(x, scale=1), [noise(10).astype(dtype)])
    name = {"float64": "FLOAT64", "bool": "BOOL"}.get(dtype, dtype.upper())
    assert_both_raise(
        lambda lib, x: lib.fn.audio_resample(x, scale=1, dtype=getattr(lib.types, name)),
        [noise(10)],
    )


@pytest.mark.parametrize("shape", [(), (2, 2, 2)])
def test_ranks_that_are_no_audio(shape):
    assert_both_raise(lambda lib, x: lib.fn.audio_resample(x, scale=2), [noise(*shape)])


def test_the_old_name():
    with pytest.warns(Warning, match="audio_resample"):
        assert_parity(lambda lib, x: lib.fn.experimental.audio_resample(x, scale=2), [noise(10)])
