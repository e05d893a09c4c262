"""What tests of iterators on a cluster compare."""

from __future__ import annotations

import itertools
import os
import signal

import numpy as np

from headrace import fn, pipeline_def, types

SETTINGS = {"num_threads": 1, "device_id": None, "seed": 11}


def numbered(root, batch_size=3, reader=None, **settings):
    """Small images, numbers that are drawn, and labels."""

    @pipeline_def(batch_size=batch_size, **{**SETTINGS, **settings})
    def definition():
        data, labels = fn.readers.file(
            file_root=root, name="reader", **{"random_shuffle": True, **(reader or {})}
        )
        images = fn.resize(fn.decoders.image(data), size=(6, 5), name="resize")
        images = fn.cast(images, dtype=types.FLOAT) * fn.random.uniform(range=(1, 2))
        return images, labels, fn.random.normal()

    return definition()


NAMES = ["images", "labels", "noise"]


def values(batch):
    (only,) = batch
    return [only[name].numpy().copy() for name in only]


def epochs(iterator, count=2):
    """All batches of some epochs."""
    return [[values(batch) for batch in iterator] for _ in range(count)]


def assert_same(ours, theirs):
    assert [len(epoch) for epoch in ours] == [len(epoch) for epoch in theirs]
    for one, other in zip(itertools.chain(*ours), itertools.chain(*theirs), strict=True):
        for mine, his in zip(one, other, strict=True):
            assert mine.dtype == his.dtype
            np.testing.assert_array_equal(mine, his)


def samples(epoch):
    """Each sample of an epoch as bytes, sorted."""
    return sorted(rows.tobytes() for images, *_ in epoch for rows in images)


def kill(worker):
    """End the process of a worker."""
    os.kill(worker.pid, signal.SIGKILL)


def started(iterator, count=1):
    """The workers that have started, once there are so many."""
    while len(found := [w for w in iterator.workers if w.pid]) < count:
        with iterator._executors()[0].changed:
            iterator._executors()[0].changed.wait(0.2)
    return found
