"""What reductions do where DALI's results are no measure."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ShapeError
from headrace.types import DALIDataType
from tests.support.run_operator import run_operator


def reduced(name, data, *more, **arguments):
    return run_operator(f"reductions.{name}", np.asarray(data), *more, **arguments)


def test_means_of_integers_do_not_overflow():
    levels = np.uint8([255, 254])
    assert reduced("mean", levels, dtype=DALIDataType.UINT8) == 254
    assert reduced("rms", levels, dtype=DALIDataType.UINT8) == 254
    assert reduced("mean", np.int8([-3, -4]), dtype=DALIDataType.INT8) == -3
    assert reduced("rms", np.full(2, 2**33)) == 2**33


def test_sums_of_integers_are_exact():
    large = np.full(3, 2**53 + 1)
    assert reduced("sum", large) == 3 * (2**53 + 1)
    assert reduced("sum", np.full(5, 2**32 - 1, np.uint32)) == 5 * (2**32 - 1)


def test_views():
    data = np.arange(240, dtype=np.int16).reshape(8, 10, 3)[1:, ::2]
    for axes in ((0,), (0, 1), (2,), (0, 2)):
        np.testing.assert_array_equal(reduced("max", data, axes=axes), data.max(axis=axes))
        np.testing.assert_array_equal(reduced("sum", data, axes=axes), data.sum(axis=axes))


def test_a_mean_has_to_fit():
    with pytest.raises(ShapeError, match="`mean` has 2 elements and the output 3"):
        reduced("variance", np.zeros((4, 3), np.uint8), np.zeros(2, np.float32), axes=(0,))
