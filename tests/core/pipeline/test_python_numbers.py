"""Python's numbers as data: each keeps its value, or is refused by an error that names it."""

from __future__ import annotations

import math

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import errors, fn, pipeline_def, types

WAYS = ["source", "samples", "feed_input", "run", "threads", "processes"]


class Batches:
    """A source that workers can import."""

    def __init__(self, batch):
        self.batch = batch

    def __call__(self, iteration):
        return self.batch


class Samples(Batches):
    def __call__(self, info):
        return self.batch[info.idx_in_batch]


def given(way, batch, dtype=None):
    """The second sample of a batch that a pipeline is given."""
    source = {
        "source": {"source": Batches(batch)},
        "samples": {"source": Samples(batch), "batch": False},
        "threads": {"source": Batches(batch), "parallel": "threads"},
        "processes": {"source": Batches(batch), "parallel": "processes"},
    }.get(way, {"name": "x"})

    @pipeline_def(batch_size=len(batch), num_threads=1, device_id=None)
    def graph():
        return fn.external_source(dtype=dtype, **source)

    pipe = graph()
    if way == "feed_input":
        pipe.feed_input("x", batch)
    (output,) = pipe.run(x=batch) if way == "run" else pipe.run()
    return np.asarray(output.at(1))


MISFITS = [
    ([1], [2**40], None, "1099511627776 does not fit into int32.*types.INT64"),
    ([1, 2], [0, -(2**31) - 1], None, "-2147483649 does not fit into int32"),
    ([1], [2**64], None, "18446744073709551616 does not fit into int32"),
    ([1.0], [1e300], None, r"1e\+300 does not fit into float32.*types.FLOAT64"),
    ([1.0], [2**64, -1e39], None, r"-1e\+39 does not fit into float32"),
    ([[1]], [[2**31]], None, "2147483648 does not fit into int32.*types.UINT32"),
    ([1], [np.int64(2**40)], None, "1099511627776 does not fit into int32"),
    ([1], [300], types.UINT8, "300 does not fit into uint8.*0 to 255"),
    ([1], [-1], types.UINT64, "-1 does not fit into uint64"),
    ([1], [1.5], types.INT32, "1.5 does not fit into int32, which holds whole numbers"),
    ([1], [math.nan], types.INT64, "nan does not fit into int64"),
    ([1], [math.inf], types.UINT8, "inf does not fit into uint8"),
    ([1], [float(2**63)], types.INT64, "does not fit into int64"),
    ([True], [2], types.BOOL, "2 does not fit into bool"),
    ([1], [70000], types.FLOAT16, "70000 does not fit into float16"),
]


@pytest.mark.parametrize("way", WAYS)
def test_numbers_that_do_not_fit_are_refused(way):
    for first, second, dtype, message in MISFITS if way != "processes" else MISFITS[:1]:
        with pytest.raises(errors.NumberOverflowError, match=message) as caught:
            given(way, [first, second], dtype)
        text = str(caught.value)
        assert "Sample 1: " in text
        if way != "run":
            assert "external source" in "".join(getattr(caught.value, "__notes__", ()))


@pytest.mark.parametrize("way", WAYS)
def test_numbers_become_of_the_type_asked_for(way):
    cases = [
        ([1], [2**40], types.INT64, np.int64([2**40])),
        ([1], [2**63], types.UINT64, np.uint64([2**63])),
        ([1], [3, 1.5], types.FLOAT64, np.float64([3, 1.5])),
        ([1.0], [2.0], types.UINT8, np.uint8([2])),
        ([1], [True], types.FLOAT16, np.float16([1])),
        ([True], [0], types.BOOL, np.array([False])),
        ([1], [math.inf, math.nan], types.FLOAT16, np.float16([math.inf, math.nan])),
        ([1.5], [1, 2.5], None, np.float32([1, 2.5])),
        ([1], [True, 2], None, np.int32([1, 2])),
        ([True], [False], None, np.array([False])),
        ([1.0], [1e30, math.inf], None, np.float32([1e30, math.inf])),
        (np.int64([1]), np.int64([2**40]), None, np.int64([2**40])),
        ([np.uint8(1)], [np.uint8(2)], None, np.uint8([2])),
    ]
    for first, second, dtype, expected in cases if way != "processes" else cases[:2]:
        found = given(way, [first, second], dtype)
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)


def test_lists_that_differ_in_length():
    with pytest.raises(errors.ShapeError, match=r"Sample 1: .*element \[0\] has 2.* \[1\] has 3"):
        given("source", [[[1, 2], [3, 4]], [[1, 2], [3, 4, 5]]])
    with pytest.raises(errors.ShapeError, match=r"element \[1\]\[0\] has 1.* \[1\]\[1\] is a num"):
        given("feed_input", [[[[1], [2]], [[1], 2]]] * 2)


def test_integers_of_arithmetic_that_do_not_fit():
    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def graph(operation):
        return operation(fn.constant(idata=[1]))

    for operation, value in (
        (lambda x: x + 2**40, "1099511627776"),
        (lambda x: x < -(2**40), "-1099511627776"),
        (lambda x: x + types.Constant(-1, types.UINT8), "-1.*uint8"),
    ):
        with pytest.raises(errors.NumberOverflowError, match=value):
            graph(operation).run()
    assert graph(lambda x: x + types.Constant(2**40, types.INT64)).run()[0].at(0) == 2**40 + 1


def test_dynamic_tensors():
    for make, message in (
        (lambda: ndd.tensor([2**40]), "1099511627776"),
        (lambda: ndd.tensor([300], dtype=ndd.uint8), "300 does not fit into uint8"),
        (lambda: ndd.tensor([np.int64(300)], dtype=ndd.uint8), "300 does not fit into uint8"),
        (lambda: ndd.tensor([math.nan], dtype=ndd.int32), "nan does not fit into int32"),
        (lambda: ndd.batch([1, 2**40]), "Sample 1 of the batch: 1099511627776"),
        (lambda: ndd.full([2**64], shape=[1]), "18446744073709551616"),
        (lambda: ndd.tensor([1]) + 2**40, "1099511627776"),
    ):
        with pytest.raises(errors.NumberOverflowError, match=message):
            np.asarray(make())
    for data, dtype in (
        ([2**40], ndd.int64),
        ([np.int64(2**40)], ndd.int64),
        ([1e300], ndd.float64),
    ):
        assert np.asarray(ndd.tensor(data, dtype=dtype)).tolist() == data
    for data, dtype in (([70000], ndd.float16), ([-1e300], ndd.float32), ([1e300], None)):
        found = np.asarray(ndd.tensor(data, dtype=dtype))  # infinite, as in DALI
        assert found.tolist() == [math.copysign(math.inf, data[0])]
