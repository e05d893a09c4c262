"""Outputs are what the declaration of their operator says; what is not is refused with a name."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types
from headrace.operators import BatchOperator, Input, Operator, SampleOperator, Spec, operator

SIZE = 3


class DeclaredBatch(BatchOperator):
    def infer(self, value):
        return Declared.infer(self, value)


class Declared(SampleOperator):
    """Says float32 with two axes."""

    def infer(self, value):
        return Spec(types.FLOAT, 2)


@operator("testing.wrong_memory", inputs=Input(), hidden=True)
class WrongMemory(Declared):
    def cpu(self, c, value):
        out = c.empty((2, 2), np.uint8)
        out[...] = 1
        return out


@operator("testing.wrong_rank", inputs=Input(), hidden=True)
class WrongRank(Declared):
    def cpu(self, c, value):
        out = c.empty((2,) * (2 + (value == 1)), np.float32)
        out[...] = 0
        return out


@operator("testing.wrong_result", inputs=Input(), hidden=True)
class WrongResult(Declared):
    def cpu(self, c, value):
        return np.zeros((2,) * (2 + (value == 1)), np.float32)


@operator("testing.wrong_view", inputs=Input(), hidden=True)
class WrongView(SampleOperator):
    def infer(self, value):
        return Spec(types.INT32, 1)

    def cpu(self, c, value):
        return value.reshape(1, 1)


@operator("testing.wrong_batch_memory", inputs=Input(), hidden=True)
class WrongBatchMemory(DeclaredBatch):
    def cpu(self, c, samples):
        return [c.empty(k, (2, 2), np.int64) for k in range(len(samples))]


@operator("testing.wrong_batch_rank", inputs=Input(), hidden=True)
class WrongBatchRank(DeclaredBatch):
    def cpu(self, c, samples):
        return [np.zeros((2,) * (1 + k), np.float32) for k in range(len(samples))]


@operator("testing.wrong_chunk", inputs=Input(), hidden=True)
class WrongChunk(Declared):
    chunked = True

    def cpu_chunk(self, c, values):
        return c.empty(np.full((len(values), 2), 2, np.int64), np.uint8)


@operator("testing.unknown_rank", inputs=Input(), hidden=True)
class UnknownRank(SampleOperator):
    def infer(self, value):
        return Spec(types.FLOAT, None)

    def cpu(self, c, value):
        return np.zeros((2,) * (2 + (value == 1)), np.float32)


def run(name):
    @pipeline_def(batch_size=SIZE, num_threads=1, device_id=None)
    def p():
        numbers = fn.external_source(lambda: np.arange(SIZE, dtype=np.int32))
        return getattr(fn.testing, name)(numbers)

    return p().run()


@pytest.mark.parametrize(
    ("name", "sample", "what", "kind"),
    [
        ("wrong_memory", "sample 0", "uint8 .*float32", errors.DataTypeError),
        ("wrong_rank", "sample 1", "3 axes.* 2;", errors.ShapeError),
        ("wrong_result", "sample 1", "3 axes.* 2;", errors.ShapeError),
        ("wrong_view", "sample 0", "2 axes.* 1;", errors.ShapeError),
        ("wrong_batch_memory", "", "int64 .*float32", errors.DataTypeError),
        ("wrong_batch_rank", "", "1 axes.* 2;", errors.ShapeError),
        ("wrong_chunk", "sample 0", "uint8 .*float32", errors.DataTypeError),
        ("unknown_rank", "sample 1", "other samples have 2", errors.ShapeError),
    ],
)
def test_outputs_that_are_not_as_declared(name, sample, what, kind):
    with pytest.raises(kind, match=what) as caught:
        run(name)
    assert f"fn.testing.{name}" in str(caught.value)
    assert sample in str(caught.value)


def test_a_name_of_the_library_is_not_taken_silently():
    def declare():
        @operator("flip", inputs=Input())
        class Flip(SampleOperator):
            """Something else."""

        return Flip

    def declare_function():
        @operator("flip", inputs=Input())
        def Flip(xp, value):
            """Something else."""
            return value

    for way in (declare, declare_function):
        with pytest.raises(errors.ArgumentValueError, match=r"`flip` already.*another name"):
            way()


def test_what_is_declared_by_the_same_name_elsewhere_is_refused_too():
    def declare(module):
        kind = type("Elsewhere", (Operator,), {"__module__": module, "__doc__": "Nothing."})
        return operator("testing.elsewhere", inputs=Input(), hidden=True)(kind)

    declare("one")
    declare("one")  # as when a cell of a notebook is run again
    with pytest.raises(errors.ArgumentValueError, match=r"declared by one\.Elsewhere"):
        declare("another")
