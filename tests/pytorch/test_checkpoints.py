"""Checkpoints of PyTorch iterators and of pipelines over PyTorch datasets."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.utils.data import IterableDataset

from headrace import Pipeline, fn
from headrace.errors import ArgumentValueError, CheckpointError, UsageError
from headrace.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    DatasetSource,
    IterableDatasetSource,
)


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    names = []
    for k in range(11):
        path = tmp_path / f"{k}.bin"
        path.write_bytes(bytes([k]) * 5)
        names.append(str(path))
    return names


def reading(files: list[str], checkpoint: bytes | None = None, **options: Any) -> Pipeline:
    options = {"seed": 1, "enable_checkpointing": True, **options}
    pipe = Pipeline(2, 2, None, checkpoint=checkpoint, **options)
    with pipe:
        data, label = fn.readers.file(files=files, name="reader", random_shuffle=True)
        pipe.set_outputs(data, label)
    return pipe


@pytest.mark.parametrize("cls", [DALIGenericIterator, DALIClassificationIterator])
def test_training_goes_on(files: list[str], tmp_path: Path, cls: Any) -> None:
    """The loop of a training that is stopped in its second epoch, and started again."""
    names = [["data", "label"]] if cls is DALIGenericIterator else []

    def epochs(checkpoint: bytes | None = None) -> Any:
        it = cls(reading(files, checkpoint), *names, reader_name="reader")
        while True:
            for batch in it:
                yield it, batch[0]["label"].tolist()
            yield it, "end"

    whole, seen = epochs(), []
    for step in range(9):
        it, found = next(whole)
        seen.append(found)
        if step == 8:
            Path(tmp_path / "c").write_bytes(it.checkpoints()[0])
    assert seen[6] == "end"
    resumed = epochs((tmp_path / "c").read_bytes())
    assert [next(resumed)[1] for _ in range(15)] == [next(whole)[1] for _ in range(15)]


def test_ragged_iterators(files: list[str]) -> None:
    def make(checkpoint: bytes | None = None) -> Any:
        return DALIRaggedIterator(
            reading(files, checkpoint), ["data", "label"], reader_name="reader"
        )

    it = make()
    next(it), next(it)
    assert next(make(it.checkpoints()[0]))[0]["label"].tolist() == next(it)[0]["label"].tolist()


def test_len_behind_a_checkpoint(files: list[str]) -> None:
    it = DALIClassificationIterator(reading(files), reader_name="reader")
    next(it), next(it)
    again = DALIClassificationIterator(reading(files, it.checkpoints()[0]), reader_name="reader")
    assert len(again) == len(it) == 6
    assert len(list(again)) == 4


def test_until_the_data_ends() -> None:
    def make(checkpoint: bytes | None = None, *, prepare: bool = True) -> Any:
        pipe = Pipeline(2, 1, None, enable_checkpointing=True, checkpoint=checkpoint)
        with pipe:
            batches = [np.full((2, 1), k, np.int32) for k in range(3)]
            pipe.set_outputs(fn.external_source(batches, cycle="raise"))
        return DALIGenericIterator(pipe, ["x"], prepare_first_batch=prepare)

    it = make()
    for _ in range(3):
        checkpoint = it.checkpoints()[0]
        rest = [int(b[0]["x"][0, 0]) for b in make(checkpoint)]
        assert rest == list(range(int(next(it)[0]["x"][0, 0]), 3))
    checkpoint = it.checkpoints()[0]
    assert len(list(make(checkpoint))) == 3  # as DALI does it: the next epoch
    assert len(list(make(checkpoint, prepare=False))) == 0
    with pytest.raises(StopIteration):
        next(it)
    assert len(list(make(it.checkpoints()[0]))) == 3
    assert len(list(make(it.checkpoints()[0], prepare=False))) == 3


def test_what_does_not_belong_together(files: list[str]) -> None:
    def iterator(*pipes: Pipeline, **arguments: Any) -> Any:
        return DALIGenericIterator(
            list(pipes), ["data", "label"], **({"reader_name": "reader"} | arguments)
        )

    it = iterator(reading(files), reading(files))
    next(it)
    early = it.checkpoints()
    next(it)
    late = it.checkpoints()
    iterator(reading(files, late[0]), reading(files, late[1]))
    with pytest.raises(CheckpointError, match="do not belong together"):
        iterator(reading(files, early[0]), reading(files, late[1]))
    with pytest.raises(CheckpointError, match=r"pipelines \[1\] .* at their beginning"):
        iterator(reading(files, early[0]), reading(files))
    with (
        pytest.raises(CheckpointError, match=r"by `size` \(size 11\); .* by a reader"),
        pytest.warns(Warning, match="`size`"),
    ):
        iterator(reading(files, late[0]), reader_name=None, size=11)
    alone = reading(files)
    alone.run()
    with pytest.raises(CheckpointError, match=r"made by `Pipeline.checkpoint`"):
        iterator(reading(files, alone.checkpoint()))
    iterator(reading(files, reading(files).checkpoint()))  # at the beginning
    with pytest.raises(ArgumentValueError, match="not enabled in any pipeline"):
        iterator(reading(files, enable_checkpointing=False)).checkpoints()
    with pytest.raises(ArgumentValueError, match=r"not enabled in the pipelines \[0\]"):
        iterator(reading(files, enable_checkpointing=False), reading(files)).checkpoints()


def test_behind_an_interruption(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    it = DALIClassificationIterator(reading(files), reader_name="reader")
    next(it)

    def interrupted(batches: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(it, "_assemble", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(it)
    with pytest.raises(UsageError, match="Call `reset`"):
        it.checkpoints()
    it.reset()
    again = DALIClassificationIterator(reading(files, it.checkpoints()[0]), reader_name="reader")
    for a, b in zip(again, it, strict=True):
        assert torch.equal(a[0]["label"], b[0]["label"])


class Samples(IterableDataset):  # type: ignore[type-arg]
    """An order of its own for each epoch; divides itself as for a DataLoader."""

    epoch = 0

    def set_epoch(self, epoch: int) -> None:
        self.epoch = epoch

    def __iter__(self) -> Any:
        info = torch.utils.data.get_worker_info()
        part, parts = (0, 1) if info is None else (info.id, info.num_workers)
        order = np.random.default_rng(self.epoch).permutation(20)[part::parts]
        yield from (np.array([k], np.int32) for k in order)


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("before", [0, 3, 6, 11, 17])
@pytest.mark.parametrize("kind", ["map", "iterable", "parts"])
@pytest.mark.parametrize("parallel", [False, "threads", True])
def test_datasets(before: int, kind: str, parallel: Any) -> None:
    def source() -> Any:
        if kind == "map":
            numbers = [np.array([k], np.int32) for k in range(20)]
            return DatasetSource(numbers, 4, shuffle=True, seed=2)
        return IterableDatasetSource(Samples(), 4, num_parts=2 if kind == "parts" else 1)

    arguments: dict[str, Any] = {"batch_info": True} if kind == "map" else {"cycle": "raise"}

    def make(checkpoint: bytes | None = None) -> Pipeline:
        pipe = Pipeline(4, 1, None, enable_checkpointing=True, checkpoint=checkpoint)
        with pipe:
            pipe.set_outputs(fn.external_source(source(), parallel=parallel, **arguments))
        return pipe

    def step(pipe: Pipeline) -> Any:
        try:
            return [int(np.asarray(sample)[0]) for sample in pipe.run()[0]]
        except StopIteration:
            pipe.reset()
            return "end"

    whole = make()
    for _ in range(before):
        step(whole)
    again = make(whole.checkpoint())
    assert [step(again) for _ in range(15)] == [step(whole) for _ in range(15)]


def test_behind_data_that_does_not_come_again() -> None:
    def make(checkpoint: bytes | None = None) -> Any:
        pipe = Pipeline(2, 1, None, enable_checkpointing=True, checkpoint=checkpoint)
        with pipe:
            pipe.set_outputs(fn.external_source([np.full((2, 1), k) for k in range(3)]))
        return DALIGenericIterator(pipe, ["x"])

    it = make()
    assert len(list(it)) == 3
    with pytest.warns(UserWarning, match="This epoch is empty"):
        assert len(list(it)) == 0
    with pytest.warns(UserWarning, match="This epoch is empty"):
        again = make(it.checkpoints()[0])
    for _ in range(2):
        with pytest.warns(UserWarning, match="This epoch is empty"):
            assert len(list(again)) == 0
