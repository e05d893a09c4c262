"""A pipeline that was serialized and read again makes the same bytes as the one it was."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import fn, pipeline_def
from headrace.pipeline import Pipeline
from tests.property.test_pipelines import DECODED, ENCODED, assert_same, steps
from tests.support.branches import SIZE, Graph, batches


def both(pipe, feeds):
    loaded = Pipeline.deserialize(pipe.serialize(), num_threads=1)
    for fed in feeds:
        found, expected = loaded.run(**fed), pipe.run(**fed)
        assert_same(
            [[np.array(s) for o in found for s in o]], [[np.array(s) for o in expected for s in o]]
        )
        assert [o.layout() for o in found] == [o.layout() for o in expected]


@settings(max_examples=10)
@given(steps(), st.booleans())
def test_chains(chain, decode):
    @pipeline_def(batch_size=5, num_threads=2, seed=99, prefetch_queue_depth=1)
    def p():
        x = fn.external_source(name="x", layout=None if decode else "HWC")
        x = fn.decoders.image(x) if decode else x
        for step in chain:
            x = step(x)
        return x, fn.random.normal()

    both(p(), [{"x": ENCODED if decode else DECODED}] * 2)


@settings(max_examples=10, deadline=None)
@given(st.data())
def test_branches(data):
    @pipeline_def(batch_size=SIZE, num_threads=2, seed=7, prefetch_queue_depth=1)
    def p():
        images = fn.external_source(name="images", layout="HWC")
        label = fn.external_source(name="label")
        return Graph(data.draw, branches=True).chain(images, label, 2), label

    both(p(), [{"images": images, "label": label} for images, label in batches()])
