"""Facts of many arrays at once are those that the arrays tell."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.array_facts import rows_of


def arrays(shape, dtype="uint8", count=6):
    return [np.full(shape, k, dtype) for k in range(count)]


@pytest.mark.parametrize("shape", [(), (3,), (0, 4), (2, 3, 4, 5)])
def test_addresses_and_shapes(shape):
    given = arrays(shape)
    given[1] = given[1][...]
    given[2].flags.writeable = False
    found = rows_of(given)
    assert found._addresses is not None, "they were asked one by one"
    assert found.addresses.tolist() == [array.ctypes.data for array in given]
    assert found.shapes.tolist() == [list(shape)] * len(given)
    assert found.rows is given


def test_shapes_may_differ():
    given = [*arrays((2, 3)), *arrays((5, 1))]
    assert rows_of(given).shapes.tolist() == [[2, 3]] * 6 + [[5, 1]] * 6


def test_arrays_with_gaps_and_of_other_kinds_are_asked():
    gaps = [*arrays((4, 4)), np.zeros((4, 8))[:, ::2]]
    found = rows_of(gaps)
    assert found._addresses is None
    np.testing.assert_array_equal(found.shapes, [[4, 4]] * 7)
    assert found.addresses[:6].tolist() == [array.ctypes.data for array in gaps[:6]]
    kinds = [*arrays((2,)), np.ma.masked_array([1, 2])]
    assert rows_of(kinds)._addresses is None
    assert rows_of(arrays((2,), count=2))._addresses is None
