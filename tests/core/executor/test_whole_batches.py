"""What follows from draws and constants is planned once for the whole batch."""

from __future__ import annotations

import builtins

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types
from headrace.graph.branches import guarded, merge
from headrace.operators import Arg, Input, IntArg, SampleOperator, StringArg, operator
from headrace.operators.support.planning import Planned
from headrace.operators.support.schema import Spec

SIZES: list[int] = []


@operator("testing.counts_its_plans", inputs=Input(), hidden=True)
class CountsItsPlans(SampleOperator):
    """Hand on small values, and note how many samples are planned at once."""

    plans_values = True

    def plan(self, c, *inputs):
        SIZES.append(c.size)
        values = inputs[0].values
        return None if values is None else Planned(values=values)

    def cpu(self, c, data):
        raise AssertionError("the plan has the values")


@operator("testing.numbers_of_samples", inputs=(), hidden=True)
class NumbersOfSamples(SampleOperator):
    """The numbers of a sample and of its iteration, without saying that they are drawn."""

    plans_values = True

    def infer(self):
        return Spec(types.INT64, 1)

    def plan(self, c):
        return Planned(values=np.array([(index, c.iteration) for index in c.indices]))


@operator(
    "testing.plans_one",
    inputs=Input(),
    args=[
        Arg("raised", StringArg, "", "Class of the error for `size` samples and more."),
        Arg("size", IntArg, 2, "As above."),
    ],
    hidden=True,
)
class PlansOne(SampleOperator):
    """Hand on small values by a plan that can do nothing with several samples."""

    plans_values = True

    def plan(self, c, *inputs):
        if c.size == 1:
            return Planned(values=inputs[0].values)
        if self.args.raised and c.size >= self.args.size:
            raise getattr(builtins, self.args.raised)
        return Planned(inputs[0].shapes)

    def cpu(self, c, data):
        return data


@pipeline_def(batch_size=40, num_threads=2, device_id=None, seed=7)
def of(make):
    return make()


def test_what_follows_from_draws_is_planned_once_for_a_batch():
    def graph():
        drawn = fn.random.uniform(range=(0, 9), shape=2)
        turn = fn.transforms.rotation(angle=fn.testing.counts_its_plans(drawn[0] * 2 - 1))
        return drawn, fn.transforms.translation(turn, offset=fn.cast(drawn, dtype=types.FLOAT))

    SIZES.clear()
    pipe = of(graph)
    for number in range(1, 4):
        drawn, moved = (out.as_array() for out in pipe.run())
        assert set(SIZES) <= {1, 40}  # one sample where the graph is prepared
        assert SIZES.count(40) >= number
        np.testing.assert_array_equal(moved[:, :, 2], drawn)


def test_what_follows_from_constants_is_computed_once_for_all():
    SIZES.clear()
    pipe = of(lambda: fn.testing.counts_its_plans(types.Constant([3, 4])))
    for _ in range(3):
        assert pipe.run()[0].as_array().tolist() == [[3, 4]] * 40
    assert set(SIZES) == {1}


def test_outputs_that_share_their_values_have_memory_of_their_own():
    def graph():
        drawn = fn.random.uniform(range=(0, 9))
        return drawn, fn.testing.counts_its_plans(drawn)

    pipe = of(graph)
    first, second = (out.as_array() for out in pipe.run())
    np.testing.assert_array_equal(first, second)
    assert not np.shares_memory(first, second)


def divided():
    below = fn.random.uniform(range=(0, 2.4), dtype=types.INT32)
    return below, types.Constant(6) // below


def test_the_error_of_a_sample_names_it():
    drawn = of(lambda: fn.random.uniform(range=(0, 2.4), dtype=types.INT32)).run()[0].as_array()
    first = int(np.flatnonzero(drawn == 0)[0])
    with pytest.raises(errors.OperatorError, match="division by zero") as caught:
        of(divided).run()
    assert caught.value.where.sample == first


def test_bad_samples_are_replaced_one_by_one():
    pipe = of(divided, on_bad_sample="replace")
    for _ in range(3):
        below, quotient = (out.as_array() for out in pipe.run())
        assert (below != 0).all()
        np.testing.assert_array_equal(quotient, 6 // below)
    assert pipe.bad_samples


def test_large_values_are_left_to_the_threads():
    def graph():
        return fn.random.uniform(range=(0, 1), shape=(20, 20)) + 1

    found = of(graph).run()[0].as_array()
    assert found.shape == (40, 20, 20)
    assert (found >= 1).all()


def test_what_follows_from_draws_in_branches_is_planned_once_too():
    def draw():
        return fn.random.uniform(range=(0, 9), dtype=types.INT32)

    first = int(of(draw).run()[0].as_array()[0])
    table = np.arange(first + 1, dtype=np.float32) * 10

    def graph():
        drawn = draw()
        values = fn.copy(types.Constant(table, device="cpu"))
        is_low, is_high = drawn <= first, drawn > 100
        with guarded(is_low):
            found = fn.testing.counts_its_plans(values[drawn] + 1)  # there are no more elements
        with guarded(is_low, holds=False):
            with guarded(is_high):
                never = fn.testing.counts_its_plans(values[drawn])
            with guarded(is_high, holds=False):
                other = fn.cast(-drawn, dtype=types.FLOAT)
            above = merge(is_high, never, other)
        return drawn, merge(is_low, found, above)

    SIZES.clear()
    drawn, found = (out.as_array() for out in of(graph).run())
    below = drawn <= first
    assert 0 < below.sum() < 40
    np.testing.assert_array_equal(found[below], drawn[below] * 10 + 1)
    np.testing.assert_array_equal(found[~below], -drawn[~below])
    assert set(SIZES) == {1, 40}  # the one is where the graph is prepared


def test_what_depends_on_the_number_of_a_sample_is_no_constant():
    pipe = of(lambda: fn.testing.numbers_of_samples())
    for iteration in range(2):
        assert pipe.run()[0].as_array().tolist() == [[k, iteration] for k in range(40)]


def of_labels(raised, source):
    """Hand on drawn or fed labels by `PlansOne`, where whole batches, or several samples, cannot be
    planned.
    """

    def graph():
        label = fn.random.uniform(range=(1, 9))
        if source == "fed":
            label = fn.external_source(lambda info: np.float32(info.idx_in_batch), batch=False)
        size = 40 if source == "drawn" else 2
        return label, fn.testing.plans_one(label, raised=raised, size=size)

    return of(graph, on_bad_sample="replace")


@pytest.mark.parametrize("source", ["drawn", "fed"])
def test_errors_of_samples_have_each_planned_alone(source):
    for raised in ("", "ValueError", "IndexError", "ZeroDivisionError", "RuntimeError"):
        label, found = (o.as_array() for o in of_labels(raised, source).run())
        np.testing.assert_array_equal(found, label)


@pytest.mark.parametrize("source", ["drawn", "fed"])
def test_faults_of_operators_show_where_samples_could_do_without(source):
    for raised in ("TypeError", "NameError", "AttributeError", "AssertionError"):
        pipe = of_labels(raised, source)
        with pytest.raises(getattr(builtins, raised), match=r"testing\.plans_one"):
            pipe.run()
        assert not pipe.bad_samples
