"""What `erase` does where DALI's results are no measure."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, LayoutError, OutOfRangeError
from tests.support.run_operator import run_operator

IMAGE = np.full((4, 6, 3), 9, np.uint8)


def erased(data=IMAGE, layout="HWC", **arguments):
    return run_operator("erase", data, layout=layout, **arguments)


def test_negative_axes():
    found = erased(anchor=(1, 2), shape=(2, 3), axes=(-3, -2))
    expected = IMAGE.copy()
    expected[1:3, 2:5] = 0
    np.testing.assert_array_equal(found, expected)


def test_large_shapes_and_fills():
    assert not erased(anchor=(0, 0), shape=(1e20, 1e20)).any()
    assert (erased(anchor=(0, 0), shape=(9, 9), fill_value=300) == 44).all()


def test_axes_that_are_not_there():
    with pytest.raises(OutOfRangeError, match="axis 3 of `axes` is out of range"):
        erased(shape=(1, 1), axes=(0, 3))
    with pytest.raises(ArgumentValueError, match="more than once"):
        erased(shape=(1, 1), axes=(0, 0))
    with pytest.raises(ArgumentValueError, match="no axes to erase along"):
        erased(shape=(1, 1), axes=())
    with pytest.raises(LayoutError, match="has no layout"):
        erased(layout="", shape=(1, 1))
    with pytest.raises(LayoutError, match="no channels"):
        erased(IMAGE[..., 0], "HW", shape=(1, 1), fill_value=(1, 2))
