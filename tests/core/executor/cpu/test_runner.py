"""How samples are carried through a stage."""

from __future__ import annotations

import weakref

import numpy as np

from headrace import Pipeline, fn
from headrace.operators import Input, operator


def test_what_a_sample_took_is_let_go_of_before_the_next_one():
    made, most = [], []

    @operator("runner_makes", inputs=Input())
    def runner_makes(xp, x):
        """Memory of its own, as that of a large image is."""
        found = x + 1
        made.append(weakref.ref(found))
        return found

    @operator("runner_counts", inputs=Input())
    def runner_counts(xp, x):
        """As it is, with a note of how many others are still there."""
        most.append(sum(each() is not None for each in made))
        return x * 2

    pipe = Pipeline(16, 1, None, workers="threads", prefetch_queue_depth=1)
    with pipe:
        x = fn.external_source(source=lambda: np.zeros((16, 50)))
        pipe.set_outputs(fn.runner_counts(fn.runner_makes(x)))
    pipe.build()
    for _ in range(20):  # several samples are taken at a time when it is known what one takes
        pipe.run()
    assert len(most) >= 16 * 20
    assert max(most) <= 2
