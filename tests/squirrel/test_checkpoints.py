"""Pipelines over Squirrel's data sets are resumed exactly."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.errors import CheckpointError
from headrace.plugin import squirrel
from tests.squirrel.shards import numbered

COUNTS = [5, 0, 7, 1, 4, 6]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return numbered(tmp_path / "shards", COUNTS)


def labels(pipe: Pipeline, batches: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(batches):
        try:
            batch = pipe.run()[0]
        except StopIteration:
            pipe.reset()
            found.append("end")
        else:
            found.append([int(np.asarray(sample).ravel()[0]) for sample in batch])
    return found


def pipeline(make: Any, checkpoint: bytes | None = None, **engine: Any) -> Pipeline:
    pipe = Pipeline(
        4, 2, None, enable_checkpointing=True, checkpoint=checkpoint, **{"seed": 3, **engine}
    )
    with pipe:
        pipe.set_outputs(make())
    return pipe


@pytest.mark.sweep
@pytest.mark.parametrize("before", [0, 1, 5, 6, 7, 15])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"order": "interleave"},
        {"order": "shuffle", "shuffle_buffer": 5, "seed": 2},
        {"order": "shuffle", "num_shards": 2, "shard_id": 1, "last_batch": "fill"},
        {"last_batch": "drop", "length": 30},
    ],
    ids=str,
)
def test_sources(shards: Path, arguments: dict[str, Any], before: int) -> None:
    def make() -> Any:
        return fn.external_source(source=squirrel.source(str(shards), fields="label", **arguments))

    whole = pipeline(make)
    labels(whole, before)
    again = pipeline(make, whole.checkpoint(), prefetch_queue_depth=4)
    assert labels(again, 16) == labels(whole, 16)


@pytest.mark.sweep
@pytest.mark.parametrize("before", [0, 1, 5, 6, 15])
@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"random_shuffle": True, "initial_fill": 4},
        {"num_shards": 2, "shard_id": 1, "pad_last_batch": True, "random_shuffle": True},
    ],
    ids=str,
)
def test_readers(shards: Path, arguments: dict[str, Any], before: int) -> None:
    def make() -> Any:
        return fn.readers.squirrel(path=str(shards), fields=["label"], name="R", **arguments)

    whole = pipeline(make)
    labels(whole, before)
    # The window's order follows from the seed, which is the checkpoint's.
    again = pipeline(make, whole.checkpoint(), seed=99)
    assert labels(again, 16) == labels(whole, 16)


def test_another_order_is_refused(shards: Path) -> None:
    def make(seed: int) -> Any:
        return fn.readers.squirrel(
            path=str(shards), fields=["label"], random_shuffle=True, shuffle_seed=seed
        )

    whole = pipeline(lambda: make(1))
    with pytest.raises(CheckpointError, match="`shuffle_seed` is 2 and was 1"):
        pipeline(lambda: make(2), whole.checkpoint()).build()
