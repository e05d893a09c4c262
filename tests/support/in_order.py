"""Operators that tell in which order iterations come to them, and that mix the order up."""

from __future__ import annotations

import threading

import numpy as np

from headrace import Pipeline, fn
from headrace.graph.capture import call
from headrace.operators.support.argument_types import ObjectArg
from headrace.operators.support.operator import BatchOperator, SampleOperator, operator
from headrace.operators.support.schema import REQUIRED, Arg, Input

DEPTH = 4
WAIT_SECONDS = 60


@operator(
    "testing.last_first", inputs=Input(), args=(Arg("events", ObjectArg, REQUIRED),), hidden=True
)
class LastFirst(SampleOperator):
    """Lets an iteration through when the one behind it is through."""

    def cpu(self, c, x):
        events = self.args.events
        if c.iteration < len(events) - 1:
            assert events[c.iteration + 1].wait(WAIT_SECONDS)
        if c.iteration < len(events):
            events[c.iteration].set()
        return x


@operator(
    "testing.witness",
    inputs=Input(),
    args=(Arg("seen", ObjectArg, REQUIRED), Arg("bad", ObjectArg, ())),
    in_order=True,
    hidden=True,
)
class Witness(BatchOperator):
    """Notes what it sees; bad numbers are an error."""

    def cpu(self, c, samples):
        number = int(samples[0])
        self._note(number)
        return list(samples)

    def gpu(self, c, batch):
        self._note(c.iteration)
        return batch

    def _note(self, number):
        self.args.seen.append(number)
        if number in self.args.bad:
            raise ValueError(f"number {number} is bad")


def pipeline(seen, *, bad=(), witnesses=1, device_id=None):
    """Counts iterations. They become ready in groups of `DEPTH`, the last one first."""
    events = [threading.Event() for _ in range(DEPTH)]
    pipe = Pipeline(1, DEPTH, device_id, prefetch_queue_depth=DEPTH)
    with pipe:
        x = fn.external_source(source=lambda k: np.array([k], np.int32))
        x = call(LastFirst.schema, (x,), {"events": events})
        x = x if device_id is None else x.gpu()
        for k in range(witnesses):
            x = call(Witness.schema, (x + 0,), {"seen": seen[k], "bad": bad})
        pipe.set_outputs(x + 0)
    return pipe
