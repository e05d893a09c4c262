"""`slice`, `normalize` and what lies between them on audio, as training programs chain them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity
from tests.support.speech import CLIPS, encode, encoded

RATE = 16000


def ragged(channels=0, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(n, channels) if channels else (n,) for n in (900, 1000, 1001, 2500, 17)]
    return [rng.standard_normal(shape).astype(np.float32) for shape in shapes]


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("channels", [0, 1, 2])
@pytest.mark.parametrize("policy", ["pad", "trim_to_shape"])
@pytest.mark.parametrize("start", [0.0, 0.25, 0.5, 0.999, 1.0])
def test_a_second_from_a_relative_start(channels, policy, start):
    assert_parity(
        lambda lib, x: tuple(
            lib.fn.slice(
                x, rel_start=[start], shape=[shape], axes=[0], out_of_bounds_policy=policy, **more
            )
            for shape in (1, 1000)
            for more in ({}, {"fill_values": [7.5]})
        ),
        ragged(channels),
        max_levels=0,
        absolute=0,
        relative=0,
    )


@pytest.mark.parametrize("channels", [0, 2])
def test_starts_and_shapes_for_each_sample(channels):
    data = ragged(channels)
    rng = np.random.default_rng(1)
    starts = [rng.random(1).astype(np.float32) for _ in data]
    shapes = [np.array([n], np.int32) for n in (10, 1000, 1, 600, 40)]
    fractions = [rng.random(1).astype(np.float32) for _ in data]
    for policy in ("pad", "trim_to_shape"):
        common = {"axes": [0], "out_of_bounds_policy": policy}
        assert_parity(
            lambda lib, x, a, b, c=common: lib.fn.slice(x, rel_start=a, shape=b, **c),
            data,
            starts,
            shapes,
        )
        assert_parity(
            lambda lib, x, a, b, c=common: lib.fn.slice(x, rel_start=a, rel_shape=b, **c),
            data,
            starts,
            fractions,
        )
        assert_parity(
            lambda lib, x, a, b, c=common: lib.fn.slice(x, start=a, end=b, **c),
            data,
            [np.array([n], np.int32) for n in (0, -5, 3, 20, 16)],
            [np.array([n], np.int32) for n in (0, 50, 4, 3000, 17)],
        )


def test_scalars_for_each_sample():
    data = ragged()
    starts = [np.float32(v) for v in (0, 0.1, 0.2, 0.9, 1)]
    assert_parity(
        lambda lib, x, a: lib.fn.slice(
            x, rel_start=a, shape=500, axes=0, out_of_bounds_policy="pad"
        ),
        data,
        starts,
    )


def test_random_crops_are_refused_out_of_bounds():
    assert_both_raise(
        lambda lib, x: lib.fn.slice(x, rel_start=[0.5], shape=[1000], axes=[0]), ragged()
    )


def test_regions_that_are_not_silent():
    silent = np.zeros(3000, np.float32)
    silent[1000:2000] = ragged()[1][:1000]

    def graph(lib, x):
        begin, length = lib.fn.nonsilent_region(x, window_length=64, reset_interval=640)
        return lib.fn.slice(x, begin, length, axes=[0]), lib.fn.slice(
            x, start=begin, shape=length, axes=[0]
        )

    assert_parity(graph, [silent, silent[500:], silent[:1500]])


@pytest.mark.parametrize("shape", [(500,), (40, 30), (80, 101), (1, 50), (50, 1), (3, 40, 30)])
def test_normalize(shape):
    rng = np.random.default_rng(0)
    data = [(rng.standard_normal(shape) * 30 - 20).astype(np.float32) for _ in range(3)]
    axes = [None, [0], [len(shape) - 1], list(range(len(shape)))]
    for axis in axes:
        given = {} if axis is None else {"axes": axis}
        assert_parity(
            lambda lib, x, given=given: (
                lib.fn.normalize(x, **given),
                lib.fn.normalize(x, epsilon=1e-5, **given),
                lib.fn.normalize(x, mean=-20, stddev=30),
                lib.fn.normalize(x, scale=2, shift=1, ddof=0, **given),
                lib.fn.normalize(x, mean=-3, epsilon=0.5, **given),
            ),
            data,
            absolute=2e-5,
            relative=1e-4,
        )


@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_normalize_by_names_of_axes(layout):
    rng = np.random.default_rng(0)
    data = [rng.standard_normal((n, 20)).astype(np.float32) * 9 for n in (1, 30, 55)]
    assert_parity(
        lambda lib, x: tuple(
            lib.fn.normalize(x, axis_names=names, epsilon=1e-6) for names in ("f", "t", "ft")
        ),
        data,
        layouts=layout,
        absolute=2e-5,
    )
    assert_parity(
        lambda lib, x: lib.fn.normalize(x, axis_names="t", batch=True),
        data if layout == "tf" else [d.T.copy() for d in data],
        layouts=layout,
        absolute=2e-5,
    )


def test_normalize_silence():
    assert_parity(
        lambda lib, x: (lib.fn.normalize(x, epsilon=1e-6), lib.fn.normalize(x, axes=[0])),
        [np.zeros(100, np.float32), np.full(32, 4, np.float32)],
    )


def test_the_loop_of_a_training_program():
    files = [encoded(name) for name in CLIPS]
    starts = [np.float32([v]) for v in (0.0, 0.3, 0.7, 0.5)]
    gains = [np.float32(v) for v in (0.5, 1, 1.5, 0.1)]

    def graph(lib, x, start, gain):
        audio, rate = lib.fn.decoders.audio(x, downmix=True, sample_rate=RATE)
        audio = lib.fn.slice(
            audio, rel_start=start, shape=[RATE], axes=[0], out_of_bounds_policy="pad"
        )
        audio = audio * gain
        emphasised = lib.fn.preemphasis_filter(audio)
        return audio, lib.fn.normalize(emphasised, epsilon=1e-7), rate

    assert_parity(graph, files, starts, gains, absolute=2e-5, relative=1e-4)


def test_clips_that_are_shorter_than_their_crop():
    files = [encode(np.ones(n, np.float32) * 0.5, RATE, subtype="FLOAT") for n in (0, 1, 100)]
    assert_parity(
        lambda lib, x: lib.fn.slice(
            lib.fn.decoders.audio(x, downmix=True)[0],
            rel_start=[0.5],
            shape=[50],
            axes=[0],
            out_of_bounds_policy="pad",
        ),
        files,
    )
