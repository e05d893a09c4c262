"""`fn.noise` against DALI: other numbers of the same distributions."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import LIBRARIES, assert_both_raise, run_graph

TYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float32")
LEVEL = 100


def level(*shape: int, dtype: str = "uint8") -> np.ndarray:
    return np.full(shape, LEVEL, dtype)


def both(graph, data, layout=""):
    """The outputs of both for the same data; shapes, types and layouts are the same."""
    found = {lib: run_graph(lib, graph, data, layouts=layout)[0] for lib in LIBRARIES}
    for one, other in zip(*found.values(), strict=True):
        assert (one.dtype, one.layout) == (other.dtype, other.layout)
        assert [s.shape for s in one.samples] == [s.shape for s in other.samples]
    return zip(found["dali"], found["headrace"], strict=True)


def check_shares(one: np.ndarray, other: np.ndarray) -> None:
    """Check that both have the same values, each about as often."""
    values, counts = np.unique(one, return_counts=True)
    own, own_counts = np.unique(other, return_counts=True)
    np.testing.assert_array_equal(own, values)
    spread = 12 * np.sqrt(np.maximum(counts, own_counts))  # pixels of three elements
    assert (np.abs(counts - own_counts) < spread).all()


def check_distribution(one: np.ndarray, other: np.ndarray) -> None:
    """Check that both are drawn from one distribution (Kolmogorov and Smirnov), the same values."""
    a, b = np.sort(one.ravel()), np.sort(other.ravel())
    for drawn, others in ((a, b), (b, a)):
        values, counts = np.unique(drawn, return_counts=True)
        assert np.isin(values[counts > 30], others).all()
    for side in ("left", "right"):
        far = np.searchsorted(a, a, side) - np.searchsorted(b, a, side)
        assert np.abs(far).max() < 2.5 * np.sqrt(2 * a.size)


@pytest.mark.parametrize("dtype", TYPES)
def test_normal_noise(dtype):
    def graph(lib, x):
        return (
            lib.fn.noise.gaussian(x, mean=3, stddev=9.0),
            lib.fn.noise.gaussian(x, stddev=0.4),
            lib.fn.noise.gaussian(x),
            lib.fn.noise.gaussian(x, stddev=-2),
            lib.fn.noise.gaussian(x, stddev=100.0),
            lib.fn.noise.gaussian(x, mean=2.5, stddev=0),
        )

    for one, other in both(graph, [level(90, 60, 3, dtype=dtype)] * 2, "HWC"):
        a, b = (np.sort(o.samples[0].astype(np.float64).ravel()) for o in (one, other))
        scale = max(a.std(), 1e-9)
        assert abs(a.mean() - b.mean()) < 0.05 * scale
        assert abs(a.std() - b.std()) <= 0.05 * scale
        middle = slice(len(a) // 20, -len(a) // 20)
        assert np.abs(a[middle] - b[middle]).max() <= max(0.1 * scale, dtype != "float32")
        drawn = a.std() > 0
        assert drawn == (other.samples[0] != other.samples[1]).any()


@pytest.mark.parametrize("dtype", TYPES)
def test_shot_noise(dtype):
    factors = [np.float32(k) for k in (20, 0.5)]

    def graph(lib, x):
        each = lib.fn.external_source(source=lambda: factors)
        shot = lib.fn.noise.shot
        given = ({}, {"factor": 1.0}, {"factor": 60.0}, {"factor": 0.3}, {"factor": each})
        return (*(shot(x, **g) for g in given), shot(x, factor=-2.0), shot(x, factor=0.0))

    for one, other in both(graph, [level(90, 60, 3, dtype=dtype)] * 2, "HWC"):
        for a, b in zip(one.samples, other.samples, strict=True):
            check_distribution(a, b)
        assert (np.ptp(other.samples[0]) == 0) == (np.ptp(one.samples[0]) == 0)
        drawn = np.ptp(one.samples[0]) > 0
        assert drawn == (other.samples[0] != other.samples[1]).any()


def test_shot_noise_of_any_level():
    levels = [-50, -0.5, 0, 0.01, 3, 63, 65, 900, 4e6, np.nan, np.inf, -np.inf]
    data = np.repeat(np.float32(levels), 3000).reshape(len(levels), -1)
    for factor in (1.0, 2.5, -2.0):
        ((one, other),) = both(lambda lib, x: lib.fn.noise.shot(x, factor=factor), [data])  # noqa: B023
        for value, a, b in zip(levels, one.samples[0], other.samples[0], strict=True):
            if 0 < value / factor < 100 or not a.any():
                check_distribution(a, b)
            a, b = a.astype(np.float64), b.astype(np.float64)
            assert abs(a.mean() - b.mean()) <= 6 * a.std() / np.sqrt(a.size), value
            assert abs(a.std() - b.std()) <= (0.1 if abs(value) > 1 else 0.5) * a.std(), value


@pytest.mark.parametrize("dtype", TYPES)
def test_salt_and_pepper(dtype):
    def graph(lib, x):
        return tuple(
            lib.fn.noise.salt_and_pepper(x, **arguments)
            for arguments in (
                {},
                {"prob": 0.3, "salt_vs_pepper": 0.2},
                {"prob": 0.3, "per_channel": True},
                {"prob": 1.0, "salt_vs_pepper": 0.0},
                {"prob": 0.0},
                {"prob": 0.5, "salt_val": 7.6, "pepper_val": 2.4},
            )
        )

    for one, other in both(graph, [level(90, 60, 3, dtype=dtype)], "HWC"):
        check_shares(one.samples[0], other.samples[0])


@pytest.mark.parametrize(
    ("shape", "layout", "axis"),
    [
        ((50, 40, 3), "HWC", -1),
        ((50, 40, 3), "", -1),
        ((3, 50, 40), "CHW", 0),
        ((2, 30, 40, 3), "FHWC", -1),
        ((700, 3), "", -1),
        ((50, 40), "HW", None),
    ],
)
def test_channels(shape, layout, axis):
    def graph(lib, x):
        alone = lib.fn.noise.salt_and_pepper(x, prob=0.4, per_channel=True)
        return alone if axis is None else (lib.fn.noise.salt_and_pepper(x, prob=0.4), alone)

    *together, alone = both(
        graph, [level(*shape), level(*(2 * s - s % 2 * s for s in shape))], layout
    )
    for one, other in together:
        for output in (one, other):
            assert (np.ptp(output.samples[0], axis=axis) == 0).all()
        check_shares(one.samples[0], other.samples[0])
    for output in alone:
        assert (np.ptp(output.samples[0], axis=0 if axis is None else axis) > 0).any()


def test_noise_a_sample():
    numbers = [np.float32(k) for k in (0, 0.5, 1)]

    def graph(lib, x):
        each = lib.fn.external_source(source=lambda: numbers)
        return (
            lib.fn.noise.gaussian(x, stddev=each, mean=each * 10),
            lib.fn.noise.salt_and_pepper(
                x, prob=each, salt_vs_pepper=1 - each, salt_val=each + 7, pepper_val=each * 4
            ),
        )

    (one, other), (salt, own) = both(graph, [level(60, 50, 3)] * 3, "HWC")
    for a, b in zip(one.samples, other.samples, strict=True):
        assert abs(a.mean() - b.mean()) < 0.1
    for a, b in zip(salt.samples, own.samples, strict=True):
        check_shares(a, b)


def test_no_elements_and_single_numbers():
    graph = lambda lib, x: (  # noqa: E731
        lib.fn.noise.gaussian(x, stddev=0, mean=2),
        lib.fn.noise.shot(x, factor=1e-6),
    )
    for data in (np.zeros((0, 3), np.float32), np.float32(3)):
        for one, other in both(graph, [data]):
            np.testing.assert_allclose(one.samples[0], other.samples[0], rtol=0.01)


@pytest.mark.parametrize(
    ("arguments", "layout", "match"),
    [
        ({"prob": -0.1}, "HWC", "prob"),
        ({"prob": 1.1}, "HWC", "prob"),
        ({"salt_vs_pepper": 1.5}, "HWC", "salt_vs_pepper"),
        ({"salt_vs_pepper": -1.0}, "HWC", "salt_vs_pepper"),
        ({}, "HCW", "first or the last"),
    ],
)
def test_errors(arguments, layout, match):
    assert_both_raise(
        lambda lib, x: lib.fn.noise.salt_and_pepper(x, **arguments),
        [level(4, 5, 3)],
        layouts=layout,
        match=match,
    )


def test_wrong_types():
    for name in ("gaussian", "salt_and_pepper", "shot"):
        for dtype in ("float16", "float64", "bool"):
            assert_both_raise(
                lambda lib, x, n=name: getattr(lib.fn.noise, n)(x), [level(4, 5, 3, dtype=dtype)]
            )
