"""Readers of columns: resumed as uninterrupted, each row once, the same order on any engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Pipeline, fn

pa = pytest.importorskip("pyarrow")
h5py = pytest.importorskip("h5py")
pq = pytest.importorskip("pyarrow.parquet")
datasets = pytest.importorskip("datasets")

ROWS, GROUP = 19, 4
ORDERS: list[dict[str, Any]] = [
    {},
    {"random_shuffle": True, "initial_fill": 5},
    {"shuffle_after_epoch": True, "initial_fill": 5},
    {"shuffle_after_epoch": True, "pad_last_batch": True},
]
ENGINES = st.fixed_dictionaries(
    {"num_threads": st.sampled_from([1, 4]), "prefetch_queue_depth": st.integers(1, 3)}
)


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """By its name the arguments of a reader of 19 rows, whose values are their numbers."""
    folder = tmp_path_factory.mktemp("columns")
    table = pa.table({"n": range(ROWS), "data": [bytes([k] * (k + 1)) for k in range(ROWS)]})
    pq.write_table(table, folder / "n.parquet", row_group_size=GROUP)
    with h5py.File(folder / "n.h5", "w") as file:
        file.create_dataset("n", data=np.arange(ROWS), chunks=(GROUP,))
    return {
        "parquet": {"paths": str(folder / "n.parquet"), "columns": ["n", "data"]},
        "arrow": {"source": table, "columns": "n"},
        "hf_dataset": {"dataset": datasets.Dataset(table).shuffle(seed=2), "columns": "n"},
        "hdf5": {"paths": str(folder / "n.h5"), "columns": "n"},
    }


def pipeline(name: str, arguments: Any, batch_size: int, **engine: Any) -> Pipeline:
    pipe = Pipeline(batch_size, device_id=None, seed=5, enable_checkpointing=True, **engine)
    with pipe:
        found = getattr(fn.readers, name)(**arguments, name="reader")
        pipe.set_outputs(*(found if isinstance(found, list) else [found]))
    return pipe


def numbers(pipe: Pipeline, batches: int) -> list[int]:
    return [int(np.asarray(row)) for _ in range(batches) for row in pipe.run()[0]]


NAMES = st.sampled_from(["parquet", "arrow", "hf_dataset", "hdf5"])


@given(NAMES, st.sampled_from(ORDERS), st.integers(1, 4), st.integers(0, 9), ENGINES, ENGINES)
def test_resumed_is_uninterrupted(readers, name, order, size, before, engine, other) -> None:
    arguments = {**readers[name], **order}
    whole = numbers(pipeline(name, arguments, size, **engine), before + 6)
    stopped = pipeline(name, arguments, size, **engine)
    assert numbers(stopped, before) == whole[: before * size]
    resumed = pipeline(name, arguments, size, checkpoint=stopped.checkpoint(), **other)
    assert numbers(resumed, 6) == whole[before * size :]
    if "pad_last_batch" not in order:
        assert sorted(numbers(pipeline(name, arguments, 1), ROWS)) == list(range(ROWS))


@given(NAMES, st.integers(1, 3), st.integers(1, 3), st.integers(0, 5))
def test_another_number_of_shards(readers, name, shards, others, batches) -> None:
    """Each row once an epoch, also where it is shared out among another number of readers."""
    order = {"shuffle_after_epoch": True, "initial_fill": 5}

    def opened(shard: int, count: int, **more: Any) -> Pipeline:
        arguments = {**readers[name], **order, "shard_id": shard, "num_shards": count}
        return pipeline(name, arguments, 1, **more)

    batches = min(batches, ROWS // shards)
    found, checkpoints = [], []
    for shard in range(shards):
        pipe = opened(shard, shards)
        found += numbers(pipe, batches)
        checkpoints.append(pipe.checkpoint())
    left = ROWS - len(found)
    for shard in range(others):
        pipe = opened(shard, others, checkpoint=checkpoints[0])
        found += numbers(pipe, (shard + 1) * left // others - shard * left // others)
    if left:
        assert sorted(found) == list(range(ROWS))
