"""Large batches of ordinary memory are copied by several threads."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace import fn
from headrace.kernels.gpu import staging
from headrace.pipeline import Pipeline


@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("no_copy", [True, False])
def test_each_batch_arrives(threads, no_copy, monkeypatch):
    """Also where the source writes to the same array again, and the last piece is a short one."""
    calls = []
    monkeypatch.setattr(staging, "_LEAST_PIECE_BYTES", 1 << 20)
    monkeypatch.setattr("headrace.kernels.gpu.transfer.LEAST_BYTES", 1 << 20)
    copy = staging.copy_staged
    monkeypatch.setattr(
        "headrace.kernels.gpu.transfer.copy_staged", lambda *a: (calls.append(a), copy(*a))
    )
    rng = np.random.default_rng(3)
    batches = rng.integers(0, 256, (5, 3, 1500001), np.uint8)
    turn = itertools.cycle(batches)
    pipe = Pipeline(3, threads, 0, prefetch_queue_depth=2, workers="threads")
    with pipe:
        data = fn.external_source(source=lambda: next(turn), no_copy=no_copy)
        pipe.set_outputs(data.gpu())
    for k in range(7):
        (out,) = pipe.run()
        np.testing.assert_array_equal(np.array(out.as_cpu().as_array()), batches[k % 5])
    assert bool(calls) == (threads > 1 and no_copy)  # the engine's own copies are page-locked
