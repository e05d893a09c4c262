from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.kernels.cpu.pad import pad_window, source_positions

MODES = {"edge": "edge", "reflect_1001": "symmetric", "reflect_101": "reflect", "wrap": "wrap"}
axes = st.tuples(st.integers(1, 6), st.integers(-12, 12), st.integers(0, 14))


def numpy_positions(extent: int, anchor: int, size: int, policy: str) -> np.ndarray:
    margin = 40
    line = np.pad(np.arange(extent), margin, mode=MODES[policy])
    return line[margin + anchor : margin + anchor + size]


@given(axes, st.sampled_from(sorted(MODES)))
def test_positions_are_those_of_numpy(axis, policy):
    extent, anchor, size = axis
    np.testing.assert_array_equal(
        source_positions(anchor, size, extent, policy), numpy_positions(*axis, policy)
    )


@given(st.lists(axes, min_size=1, max_size=3), st.sampled_from(sorted(MODES)), st.booleans())
def test_windows_of_repeated_data(geometry, policy, convert):
    extents, anchor, size = zip(*geometry, strict=True)
    source = np.arange(np.prod(extents), dtype=np.float32).reshape(extents)
    out = np.full(size, -1, np.int32 if convert else np.float32)
    pad_window(source, anchor, out, policy=policy, move=_truncate if convert else None)
    wanted = source[np.ix_(*(numpy_positions(*axis, policy) for axis in geometry))]
    np.testing.assert_array_equal(out, wanted)


@given(st.lists(axes, min_size=1, max_size=3))
def test_windows_with_a_constant_around(geometry):
    extents, anchor, size = zip(*geometry, strict=True)
    source = np.arange(1, 1 + np.prod(extents), dtype=np.int16).reshape(extents)
    out = np.full(size, -1, np.int16)
    pad_window(source, anchor, out, policy="constant", fill=np.array([-7], np.int16))
    wanted = np.pad(source, 40, constant_values=-7)
    inside = tuple(slice(40 + a, 40 + a + s) for a, s in zip(anchor, size, strict=True))
    np.testing.assert_array_equal(out, wanted[inside])


def test_one_constant_a_channel():
    source = np.ones((2, 2, 3), np.uint8)
    out = np.empty((4, 4, 3), np.uint8)
    fill = np.array([7, 8, 9], np.uint8)
    pad_window(source, (-1, -1, 0), out, policy="constant", fill=fill)
    np.testing.assert_array_equal(out[0, 0], [7, 8, 9])
    np.testing.assert_array_equal(out[1, 1], [1, 1, 1])


def test_windows_of_nothing_are_constant():
    out = np.empty((2, 3), np.uint8)
    pad_window(np.empty((0, 3), np.uint8), (-1, 0), out, policy="constant", fill=np.uint8([5]))
    assert (out == 5).all()


def test_unknown_policy():
    with pytest.raises(ValueError, match="zero"):
        source_positions(0, 3, 5, "zero")


def _truncate(source: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, source, casting="unsafe")
