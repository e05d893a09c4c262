"""A training goes on with another number of ranks: each sample comes once until the epoch's end."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.errors import CheckpointError
from headrace.plugin.base_iterator import LastBatchPolicy, PipelineBatch, _DaliBaseIterator

COUNT = 37
PARTIAL, FILL = LastBatchPolicy.PARTIAL, LastBatchPolicy.FILL


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    paths = [folder / f"{k}.bin" for k in range(COUNT)]
    for k, path in enumerate(paths):
        path.write_bytes(bytes([k]))
    return [str(path) for path in paths]


class Labels(_DaliBaseIterator):
    def _assemble(self, batches: list[PipelineBatch]) -> Any:
        return [
            int(np.asarray(label).item())
            for batch in batches
            for label in list(batch.outputs[0])[: batch.kept]
        ]


def pipeline(files, shard, shards, checkpoint=None, *, threads=2, **order):
    pipe = Pipeline(4, threads, None, enable_checkpointing=True, checkpoint=checkpoint, seed=3)
    with pipe:
        _, label = fn.readers.file(
            files=files, name="R", shard_id=shard, num_shards=shards, **order
        )
        pipe.set_outputs(label, fn.random.uniform())
    return pipe


def ranks(files, shards, checkpoint=None, policy=PARTIAL, **order):
    """An iterator for each rank, as each process has one."""
    return [
        Labels(
            pipeline(files, k, shards, checkpoint, **order),
            reader_name="R",
            last_batch_policy=policy,
        )
        for k in range(shards)
    ]


def loops(iterators):
    """What all ranks get in a loop of each, which have equally many steps."""
    found: Counter[int] = Counter()
    steps = set()
    for iterator in iterators:
        batches = list(iterator)
        steps.add(len(batches))
        for batch in batches:
            found.update(batch)
    assert len(steps) == 1
    return found


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 5), (4, 1), (1, 3)])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_ranks(files, before, after, steps, shuffled):
    order = {"pad_last_batch": True, "shuffle_after_epoch": shuffled}
    olds = ranks(files, before, **order)
    loops(olds)  # an epoch before
    taken: Counter[int] = Counter()
    for old in olds:
        batches = iter(old)
        for _ in range(steps):
            taken.update(next(batches))
    (checkpoint,) = olds[steps % before].checkpoints()
    news = ranks(files, after, checkpoint, **order, threads=1)
    if steps == 1:  # and again, before a further batch
        (checkpoint,) = news[0].checkpoints()
        news = ranks(files, 2, checkpoint, **order)
    everything = Counter(range(COUNT))
    assert loops(news) + taken == everything
    assert loops(news) == everything
    assert loops(news) == everything


@pytest.mark.parametrize("steps", [0, 1, 2, 3, 4])
def test_without_padding(files, steps):
    """Shards of one size, whose batches may go on in the next epoch."""
    names = files[:36]
    olds = ranks(names, 2, policy=FILL)
    taken: Counter[int] = Counter()
    for old in olds:
        for _ in range(steps):
            taken.update(next(old))
    (checkpoint,) = olds[1].checkpoints()
    news = ranks(names, 3, checkpoint, policy=FILL)
    found = loops(news) + taken
    for epochs in (1, 2, 3):  # what fills up the last batches is the next epoch's
        assert len(found) == 36
        assert min(found.values()) == epochs
        assert max(found.values()) <= epochs + 1
        assert sum(found.values()) - 36 * epochs < 12
        found += loops(news)


def labels_of(files, shards, checkpoint=None, of=None):
    """An iterator over `of` of so many shards, or over all of them."""
    pipes = [
        pipeline(files, k, shards, checkpoint, pad_last_batch=True) for k in range(of or shards)
    ]
    return Labels(pipes, reader_name="R", last_batch_policy=PARTIAL)


@pytest.mark.parametrize("again", [True, False])
@pytest.mark.parametrize("in_place", [True, False])
def test_in_one_process(files, in_place, again):
    """An iterator over all shards, and one over as many others, by checkpoints and states."""
    old = labels_of(files, 3)
    taken = Counter(next(old))
    if in_place:
        new = labels_of(files, 2)
        next(new)
        new.load_state_dict(old.state_dict())
    else:
        new = labels_of(files, 2, old.checkpoints()[0])
    assert len(new) == 4  # of 25 samples 12 and 13
    if again:
        taken.update(next(new))
        state = new.state_dict()
        next(new)
        new.load_state_dict(state)
        assert len(new) == 4
    for batch in new:
        taken.update(batch)
    assert taken == Counter(range(COUNT))
    assert len(new) == 5


def test_shards_in_more_processes(files):
    """As many shards, of which each iterator now has one."""
    old, one, same = (labels_of(files, 3, of=n) for n in (3, 1, 1))
    for iterator in (old, same):
        next(iterator)
    one.load_state_dict(old.state_dict())
    rest = list(one)
    assert rest == [next(same) for _ in rest]
    assert list(one) == list(same)


def test_what_cannot_be_dealt(files):
    (checkpoint,) = ranks(files, 2, random_shuffle=True)[0].checkpoints()
    with pytest.raises(
        CheckpointError,
        match=r'The reader "R", created at .*test_elastic_training.*: `num_shards` is 3 and was 2, '
        r"and what is left of the epoch cannot be dealt anew, because `random_shuffle` draws",
    ):
        pipeline(files, 0, 3, checkpoint, random_shuffle=True).build()
    with pytest.warns(Warning, match="does not know of shards"):
        old = Labels([pipeline(files, k, 2) for k in range(2)], size=COUNT)
    next(old)
    new = [pipeline(files, k, 3, old.checkpoints()[0]) for k in range(3)]
    with (
        pytest.warns(Warning, match="does not know of shards"),
        pytest.raises(CheckpointError, match="Give it `reader_name`"),
    ):
        Labels(new, size=COUNT)
