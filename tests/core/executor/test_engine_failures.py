"""What fails in the engine itself fails an iteration, and never leaves its consumer waiting."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.executor.cpu.arena import Arena
from headrace.executor.cpu.runner import SampleRunner


@pipeline_def(batch_size=4, num_threads=2, device_id=None, prefetch_queue_depth=1)
def doubled():
    return fn.external_source(lambda: np.ones((4, 3), np.float32)) * 2


@pytest.mark.in_threads
@pytest.mark.parametrize(
    ("place", "name"), [(Arena, "reset"), (SampleRunner, "bind"), (SampleRunner, "__init__")]
)
@pytest.mark.parametrize("policy", ["raise", "replace", "skip"])
def test_an_iteration_fails_and_the_next_one_comes(monkeypatch, place, name, policy):
    pipe = doubled(on_bad_sample=policy)
    pipe.build()
    with monkeypatch.context() as broken:

        def fail(*_, **__):
            raise MemoryError("no scratch memory")

        broken.setattr(place, name, fail)
        with pytest.raises(MemoryError, match="no scratch memory"):
            pipe.run()
    pipe.reset()
    found = None
    while found is None:
        try:
            (found,) = pipe.run()
        except MemoryError:  # an iteration that had begun before the repair
            continue
    assert (found.as_array() == 2).all()
