"""A long run in which a worker or a node is lost in every epoch; nightly."""

from __future__ import annotations

import gc
import os
import random
import time

import pytest

pytest.importorskip("ray")

from headrace.plugin.pytorch import DALIGenericIterator
from headrace.plugin.ray import LastBatchPolicy, RayIterator
from tests.ray.iterators import NAMES, assert_same, epochs, kill, numbered, values
from tests.ray.test_faults import settled_store_bytes

ROUNDS = int(os.environ.get("HEADRACE_RAY_ROUNDS", "100"))
"""Epochs; every tenth loses a node, the others a worker."""
SECONDS = float(os.environ.get("HEADRACE_RAY_SECONDS", "inf"))
"""No round begins later than that."""


@pytest.mark.nightly
def test_every_epoch_has_each_sample_once(images, cluster):
    drawn = random.Random(4)
    how = {"reader_name": "reader", "last_batch_policy": LastBatchPolicy.PARTIAL}
    alone = DALIGenericIterator(numbered(images), NAMES, **how)
    gc.collect()
    before = settled_store_bytes()
    iterator = RayIterator(
        numbered(images), NAMES, **how, num_workers=3, resources={"num_cpus": 0.5}, max_restarts=-1
    )
    began, longest, rounds = time.monotonic(), 0.0, 0
    for rounds in range(1, ROUNDS + 1):
        node = None
        if rounds % 10 == 0:
            node = cluster.add_node(num_cpus=1, object_store_memory=80 << 20)
            iterator.resize(5)
        at, found, start = drawn.randrange(6), [], time.monotonic()
        for number, batch in enumerate(iterator):
            found.append(values(batch))
            if number != at:
                continue
            if node is not None:
                cluster.remove_node(node, allow_graceful=False)
                iterator.resize(3)
            elif there := [worker for worker in iterator.workers if worker.pid]:
                kill(drawn.choice(there))
        assert_same([found], epochs(alone, 1))
        longest = max(longest, time.monotonic() - start)
        if time.monotonic() - began > SECONDS:
            break
    lost = iterator.statistics()[0]["ray_workers_lost"]
    print(f"{rounds} rounds, {lost} workers lost, longest epoch {longest:.1f} s")
    assert lost > rounds // 2
    del iterator
    assert settled_store_bytes(before) <= before
