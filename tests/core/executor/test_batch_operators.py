"""Operators that need the whole batch, between operators that work sample by sample."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.errors import ShapeError
from headrace.operators import Arg, BatchOperator, Input, IntArg, SampleOperator, Spec, operator


@operator("testing.reverse_batch", inputs=Input(), hidden=True)
class ReverseBatch(BatchOperator):
    """Gives each sample the value of its counterpart from the other end of the batch."""

    def cpu(self, c, samples):
        """The whole batch."""
        out = []
        for index, sample in enumerate(reversed(samples)):
            row = c.empty(index, sample.shape, sample.dtype)
            row[...] = sample
            out.append(row)
        return out


@operator(
    "testing.sum_or_self",
    inputs=Input(),
    args=[
        Arg("total", IntArg, 0, "1: add the sum of the batch."),
        Arg("offset", IntArg, 0, "Added.", per_sample=True),
    ],
    hidden=True,
)
class SumOrSelf(SampleOperator):
    """A batch operator or not, by its arguments."""

    @classmethod
    def for_arguments(cls, args):
        """Only for sums."""
        return Sum if args["total"] else cls

    def cpu(self, c, value):
        """Sample by sample."""
        return value + np.asarray(c.args.offset, value.dtype)


class Sum(BatchOperator):
    """Adds the sum of the batch."""

    def cpu(self, c, values):
        """The whole batch."""
        total = sum(values)
        offsets = c.values("offset")
        return [np.asarray(v + total + o, v.dtype) for v, o in zip(values, offsets, strict=True)]


Sum.schema = SumOrSelf.schema


def feed():
    return fn.external_source(source=lambda: np.arange(4, dtype=np.int64))


@pipeline_def(batch_size=4, num_threads=3, device_id=None)
def chain():
    x = feed() + 1
    y = fn.testing.reverse_batch(x * 10)
    z = fn.testing.reverse_batch(y + x)
    return x, y, z + fn.testing.sum_or_self(x, total=1, offset=feed())


def test_stages_follow_one_another():
    pipe = chain()
    for _ in range(3):
        x, y, z = (o.as_array() for o in pipe.run())
        np.testing.assert_array_equal(x, [1, 2, 3, 4])
        np.testing.assert_array_equal(y, [40, 30, 20, 10])
        by_hand = (y + x)[::-1] + x + x.sum() + np.arange(4)
        np.testing.assert_array_equal(z, by_hand)


def test_needs_the_batch_only_if_told():
    @pipeline_def(batch_size=4, num_threads=2)
    def p():
        return fn.testing.sum_or_self(feed(), offset=3)

    np.testing.assert_array_equal(p().run()[0].as_array(), [3, 4, 5, 6])


def test_batch_operator_as_first_and_as_tensor_argument():
    @pipeline_def(batch_size=4, num_threads=2)
    def p():
        r = fn.testing.reverse_batch(feed())
        return fn.testing.sum_or_self(feed(), offset=r), fn.cast(r, dtype=types.FLOAT)

    a, b = p().run()
    np.testing.assert_array_equal(a.as_array(), [3, 3, 3, 3])
    np.testing.assert_array_equal(b.as_array(), [3, 2, 1, 0])


def test_error_in_a_batch_operator_names_it():
    @operator("testing.no_batch", inputs=Input(), hidden=True)
    class NoBatch(BatchOperator):
        """Fails."""

        def cpu(self, c, samples):
            """Fail."""
            raise ValueError("not this batch")

    @pipeline_def(batch_size=4, num_threads=2)
    def p():
        return fn.testing.no_batch(feed())

    with pytest.raises(ValueError, match=r"not this batch\n  in operator `fn.testing.no_batch`"):
        p().run()


@pytest.mark.parametrize("given", ["array", "list"])
@pytest.mark.parametrize("count", [4, 1, 5])
def test_all_samples_may_be_one_array(given, count):
    """It is copied: the operator may keep it, and write to it."""
    kept = np.zeros((count, 2), np.int64)

    @operator("testing.keeps_an_array", inputs=Input(), hidden=True)
    class KeepsAnArray(BatchOperator):
        """Counts."""

        def infer(self, data):
            """Two numbers a sample."""
            return Spec(types.INT64, 1)

        def cpu(self, c, samples):
            """Count."""
            kept[...] += 1
            return kept if given == "array" else [*kept]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, workers="threads")
    def p():
        return fn.testing.keeps_an_array(feed())

    pipe = p()
    if count != 4:
        text = rf"returned {count} samples for a batch of 4.*\n  in operator"
        with pytest.raises(ShapeError, match=text):
            pipe.run()
        return
    first, second = pipe.run()[0], pipe.run()[0]
    assert first.as_array().tolist() == [[1, 1]] * 4
    assert second.as_array().tolist() == [[2, 2]] * 4


@operator("testing.hand_on_rows", inputs=Input(), hidden=True)
class HandOnRows(BatchOperator):
    """Gives back rows of the memory it was given, the first one twice."""

    def cpu(self, c, samples):
        """The whole batch."""
        return [samples[0], *samples[:-1]]


@pytest.mark.parametrize("ragged", [False, True])
@pytest.mark.parametrize("fed", [False, True])
def test_rows_that_were_given_may_be_handed_on(fed, ragged):
    batch = [np.full(3 + ragged * k, k, np.int32) for k in range(4)]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def p():
        value = fn.external_source(lambda: batch)
        value = value if fed else value + 10
        moved = fn.testing.hand_on_rows(value)
        return value, moved, fn.testing.hand_on_rows(moved) * 2

    pipe = p()
    for _ in range(3):
        value, moved, twice = pipe.run()
        first = 0 if fed else 10
        expected = [first + k for k in (0, 0, 1, 2)]
        lengths = [len(batch[k]) for k in (0, 0, 1, 2)]
        assert [np.asarray(s).tolist() for s in moved] == [
            [v] * n for v, n in zip(expected, lengths, strict=True)
        ]
        assert [int(np.asarray(s)[0]) for s in twice] == [2 * first + 2 * k for k in (0, 0, 0, 1)]
        moved.at(0)[:] = -1  # memory of its own: nobody else sees that
        assert [int(np.asarray(s)[0]) for s in value] == [first + k for k in range(4)]
        assert int(moved.at(1)[0]) == first
    assert [sample[0] for sample in batch] == [0, 1, 2, 3]


@operator("testing.hands_on_a_permutation", inputs=Input(), hidden=True)
class HandsOnAPermutation(BatchOperator):
    """Gives back rows of the memory it was given, and notes where they are."""

    places: list = []  # noqa: RUF012

    def cpu(self, c, samples):
        """The whole batch."""
        rows = list(samples)[::-1]
        self.places.append([row.ctypes.data for row in rows])
        return rows


def test_rows_that_nobody_else_reads_are_handed_on_without_a_copy():
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, prefetch_queue_depth=1)
    def p():
        value = fn.external_source(lambda: [np.full(100 + k, k, np.int32) for k in range(4)])
        once = fn.testing.hands_on_a_permutation(value + 1)
        return fn.testing.hands_on_a_permutation(once)

    HandsOnAPermutation.places.clear()
    (out,) = p().run()
    assert [int(np.asarray(s)[0]) for s in out] == [1, 2, 3, 4]
    places = [np.asarray(s).ctypes.data for s in out]
    assert places == HandsOnAPermutation.places[1] == HandsOnAPermutation.places[0][::-1]


@operator("testing.less_the_mean", inputs=Input(), hidden=True)
class LessTheMean(BatchOperator):
    """Subtracts the mean of the batch, with two threads at a time."""

    threads = threading.Barrier(2)

    def reduce(self, c, samples):
        """The mean, and how many samples there are."""
        return np.mean(samples), c.size

    reduced = 2

    def apply(self, c, value, mean, size):
        """One sample."""
        if c.index in (0, int(size) - 1):
            self.threads.wait(60)
        return value - mean.astype(value.dtype)


@pytest.mark.in_threads
def test_what_follows_a_reduction_is_done_by_all_threads():
    @pipeline_def(batch_size=12, num_threads=2, device_id=None)
    def p():
        x = fn.external_source(lambda: np.arange(12, dtype=np.float32))
        return fn.testing.less_the_mean(x + 1), x

    out, _ = p().run()
    np.testing.assert_array_equal(out.as_array(), np.arange(12) - 5.5)


def test_a_sample_that_fails_behind_a_reduction_has_no_part_in_it():
    @operator("testing.less_the_mean_of_good", inputs=Input(), hidden=True)
    class LessTheMeanOfGood(BatchOperator):
        """Subtracts the mean of the batch."""

        def reduce(self, c, samples):
            """The mean."""
            return np.mean(samples)

        def apply(self, c, value, mean):
            """One sample."""
            if value == 96:
                raise ValueError("bad")
            return value - mean.astype(value.dtype)

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, on_bad_sample="replace")
    def p():
        x = fn.external_source(lambda: np.array([0, 96, 4, 8], np.float32))
        return fn.testing.less_the_mean_of_good(x), x

    out, x = p().run()
    np.testing.assert_array_equal(x.as_array(), [0, 0, 4, 8])
    np.testing.assert_array_equal(out.as_array(), [-3, -3, 1, 5])
