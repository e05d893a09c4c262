"""What is asked of workers, and when, with workers that do it at once."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.operators.support.external.parallel.ahead import ForwardAhead, IndexedAhead
from headrace.operators.support.external.parallel.tasks import SourceRunner, traits_of
from headrace.operators.support.external.parallel.workers import (
    SourceEntry,
    TaskHandle,
    useful_workers,
)


class AtOnce:
    """Workers without processes or threads."""

    def __init__(self, source, traits, size=2):
        self.size = size
        self.runners = [SourceRunner(source, traits) for _ in range(size)]
        self.handles = []
        self.discarded = []

    def submit(self, source, task, worker=None):
        handle = TaskHandle(len(self.handles), source, task, worker or 0)
        self.handles.append(handle)
        try:
            handle.outcome = self.runners[handle.worker].run(task)
        except Exception as error:
            handle.outcome = error
        return handle

    def wait(self, handle):
        if isinstance(handle.outcome, Exception):
            raise handle.outcome
        return handle.outcome

    def discard(self, handles):
        self.discarded += [t.number for t in handles]


def traits(source, **keywords):
    given = {"cycle": None, "batch": True, "batch_info": False, "num_outputs": None}
    return traits_of(source, dtypes=(None,), bytes_per_sample=0, **{**given, **keywords})


def numbers(partials):
    return [float(s) for parts in partials for s in parts[0].samples]


def collected(ahead, size=2, epoch=0):
    found = []
    with pytest.raises(StopIteration):
        _all(ahead, size, epoch, found)
    return found


def _all(ahead, size, epoch, found):
    while True:
        found.append(numbers(ahead.collect(size, len(found), epoch)))


def three(index):
    if index >= 3:
        raise StopIteration
    return [np.float32(index)] * 2


def test_batches_are_asked_for_ahead_and_at_most_so_many():
    workers = AtOnce(three, traits(three))
    ahead = IndexedAhead(workers, 0, three, traits(three), 2)
    ahead.collect(2, 0, 0)
    assert [t.task.iteration for t in workers.handles] == [0, 1, 2]
    ahead.collect(2, 1, 0)
    assert [t.task.iteration for t in workers.handles] == [0, 1, 2, 3]


def test_every_worker_makes_a_piece_of_a_batch_of_samples():
    def source(info):
        return np.float32(info.idx_in_epoch)

    kind = traits(source, batch=False)
    workers = AtOnce(source, kind, size=3)
    ahead = IndexedAhead(workers, 0, source, kind, 1)
    assert numbers(ahead.collect(7, 0, 0)) == list(range(7))
    first = [t for t in workers.handles if t.task.iteration == 0]
    assert [(t.task.first, t.task.stop, t.worker) for t in first] == [
        (0, 2, 0),
        (2, 4, 1),
        (4, 7, 2),
    ]
    assert numbers(ahead.collect(7, 1, 0)) == list(range(7, 14))


def test_fewer_samples_than_workers():
    def source(info):
        return np.float32(info.idx_in_epoch)

    kind = traits(source, batch=False)
    ahead = IndexedAhead(AtOnce(source, kind, size=3), 0, source, kind, 1)
    assert numbers(ahead.collect(2, 0, 0)) == [0, 1]


def test_what_is_ahead_of_an_error_is_asked_for_again():
    failing = {1}

    def source(index):
        if index in failing:
            raise KeyError(index)
        return [np.float32(index)]

    workers = AtOnce(source, traits(source))
    ahead = IndexedAhead(workers, 0, source, traits(source), 1)
    assert numbers(ahead.collect(1, 0, 0)) == [0]
    with pytest.raises(KeyError):
        ahead.collect(1, 1, 0)
    failing.clear()
    assert numbers(ahead.collect(1, 1, 0)) == [1]


def test_a_new_epoch_is_asked_for_anew():
    ahead = IndexedAhead(AtOnce(three, traits(three)), 0, three, traits(three), 2)
    assert collected(ahead) == [[0, 0], [1, 1], [2, 2]]
    ahead.new_epoch()
    assert collected(ahead, epoch=1) == [[0, 0], [1, 1], [2, 2]]


class Planning:
    """A source that says in the main process what batches are made of."""

    def __call__(self, info):
        return self.load_batch(self.plan_batch(info))

    def plan_batch(self, info):
        if info.iteration == 2:
            raise StopIteration
        return 100 * info.epoch_idx + info.iteration

    def load_batch(self, plan):
        return [np.float32(plan)]


def test_sources_that_plan():
    source = Planning()
    ahead = IndexedAhead(AtOnce(source, traits(source)), 0, source, traits(source), 4)
    assert collected(ahead) == [[0], [1]]
    ahead.new_epoch()
    assert collected(ahead, epoch=1) == [[100], [101]]


class Parts:
    """Several iterables of different lengths."""

    def __init__(self, *lengths):
        self.lengths = lengths
        self.num_parts = len(lengths)

    def iterate_part(self, part):
        for k in range(self.lengths[part]):
            yield [np.float32(10 * part + k)]

    def __iter__(self):
        parts = [self.iterate_part(k) for k in range(self.num_parts)]
        while parts:
            for part in list(parts):
                try:
                    yield next(part)
                except StopIteration:
                    parts.remove(part)


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("lengths", [(3, 1, 2), (0, 0), (1,), (0, 4, 0, 1), (2, 2)])
@pytest.mark.parametrize("depth", [1, 2, 7])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_parts_take_turns_in_an_order_of_their_own(lengths, depth, size):
    source = Parts(*lengths)
    kind = traits(source, cycle="raise")
    places = [k % size for k in range(len(lengths))]
    ahead = ForwardAhead(AtOnce(source, kind, size), 0, kind, depth, places)
    expected = [[float(s) for s in batch] for batch in source]
    assert collected(ahead) == expected
    ahead.new_epoch()
    assert collected(ahead) == expected


def test_parts_that_start_over_by_themselves():
    source = Parts(2, 1)
    kind = traits(source, cycle="quiet")
    ahead = ForwardAhead(AtOnce(source, kind), 0, kind, 1, [0, 1])
    found = [numbers(ahead.collect(1, k, 0))[0] for k in range(7)]
    assert found == [0, 10, 1, 0, 10, 1, 0]


def test_empty_parts_that_start_over_end():
    source = Parts(0, 0)
    kind = traits(source, cycle="quiet")
    ahead = ForwardAhead(AtOnce(source, kind), 0, kind, 1, [0, 1])
    with pytest.raises(StopIteration):
        ahead.collect(1, 0, 0)


def test_an_error_of_a_new_beginning_is_not_lost():
    class Once:
        begun = 0

        def __iter__(self):
            self.begun += 1
            if self.begun > 1:
                raise KeyError("again")
            return iter([[np.float32(1)]])

    source = Once()
    kind = traits(source, cycle="raise")
    ahead = ForwardAhead(AtOnce(source, kind), 0, kind, 1, [0])
    assert collected(ahead) == [[1]]
    ahead.new_epoch()
    with pytest.raises(KeyError):
        ahead.collect(1, 0, 1)


def test_how_many_workers_have_something_to_do():
    forward, parts = (
        SourceEntry([], traits([]), ""),
        SourceEntry(Parts(1, 1), traits(Parts(1, 1)), ""),
    )
    assert useful_workers([forward], 4) == 1
    assert useful_workers([forward, parts], 4) == 3
    assert useful_workers([forward, SourceEntry(three, traits(three), "")], 4) == 4
