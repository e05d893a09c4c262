"""Iterators are stateful as PyTorch's loaders are: `state_dict`, and `load_state_dict` in place."""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np
import pytest
import torch

from headrace import Pipeline, fn, types
from headrace.errors import ArgumentTypeError, ArgumentValueError, CheckpointError
from headrace.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    DatasetSource,
    LastBatchPolicy,
)

CLASSES = [DALIGenericIterator, DALIClassificationIterator, DALIRaggedIterator]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    names = []
    for k in range(11):
        path = folder / f"{k}.bin"
        path.write_bytes(bytes([k]) * 5)
        names.append(str(path))
    return names


def reading(files: list[str], **options: Any) -> Pipeline:
    """Without a seed: every pipeline has an order and noise of its own until it loads a state."""
    shard = {k: options.pop(k) for k in ("num_shards", "shard_id") if k in options}
    pipe = Pipeline(2, 2, None, **({"enable_checkpointing": True} | options))
    with pipe:
        data, label = fn.readers.file(files=files, name="reader", random_shuffle=True, **shard)
        noise = fn.cast(fn.random.uniform(range=[0, 200]), dtype=types.INT32)
        pipe.set_outputs(data, label + 100 * noise)
    return pipe


def iterator(files: list[str], cls: Any = DALIClassificationIterator, **options: Any) -> Any:
    names = [] if cls is DALIClassificationIterator else [["data", "label"]]
    kept = {k: options.pop(k) for k in ("last_batch_policy", "prepare_first_batch") if k in options}
    return cls(reading(files, **options), *names, reader_name="reader", **kept)


def steps(it: Any, count: int) -> list[Any]:
    """So many steps, over the ends of epochs."""
    found: list[Any] = []
    for _ in range(count):
        try:
            found.append([each["label"].tolist() for each in next(it)])
        except StopIteration:
            found.append("end")
            it.reset()
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("cls", CLASSES)
@pytest.mark.parametrize("taken", [0, 1, 4, 8])
def test_another_iterator_goes_on(files: list[str], cls: Any, taken: int) -> None:
    it = iterator(files, cls)
    if taken:
        steps(it, taken)
    state = it.state_dict()
    other = iterator(files, cls)
    steps(other, 3)
    other.load_state_dict(state)
    assert steps(other, 15) == steps(it, 15)


@pytest.mark.parametrize("policy", list(LastBatchPolicy))
def test_an_iterator_goes_back(files: list[str], policy: Any) -> None:
    it = iterator(files, last_batch_policy=policy)
    steps(it, 3)
    state = it.state_dict()
    first = steps(it, 10)
    for _ in range(2):
        it.load_state_dict(state)
        assert it.state_dict() == state
        assert steps(it, 10) == first


def test_the_state_is_plain(files: list[str]) -> None:
    it = iterator(files)
    steps(it, 3)
    state = it.state_dict()
    assert json.loads(json.dumps(state)) == state
    file = io.BytesIO()
    torch.save({"loader": state}, file)
    file.seek(0)
    other = iterator(files)
    other.load_state_dict(torch.load(file, weights_only=True)["loader"])
    assert steps(other, 8) == steps(it, 8)


def test_several_pipelines(files: list[str]) -> None:
    def make() -> Any:
        pipes = [reading(files, num_shards=2, shard_id=k) for k in range(2)]
        return DALIGenericIterator(pipes, ["data", "label"], reader_name="reader")

    it, other = make(), make()
    steps(it, 2)
    other.load_state_dict(it.state_dict())
    assert steps(other, 9) == steps(it, 9)


def test_at_the_end_of_an_epoch(files: list[str]) -> None:
    """As when pipelines are made anew from checkpoints."""
    it, other = iterator(files), iterator(files)
    steps(it, 6)  # the last batch of the epoch, but nobody has asked for more
    other.load_state_dict(it.state_dict())
    assert steps(it, 1) == ["end"]
    assert steps(other, 7) == steps(it, 7)
    late = iterator(files, prepare_first_batch=False)
    it.load_state_dict(other.state_dict())
    late.load_state_dict(it.state_dict())
    assert steps(late, 3) == steps(it, 3)


def test_length_within_an_epoch(files: list[str]) -> None:
    it, other = iterator(files), iterator(files)
    steps(it, 2)
    other.load_state_dict(it.state_dict())
    assert len(other) == len(it) == 6
    assert len(list(other)) == 4


def counted() -> list[Any]:
    return [np.full((2, 1), k, np.int32) for k in range(7)]


class Counter:
    """Keeps its own state."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self) -> Any:
        self.number += 1
        return np.full((2, 1), self.number - 1, np.int32)

    def state_dict(self) -> dict[str, int]:
        return {"number": self.number}

    def load_state_dict(self, state: dict[str, int]) -> None:
        self.number = state["number"]


def generated() -> Any:
    yield from counted()


def by_number(iteration: int) -> Any:
    if iteration >= 7:
        raise StopIteration
    return np.full((2, 1), iteration, np.int32)


SOURCES: dict[str, Any] = {
    "list": (counted, {"cycle": "raise"}),
    "quiet": (counted, {"cycle": "quiet"}),
    "generator function": (lambda: generated, {"cycle": "raise"}),
    "function of the position": (lambda: by_number, {}),
    "own state": (Counter, {}),
    "data set": (
        lambda: DatasetSource(
            [np.array([k], np.int32) for k in range(14)], 2, shuffle=True, seed=3
        ),
        {"batch_info": True},
    ),
}


@pytest.mark.parametrize(
    ("kind", "parallel"),
    [
        (kind, parallel)
        for kind in SOURCES
        for parallel in (False, "threads", True)
        if not (kind == "own state" and parallel)  # workers do not ask sources for a state
    ],
)
def test_sources(kind: str, parallel: Any) -> None:
    make_source, options = SOURCES[kind]

    def make() -> Any:
        pipe = Pipeline(2, 1, None, enable_checkpointing=True)
        with pipe:
            pipe.set_outputs(fn.external_source(make_source(), parallel=parallel, **options))
        return DALIGenericIterator(pipe, ["label"])

    it, other = make(), make()
    steps(it, 3)
    state = it.state_dict()
    expected = steps(it, 6)
    steps(other, 5)
    other.load_state_dict(state)
    assert steps(other, 6) == expected


def test_a_state_that_does_not_fit_changes_nothing(files: list[str]) -> None:
    it = iterator(files, seed=5)
    steps(it, 2)
    fewer = iterator(files[:-1])
    two = DALIGenericIterator(
        [reading(files), reading(files)], ["data", "label"], reader_name="reader"
    )
    damaged = it.state_dict()
    damaged["pipelines"] = [damaged["pipelines"][0].replace('"iteration":2', '"iteration":3')]
    for state, error, match in [
        (fewer.state_dict(), CheckpointError, "`number of samples` is 11 and was 10"),
        (two.state_dict(), CheckpointError, "over 2 pipelines; this one has 1"),
        (damaged, CheckpointError, "damaged"),
        ({"model": 1}, CheckpointError, r"keys \['model'\] is no state"),
        (b"state", ArgumentTypeError, "`state` is a bytes"),
    ]:
        with pytest.raises(error, match=match):
            it.load_state_dict(state)
    twin = iterator(files, seed=5)
    steps(twin, 2)
    assert steps(it, 9) == steps(twin, 9)


def test_checkpointing_must_be_enabled(files: list[str]) -> None:
    it = iterator(files, enable_checkpointing=False)
    for name in ("state_dict", "load_state_dict"):
        assert not hasattr(it, name)
        assert not hasattr(type(it), name), "protocols look at classes, too"
        with pytest.raises(ArgumentValueError, match="enable_checkpointing=True"):
            getattr(it, name)
    mixed = DALIClassificationIterator(
        [reading(files, enable_checkpointing=on) for on in (True, False)], reader_name="reader"
    )
    with pytest.raises(ArgumentValueError, match=r"the pipelines \[1\]"):
        mixed.state_dict()
    with pytest.raises(AttributeError, match="nothing_of_the_kind"):
        it.nothing_of_the_kind  # noqa: B018


class Shouting(DALIClassificationIterator):
    """Of a user, who extends what is there."""

    def state_dict(self) -> dict[str, Any]:
        return {"LOUD": super().state_dict()}


def test_classes_of_users(files: list[str]) -> None:
    it = Shouting(reading(files), reader_name="reader")
    steps(it, 1)
    assert isinstance(it, Shouting)
    assert type(it).__name__ == "Shouting"
    state = it.state_dict()["LOUD"]
    assert type(it) is type(Shouting(reading(files), reader_name="reader")), "one for all"
    other = iterator(files, seed=1)
    other.load_state_dict(state)
    assert steps(other, 7) == steps(it, 7)


def test_after_an_interruption(files: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    it = iterator(files)
    steps(it, 1)
    state = it.state_dict()
    expected = steps(it, 4)

    def interrupted(batches: Any) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(it, "_assemble", interrupted)
        with pytest.raises(KeyboardInterrupt):
            next(it)
    it.load_state_dict(state)
    assert steps(it, 4) == expected
