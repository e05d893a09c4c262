"""PyTorch datasets as external sources."""

from __future__ import annotations

import collections
import gc
import random

import numpy as np
import pytest
import torch
from torch.utils.data import (
    DistributedSampler,
    IterableDataset,
    RandomSampler,
    SequentialSampler,
    TensorDataset,
    WeightedRandomSampler,
    get_worker_info,
)

from headrace import Pipeline, errors, fn
from headrace.plugin.pytorch import DatasetSource, IterableDatasetSource
from headrace.types import BatchInfo

WAYS = [(False, 1), (True, 1), (True, 2), ("threads", 2)]
IDS = ["here", "one process", "two processes", "two threads"]


@pytest.fixture(autouse=True)
def _workers_end():
    yield
    gc.collect()


class Ragged(torch.utils.data.Dataset):
    """Pairs of an image whose size depends on its number, and the number."""

    def __init__(self, count=10):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        return torch.full((1 + index % 3, 2), index), index


class Divided(IterableDataset):
    """Divides itself among the workers that PyTorch tells it of."""

    def __init__(self, count=10):
        self.count = count
        self.epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        info = get_worker_info()
        start, step = (0, 1) if info is None else (info.id, info.num_workers)
        for k in range(start, self.count, step):
            yield torch.tensor([k + 100 * self.epoch])


def epochs(source, parallel=False, workers=1, count=2, num_outputs=None, **arguments):
    """The samples of the first output of each batch, epoch by epoch."""
    pipe = Pipeline(4, 1, None, py_num_workers=workers)
    with pipe:
        nodes = fn.external_source(source, num_outputs, parallel=parallel, **arguments)
        pipe.set_outputs(*(nodes if num_outputs else [nodes]))
    found = []
    for _ in range(count):
        found.append([])
        while True:
            try:
                batch = pipe.run()
            except StopIteration:
                break
            found[-1].append([np.asarray(s).tolist() for s in batch[-1]])
        pipe.reset()
    return found


def of(source, parallel=False, workers=1, **keywords):
    return epochs(source, parallel, workers, num_outputs=2, batch_info=True, **keywords)


def flat(epoch):
    return [sample for batch in epoch for sample in batch]


@pytest.mark.parametrize(("parallel", "workers"), WAYS, ids=IDS)
def test_in_order(parallel, workers):
    found = of(DatasetSource(Ragged(), 4), parallel, workers)
    assert found == [[[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]] * 2


@pytest.mark.parametrize(("parallel", "workers"), WAYS, ids=IDS)
def test_shuffled(parallel, workers):
    found = of(DatasetSource(Ragged(), 4, shuffle=True, seed=3), parallel, workers)
    assert found == of(DatasetSource(Ragged(), 4, shuffle=True, seed=3))
    first, second = map(flat, found)
    assert sorted(first) == sorted(second) == list(range(10))
    assert first != second


def test_samples_may_differ_in_shape():
    pipe = Pipeline(4, 1, None)
    with pipe:
        pipe.set_outputs(*fn.external_source(DatasetSource(Ragged(), 4), 2, batch_info=True))
    images, numbers = pipe.run()
    assert [s.shape for s in map(np.asarray, images)] == [(1, 2), (2, 2), (3, 2), (1, 2)]
    assert [np.asarray(s).dtype for s in numbers] == [np.int32] * 4


@pytest.mark.sweep
@pytest.mark.parametrize("even", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
@pytest.mark.parametrize("shards", [1, 2, 3, 4])
def test_shards(shards, shuffle, even):
    parts = []
    for shard in range(shards):
        source = DatasetSource(
            Ragged(), 4, shuffle=shuffle, num_shards=shards, shard_id=shard, even_shards=even
        )
        found = of(source, count=1)[0]
        assert len(found) == len(source)
        parts.append(flat(found))
    everything = collections.Counter(k for part in parts for k in part)
    assert set(everything) == set(range(10))
    if even:
        assert len({len(part) for part in parts}) == 1
    else:
        assert set(everything.values()) == {1}


def test_more_shards_than_samples():
    parts = [
        flat(of(DatasetSource(Ragged(2), 4, num_shards=5, shard_id=k), count=1)[0])
        for k in range(5)
    ]
    assert parts == [[0], [1], [0], [1], [0]]


@pytest.mark.parametrize(("parallel", "workers"), WAYS, ids=IDS)
def test_samplers(parallel, workers):
    data = Ragged()
    generator = torch.Generator().manual_seed(1)
    samplers = {
        "sequential": SequentialSampler(data),
        "random": RandomSampler(data, generator=generator),
        "weighted": WeightedRandomSampler([1.0] * 5, 7),
        "a list": [3, 1, 2],
        "a range": range(9, -1, -1),
    }
    for name, sampler in samplers.items():
        source = DatasetSource(data, 4, sampler=sampler)
        found = flat(of(source, parallel, workers, count=1)[0])
        assert len(found) == len(sampler), name
        assert set(found) <= set(range(10))
    assert found == list(range(9, -1, -1))


def test_samplers_are_told_the_epoch():
    sampler = DistributedSampler(Ragged(), num_replicas=2, rank=1, shuffle=True, seed=4)
    found = of(DatasetSource(Ragged(), 4, sampler=sampler))
    for number, epoch in enumerate(found):
        sampler.set_epoch(number)
        assert flat(epoch) == list(sampler)


@pytest.mark.parametrize("even", [True, False])
def test_samplers_are_divided(even):
    parts = [
        flat(
            of(
                DatasetSource(
                    Ragged(), 4, sampler=range(7), num_shards=3, shard_id=k, even_shards=even
                ),
                count=1,
            )[0]
        )
        for k in range(3)
    ]
    assert parts == ([[0, 3, 6], [1, 4, 0], [2, 5, 1]] if even else [[0, 3, 6], [1, 4], [2, 5]])


def test_the_last_batch_can_be_left_out():
    source = DatasetSource(Ragged(), 4, last_batch="drop")
    assert [len(b) for b in of(source, count=1)[0]] == [4, 4]
    assert len(source) == 2


def test_a_batch_can_be_asked_for_again():
    source = DatasetSource(Ragged(), 4, sampler=iter(range(100)))
    plans = [list(source.plan_batch(BatchInfo(k, 0))[0]) for k in (0, 1, 2, 1, 0)]
    assert plans[3] == plans[1]
    assert plans[4] == plans[0]


class Named(torch.utils.data.Dataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return {"image": np.zeros((2, 2)), "label": index, "path": f"{index}.png"}


def test_fields():
    assert flat(of(DatasetSource(Named(), 4, fields=("image", "label")), count=1)[0]) == [
        0,
        1,
        2,
        3,
    ]
    one = DatasetSource(Named(), 4, fields="label")
    assert epochs(one, batch_info=True, count=1) == [[[0, 1, 2, 3]]]
    second = DatasetSource(TensorDataset(torch.zeros(4), torch.arange(4)), 4, fields=1)
    assert epochs(second, batch_info=True, count=1) == [[[0, 1, 2, 3]]]


class Together(Ragged):
    def __getitems__(self, indices):
        return [(torch.zeros(1), 10 * k) for k in indices]


def test_samples_fetched_together():
    assert of(DatasetSource(Together(4), 4), count=1) == [[[0, 10, 20, 30]]]


class Random(torch.utils.data.Dataset):
    """Draws from all global generators."""

    def __len__(self):
        return 12

    def __getitem__(self, index):
        return np.array([random.random(), np.random.rand(), float(torch.rand(()))])  # noqa: NPY002


def test_random_samples_depend_on_no_worker():
    found = [
        epochs(DatasetSource(Random(), 4, seed=9), True, workers, batch_info=True)
        for workers in (1, 2, 3)
    ]
    assert found[0] == found[1] == found[2]
    drawn = [tuple(sample) for epoch in found[0] for sample in flat(epoch)]
    assert len(set(drawn)) == len(drawn)


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_new_processes(method):
    lock = __import__("threading").Lock()  # samplers need not be picklable
    sampler = type("Sampler", (list,), {"lock": lock})(range(4))
    pipe = Pipeline(4, 1, None, py_num_workers=1, py_start_method=method)
    with pipe:
        dataset = TensorDataset(torch.arange(4))
        pipe.set_outputs(
            *fn.external_source(
                DatasetSource(dataset, 4, sampler=sampler), 1, batch_info=True, parallel=True
            )
        )
    assert [int(np.asarray(s)) for s in pipe.run()[0]] == [0, 1, 2, 3]


@pytest.mark.sweep
@pytest.mark.parametrize("parts", [1, 2, 3])
@pytest.mark.parametrize(("parallel", "workers"), WAYS, ids=IDS)
def test_iterable_datasets(parts, parallel, workers):
    workers = min(parts, workers) if parallel else 1
    source = IterableDatasetSource(Divided(), 4, num_parts=parts)
    found = epochs(source, parallel, workers, cycle="raise")
    assert found == epochs(IterableDatasetSource(Divided(), 4, num_parts=parts), cycle="raise")
    for number, epoch in enumerate(found):
        assert sorted(k for (k,) in flat(epoch)) == [k + 100 * number for k in range(10)]
    assert get_worker_info() is None


def test_iterable_datasets_are_divided_by_rank():
    found = [
        flat(
            epochs(
                IterableDatasetSource(Divided(), 4, num_parts=2, num_shards=2, shard_id=k), count=1
            )[0]
        )
        for k in range(2)
    ]
    assert sorted(k for part in found for (k,) in part) == list(range(10))
    assert sorted(k for (k,) in found[0]) == [0, 1, 4, 5, 8, 9]


def test_iterable_datasets_without_their_last_batches():
    source = IterableDatasetSource(Divided(), 4, num_parts=2, last_batch="drop")
    assert [len(batch) for batch in epochs(source, count=1)[0]] == [4, 4]


MISTAKES = {
    "iterable dataset": (lambda: DatasetSource(Divided(), 4), TypeError),
    "no samples": (lambda: DatasetSource(Ragged(), 0), ValueError),
    "two orders": (lambda: DatasetSource(Ragged(), 4, shuffle=True, sampler=[1]), ValueError),
    "no such shard": (lambda: DatasetSource(Ragged(), 4, shard_id=1), ValueError),
    "last batch": (lambda: DatasetSource(Ragged(), 4, last_batch="some"), ValueError),
    "no epoch": (lambda: DatasetSource([1, 2], 4).plan_batch(0), TypeError),
    "no batch_info": (lambda: epochs(DatasetSource(Ragged(), 4), num_outputs=2), TypeError),
    "not iterable": (lambda: IterableDatasetSource(3, 4), TypeError),
    "no parts": (lambda: IterableDatasetSource(Divided(), 4, num_parts=0), ValueError),
    "dictionaries": (lambda: of(DatasetSource(Named(), 4)), TypeError),
    "no such field": (lambda: of(DatasetSource(Named(), 4, fields=("x", "y"))), IndexError),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes(name):
    make, error = MISTAKES[name]
    with pytest.raises(error) as caught:
        make()
    assert isinstance(caught.value, errors.HeadraceError)


def test_too_few_fields_are_shown():
    with pytest.raises(errors.OutOfRangeError, match=r"no 'labels': it has \['image'"):
        of(DatasetSource(Named(), 4, fields=("image", "labels")))


def test_the_length_of_an_iterable_dataset():
    class Counted(torch.utils.data.IterableDataset):
        def __len__(self):
            return 10

        def __iter__(self):
            return iter(range(10))

    class Uncounted(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter(range(10))

    for last_batch in ("partial", "drop"):
        source = IterableDatasetSource(Counted(), 4, last_batch=last_batch)
        assert len(source) == len(list(source))
    for source in (
        IterableDatasetSource(Uncounted(), 4),
        IterableDatasetSource(Counted(), 4, num_parts=2),
    ):
        with pytest.raises(TypeError):
            len(source)
