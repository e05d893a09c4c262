"""Readers with a sampler: resumed as if never interrupted, and by any number of shards."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
import torch.utils.data
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn, samplers
from headrace.errors import (
    ArgumentValueError,
    CheckpointError,
    ConversionError,
    MisusedArgumentError,
)

COUNT = 23
LABELS = [k % 3 for k in range(COUNT)]


class Numbered:
    """A sampler that is told the epoch."""

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter(np.random.default_rng(self.epoch).permutation(COUNT).tolist())


class Global:
    """A sampler that draws from generators of all the process."""

    def __iter__(self):
        found = np.random.permutation(COUNT).tolist()  # noqa: NPY002
        random.shuffle(found)
        return iter(found)


class Own:
    """A sampler that goes on with a generator of its own."""

    def __init__(self):
        self.generator = np.random.default_rng(3)

    def __iter__(self):
        return iter(self.generator.permutation(COUNT).tolist())


class Kept(Own):
    """A sampler that may not leave its process."""

    def __reduce__(self):
        raise TypeError("it was sent")


def of_torch(**arguments):
    return torch.utils.data.RandomSampler(range(COUNT), **arguments)


EACH_ONCE: dict[str, Any] = {
    "array": np.arange(COUNT)[::-1],
    "shuffled": samplers.Shuffled(seed=1),
    "windows": samplers.Shuffled(4),
    "function": lambda epoch: np.roll(np.arange(COUNT), epoch),
    "numbered": Numbered(),
    "global": Global(),
    "own": Own(),
    "torch": of_torch(),
    "torch with a generator": of_torch(generator=torch.Generator().manual_seed(5)),
    "once by weight": samplers.Weighted(np.arange(1, COUNT + 1), replacement=False),
}
OTHERS: dict[str, Any] = {
    "subset": [20, 1, 1, 7, 3],
    "by weight": samplers.Weighted(LABELS),
    "balanced": samplers.Balanced(),
    "torch by weight": torch.utils.data.WeightedRandomSampler([1.0] * COUNT, 11),
}
ENGINES = st.fixed_dictionaries(
    {"num_threads": st.integers(1, 4), "prefetch_queue_depth": st.integers(1, 3)}
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """23 files whose content is their number."""
    folder = tmp_path_factory.mktemp("files")
    for k in range(COUNT):
        (folder / f"{k:02}").write_bytes(bytes([k]))
    return [str(folder / f"{k:02}") for k in range(COUNT)]


def made(files, sampler, engine=None, *, batch=2, reader=None, **settings):
    pipe = Pipeline(
        batch_size=batch, device_id=None, enable_checkpointing=True, **(engine or {}), **settings
    )
    with pipe:
        data, labels = fn.readers.file(
            files=files, labels=LABELS, sampler=sampler, name="r", **(reader or {})
        )
        pipe.set_outputs(data, labels)
    pipe.build()
    return pipe


def numbers(batch):
    """Numbers of the samples, and that each is beside its label."""
    data, labels = batch
    found = [int(data.at(k)[0]) for k in range(len(data))]
    assert [LABELS[k] for k in found] == [int(labels.at(k)[0]) for k in range(len(data))]
    return found


@pytest.mark.parametrize("name", [*EACH_ONCE, *OTHERS])
@settings(max_examples=4)
@given(data=st.data())
def test_resumed_as_if_never_interrupted(files, name, data):
    sampler = (EACH_ONCE | OTHERS)[name]
    reader = data.draw(
        st.sampled_from([{}, {"pad_last_batch": True}, {"num_shards": 3, "shard_id": 1}])
    )
    batch, before, behind = data.draw(
        st.tuples(st.integers(1, 5), st.integers(0, 20), st.integers(1, 12))
    )
    good = {"on_bad_sample": "skip", "reader": reader, "batch": batch}
    files = [*files[:7], "missing", *files[8:]]
    whole = made(files, sampler, data.draw(ENGINES), **good)
    for _ in range(before):
        numbers(whole.run())
    checkpoint = whole.checkpoint()
    again = made(files, sampler, data.draw(ENGINES), checkpoint=checkpoint, **good)
    assert [numbers(again.run()) for _ in range(behind)] == [
        numbers(whole.run()) for _ in range(behind)
    ]


def test_workers_need_no_sampler(files):
    found = [
        [numbers(pipe.run()) for _ in range(30)]
        for pipe in (made(files, Kept(), workers=kind) for kind in ("threads", "processes"))
    ]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", EACH_ONCE)
@settings(max_examples=4)
@given(data=st.data())
def test_another_number_of_shards_gives_each_sample_once(files, name, data):
    """Each sample once in the epoch that was under way, whatever seeds the pipelines have."""
    sampler = EACH_ONCE[name]
    before, after = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    steps = data.draw(st.integers(0, COUNT // before - 1))

    def pipes(count, **settings):
        return [
            made(
                *(files, sampler),
                **{"batch": 1, "seed": k, **settings},
                reader={"num_shards": count, "shard_id": k, "stick_to_shard": True},
            )
            for k in range(count)
        ]

    def take(pipe, count):
        return [number for _ in range(count) for number in numbers(pipe.run())]

    taken: list[int] = []
    olds = pipes(before)
    for old in olds:
        taken += take(old, steps)
    left = COUNT - len(taken)
    origin = data.draw(st.sampled_from(olds))
    for k, new in enumerate(pipes(after, checkpoint=origin.checkpoint())):
        taken += take(new, (k + 1) * left // after - k * left // after)
    assert sorted(taken) == list(range(COUNT))


@pytest.mark.parametrize("name", EACH_ONCE)
def test_dynamic_mode_reads_in_the_same_order(files, name):
    pipe = made(files, EACH_ONCE[name], batch=1)
    expected = [numbers(pipe.run())[0] for _ in range(2 * COUNT)]
    reader = ndd.readers.File(files=files, labels=LABELS, sampler=EACH_ONCE[name])
    found = [int(np.asarray(data)[0]) for _ in range(2) for data, _ in reader.next_epoch()]
    assert found == expected
    assert sorted(found[:COUNT]) == list(range(COUNT))
    if name != "array":
        assert found[:COUNT] != found[COUNT:]


def test_files_of_indices(files, tmp_path):
    order = [4, 0, 22, 0]
    np.save(tmp_path / "order.npy", np.array(order, np.int32))
    (tmp_path / "order.txt").write_text("4 0\n22\n0\n")
    for sampler in (tmp_path / "order.npy", str(tmp_path / "order.txt"), torch.tensor(order)):
        assert numbers(made(files, sampler, batch=4).run()) == order


def test_all_bad_is_replaced_within_the_sampler(files):
    """A sample that is not of the sampler does not come in for a bad one."""
    broken = ["missing" if k == 9 else path for k, path in enumerate(files)]
    pipe = made(broken, [9, 4], batch=1, on_bad_sample="replace")
    assert [numbers(pipe.run())[0] for _ in range(4)] == [4, 4, 4, 4]


def test_a_serialized_pipeline_keeps_its_sampler(files):
    for sampler in (samplers.Balanced(LABELS, size=9, seed=4), np.array([3, 2, 1])):
        pipe = made(files, sampler)
        other = Pipeline.deserialize(pipe.serialize())
        assert [numbers(other.run()) for _ in range(5)] == [numbers(pipe.run()) for _ in range(5)]
    with pytest.raises(Exception, match="a function cannot be serialized"):
        made(files, lambda epoch: [epoch]).serialize()


@pytest.mark.parametrize(
    ("sampler", "error", "words"),
    [
        ([COUNT], ArgumentValueError, "index 23, and the data set has 23 samples"),
        ([-1], ArgumentValueError, "index -1"),
        (lambda epoch: [99] if epoch else [1], ArgumentValueError, "for epoch 1 has the index 99"),
        (lambda epoch: [1] * (epoch + 1), ArgumentValueError, "2 indices for epoch 1"),
        (lambda epoch: 5, ArgumentValueError, "for epoch 0"),
        ([], ConversionError, "at least one"),
        ([0.5], ConversionError, "float64"),
        (5, ConversionError, "expected an array or a file of indices"),
        (iter([1]), ConversionError, "only once"),
        (torch.utils.data.RandomSampler, ConversionError, "make one"),
        ("missing.npy", ArgumentValueError, "'missing.npy' cannot be read"),
        (
            torch.utils.data.DistributedSampler(range(COUNT), num_replicas=2, rank=0),
            ArgumentValueError,
            "num_replicas=1",
        ),
    ],
)
def test_errors(files, sampler, error, words):
    def pipeline():
        pipe = made(files, sampler)
        for _ in range(3):
            pipe.run()

    def dynamic():
        reader = ndd.readers.File(files=files, sampler=sampler)
        for _ in range(2):
            list(reader.next_epoch())

    for run in (pipeline, dynamic):
        with pytest.raises(error, match=words):
            run()


def test_a_checkpoint_knows_its_sampler(files):
    checkpoint = made(files, samplers.Shuffled()).checkpoint()
    with pytest.raises(CheckpointError, match="sampler"):
        made(files, samplers.Shuffled(seed=1), checkpoint=checkpoint)


@pytest.mark.parametrize("other", ["random_shuffle", "shuffle_after_epoch"])
def test_one_order_only(files, other):
    with pytest.raises(MisusedArgumentError, match=f"(?s)sampler.*{other}"):
        made(files, [1], reader={other: True})
