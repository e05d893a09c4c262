"""Debug mode makes the bytes that a pipeline makes without it."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import fn
from headrace.pipeline.experimental import pipeline_def
from tests.property.test_pipelines import DECODED, ENCODED, assert_same, steps
from tests.support.branches import SIZE, Graph, batches


def check(define, feeds):
    made = pipeline_def(define, num_threads=2, seed=99, prefetch_queue_depth=1)
    normal, debug = made(batch_size=SIZE), made(batch_size=SIZE, debug=True)
    for fed in feeds:
        both = (normal.run(**fed), debug.run(**fed))
        assert_same(*([[np.array(s) for out in each for s in out]] for each in both))
    debug._shutdown()


@settings(max_examples=8, deadline=None)
@given(steps(), st.booleans())
def test_chains(chain, decode):
    def p():
        x = fn.external_source(name="x", layout=None if decode else "HWC")
        x = fn.decoders.image(x) if decode else x
        for step in chain:
            x = step(x)
        return x, fn.random.normal(), fn.random.uniform(x)

    check(p, [{"x": ENCODED if decode else DECODED}] * 2)


@settings(max_examples=8, deadline=None)
@given(st.data())
def test_branches(data):
    choices: list = []

    def p():
        played = iter(choices)

        def draw(strategy):
            try:
                return next(played)
            except StopIteration:
                choices.append(data.draw(strategy))
                return choices[-1]

        images = fn.external_source(name="images", layout="HWC")
        label = fn.external_source(name="label")
        return Graph(draw, branches=True).chain(images, label, 2), label

    check(p, [{"images": images, "label": label} for images, label in batches()])
