from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace.kernels.cpu.transpose import merged, transpose_into
from tests.support.views import SHAPES, views


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "bool", "float16", "float32", "float64", "uint64"])
@pytest.mark.parametrize("shape", [s for s in SHAPES if len(s) < 5])
def test_transpose(shape, dtype):
    for source in views(shape, dtype):
        for permutation in itertools.permutations(range(len(shape))):
            wanted = source.transpose(permutation)
            out = np.empty(wanted.shape, dtype)
            transpose_into(source, permutation, out)
            np.testing.assert_array_equal(out, wanted)


def test_sequences_of_images_become_sequences_of_planes():
    source = np.arange(2 * 30 * 40 * 3, dtype=np.int16).reshape(2, 30, 40, 3)
    out = np.empty((2, 3, 30, 40), np.int16)
    transpose_into(source, (0, 3, 1, 2), out)
    np.testing.assert_array_equal(out, source.transpose(0, 3, 1, 2))


@pytest.mark.parametrize(
    ("permutation", "groups", "order"),
    [
        ((0, 1, 2), ((0, 1, 2),), (0,)),
        ((2, 0, 1), ((0, 1), (2,)), (1, 0)),
        ((1, 2, 0), ((0,), (1, 2)), (1, 0)),
        ((0, 3, 1, 2), ((0,), (1, 2), (3,)), (0, 2, 1)),
        ((2, 1, 0), ((0,), (1,), (2,)), (2, 1, 0)),
        ((), (), ()),
    ],
)
def test_neighbours_are_merged(permutation, groups, order):
    assert merged(permutation) == (groups, order)
