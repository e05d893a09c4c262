"""Batches do not depend on how many workers make them, nor on what the workers are."""

from __future__ import annotations

import gc

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Pipeline, fn

KINDS = [(False, 1), ("processes", 1), ("processes", 2), ("threads", 1), ("threads", 3)]


def make(epoch, number, dtype, sizes):
    size = sizes[number % len(sizes)]
    return np.full((size, 2), number % 100 + epoch, dtype)


def sources(count, batch_size, dtype, sizes, kind):
    """A function or iterable with `count` samples, and the arguments that go with it."""
    if kind == "samples":

        def sample(info):
            if info.idx_in_epoch >= count:
                raise StopIteration
            return make(info.epoch_idx, info.idx_in_epoch, dtype, sizes)

        return sample, {"batch": False}

    def of_batch(epoch, index):
        numbers = range(index * batch_size, min((index + 1) * batch_size, count))
        return [make(epoch, k, dtype, sizes) for k in numbers]

    if kind == "batches":

        def batch(info):
            found = of_batch(info.epoch_idx, info.iteration)
            if not found:
                raise StopIteration
            return found

        return batch, {"batch_info": True}

    total = -(-count // batch_size)
    return [of_batch(0, k) for k in range(total)], {"cycle": "raise"}


def all_batches(source, arguments, batch_size, depth, parallel, workers):
    if arguments.get("cycle"):
        workers = 1
    pipe = Pipeline(batch_size, 1, None, py_num_workers=workers, prefetch_queue_depth=depth)
    with pipe:
        pipe.set_outputs(fn.external_source(source, parallel=parallel, **arguments))
    found = []
    for _ in range(2):
        while True:
            try:
                batch = pipe.run()[0]
            except StopIteration:
                break
            found.append([np.asarray(s).copy() for s in batch])
        found.append([])
        pipe.reset()
    return found


@settings(max_examples=10)
@given(
    count=st.integers(1, 20),
    batch_size=st.integers(1, 6),
    dtype=st.sampled_from(["u1", "f4", "i8"]),
    sizes=st.lists(st.integers(0, 5), min_size=1, max_size=3),
    kind=st.sampled_from(["samples", "batches", "iterable"]),
    depth=st.integers(1, 3),
)
def test_the_same_batches_for_any_number_of_workers(count, batch_size, dtype, sizes, kind, depth):
    source, arguments = sources(count, batch_size, np.dtype(dtype), sizes, kind)
    expected = None
    for parallel, workers in KINDS:
        found = all_batches(source, arguments, batch_size, depth, parallel, workers)
        if expected is None:
            expected = found
            continue
        assert len(found) == len(expected)
        for mine, theirs in zip(found, expected, strict=True):
            assert [a.dtype for a in mine] == [b.dtype for b in theirs]
            assert [a.tolist() for a in mine] == [b.tolist() for b in theirs]
            assert [a.shape for a in mine] == [b.shape for b in theirs]
    gc.collect()
