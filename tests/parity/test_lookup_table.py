"""`fn.lookup_table` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIDataType
from tests.parity.support import assert_both_raise, assert_parity

SOURCES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
KEYS = [1, 3, 65535, 32768, 127, 1, 200]
VALUES = [10.5, -20.5, 1e20, 0.4, 0.5, 2.5, 7.49]


@pytest.mark.parametrize("source", SOURCES)
def test_element_types(source):
    data = [
        np.array([0, 1, 2, 3, 127]),
        np.arange(300) - 100,
        np.array([70000, 65535, 65536, -1, 32768]),
        np.zeros(0, int),
    ]

    def graph(lib, x):
        return [
            lib.fn.lookup_table(
                x,
                keys=KEYS,
                values=VALUES,
                default_value=2.5,
                dtype=lib.types.DALIDataType(int(dtype)),
            )
            for dtype in list(DALIDataType)[1:13]
        ]

    batch = [each.astype(source) for each in data]
    assert_parity(graph, batch, max_levels=0, relative=0, absolute=0)


def test_views_and_arguments():
    def graph(lib, x):
        return (
            lib.fn.lookup_table(x),
            lib.fn.lookup_table(x[1:3, 2:], keys=[1, 13], values=[1, 2]),
            lib.fn.lookup_table(x, keys=4, values=-0.5, dtype=lib.types.INT8),
        )

    data = [np.arange(20, dtype=np.uint8).reshape(4, 5)]
    assert_parity(graph, data, layouts="HW", max_levels=0, relative=0, absolute=0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_former_name_of_dtype():
    def graph(lib, x):
        return lib.fn.lookup_table(x, keys=[1], values=[2], output_dtype=lib.types.INT32)

    assert_parity(graph, [np.arange(4)], max_levels=0)


@pytest.mark.parametrize(
    "given",
    [
        {"keys": [1, 2], "values": [1]},
        {"keys": [-1], "values": [1]},
        {"keys": [65536], "values": [1]},
    ],
)
def test_wrong_tables(given):
    assert_both_raise(lambda lib, x: lib.fn.lookup_table(x, **given), [np.arange(3)])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "bool"])
def test_types_that_are_not_taken(dtype):
    assert_both_raise(lambda lib, x: lib.fn.lookup_table(x), [np.zeros(3, dtype)])
