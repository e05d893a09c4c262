"""Operators of which only the data tells what comes out, between operators on either device."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.graph.capture import call
from headrace.operators.support.operator import BatchOperator, operator
from headrace.operators.support.runtime_typed_batch import RuntimeTypedBatch
from headrace.operators.support.schema import Input, Spec

DATA = np.random.default_rng(0).random((4, 3, 2), np.float32)


@operator("testing.bits", inputs=Input(), data_dependent_type=True, hidden=True)
class Bits(BatchOperator):
    """The bits of 32-bit numbers, as one row of integers; its declaration knows nothing of that."""

    def infer(self, *inputs):
        return Spec(types.DALIDataType.NO_TYPE, None)

    def cpu(self, c, samples):
        whole = c.whole(0)
        rows = np.stack(samples) if whole is None else whole
        return (RuntimeTypedBatch(rows.view(np.int32).reshape(len(samples), -1), SPEC),)

    def gpu(self, c, batch):
        shapes = batch.shapes.prod(axis=1, keepdims=True)
        return RuntimeTypedBatch(batch.reshaped(shapes, np.dtype(np.int32)), SPEC)


SPEC = Spec(types.DALIDataType.INT32, 1, "W")


def bits(edge):
    return call(Bits.schema, (edge,), {})


def run(graph, **options):
    pipe = Pipeline(4, 2, 0, seed=1, **options)
    with pipe:
        pipe.set_outputs(*graph(fn.external_source(source=lambda: DATA)))
    for _ in range(3):
        found = pipe.run()
    return [batch.as_cpu().as_array() for batch in found], [batch.layout() for batch in found]


EXPECTED = (DATA * 2).view(np.int32).reshape(4, 6)


@pytest.mark.parametrize("fuse", [False, True])
@pytest.mark.parametrize("depth", [1, 3])
def test_what_follows_knows_the_type(fuse, depth):
    def graph(data):
        on_cpu, on_gpu = bits(data * 2), bits(data.gpu() * 2)
        twice = bits(fn.cast(bits(data.gpu() * 2), dtype=types.FLOAT))
        return on_cpu + 1, on_gpu + 1, on_gpu.cpu() + 1, on_cpu.gpu() - 1, on_gpu, twice

    found, layouts = run(graph, fuse=fuse, prefetch_queue_depth=depth)
    for values in found[:3]:
        np.testing.assert_array_equal(values, EXPECTED + 1)
    np.testing.assert_array_equal(found[3], EXPECTED - 1)
    np.testing.assert_array_equal(found[4], EXPECTED)
    np.testing.assert_array_equal(found[5], EXPECTED.astype(np.float32).view(np.int32))
    assert layouts == ["W"] * 6
