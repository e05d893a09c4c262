"""Tiles cover the output exactly once, whatever the operands look like."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.kernels.cpu.broadcast import common_shape, run_tiled


def add_all(operands, shape, tile):
    """Sum of operands by tiles, counting how often each element is written."""
    out = np.zeros(shape)

    def function(part, parts):
        assert part.size <= max(tile, shape[-1] if shape else 1)
        total = np.zeros(part.shape)
        for x in parts:
            total = total + x
        part += total.reshape(part.shape)  # twice the same element would show

    run_tiled(function, out, operands, tile)
    return out


def check(*operands, tile=16):
    shape = np.broadcast_shapes(*(x.shape for x in operands))
    assert common_shape([x.shape for x in operands]) == shape
    np.testing.assert_array_equal(add_all(operands, shape, tile), sum(operands[1:], operands[0]))


def filled(*shape):
    return np.arange(1.0, 1.0 + np.prod(shape, dtype=int)).reshape(shape)


@pytest.mark.sweep
@pytest.mark.parametrize("tile", [1, 5, 16, 1 << 13])
@pytest.mark.parametrize(
    "operands",
    [
        (filled(7, 9, 3), filled(7, 9, 3)),
        (filled(7, 9, 3), filled(3)),
        (filled(7, 9, 3), filled(9, 3)),
        (filled(7, 9, 3), filled(7, 9, 1)),
        (filled(7, 9, 3), filled(7, 1, 3)),
        (filled(3, 7, 9), filled(3, 1, 1)),
        (filled(7, 1), filled(1, 9)),
        (filled(2000, 3), filled(3), filled(2000, 1)),
        (filled(2000, 3), filled(3), filled(1)),
        (filled(50, 40), filled(40)),
        (filled(9, 10, 3)[:, ::-1], filled(3)),
        (filled(9, 10, 3)[1:8, 2:9], filled(7, 7, 3)),
        (filled(9, 10, 3).transpose(2, 0, 1), filled(9, 10)),
        (filled(), filled(4)),
        (filled(), filled()),
        (filled(0, 3), filled(3)),
        (filled(1, 1, 1), filled(1)),
        (filled(5, 1, 3), filled(1)),
    ],
)
def test_sum_of_operands(operands, tile):
    check(*operands, tile=tile)


@st.composite
def broadcastable(draw):
    shape = draw(st.lists(st.integers(1, 5), min_size=0, max_size=4))
    operands = [filled(*shape)]
    for _ in range(draw(st.integers(1, 3))):
        own = [n if draw(st.booleans()) else 1 for n in shape]
        own = own[draw(st.integers(0, len(own))) :]
        x = filled(*own)
        if x.ndim and draw(st.booleans()):
            x = np.flip(x, draw(st.integers(0, x.ndim - 1)))
        if x.ndim > 1 and draw(st.booleans()):
            x = np.asfortranarray(x)
        operands.append(x)
    return operands, draw(st.integers(1, 40))


@settings(max_examples=150, deadline=None)
@given(broadcastable())
def test_any_shapes(case):
    operands, tile = case
    check(*operands, tile=tile)


@pytest.mark.parametrize("shapes", [((3,), (2,)), ((0,), (2,)), ((2, 3), (2, 1, 4))])
def test_shapes_that_do_not_fit(shapes):
    with pytest.raises(ValueError):
        common_shape(shapes)
