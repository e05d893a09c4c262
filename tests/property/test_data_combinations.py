"""Ways to read, combined: one order on any engine, resumed as uninterrupted, on any shards."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Pipeline, fn, samplers, tfrecord, types
from tests.support import tf_records

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")

pytestmark = pytest.mark.usefixtures("roomy_caches")

FEW, COUNT = 8, 24
"""Samples of the first reader of a mix; of all."""
LENGTH = 16
ENGINES = [
    {"num_threads": 1},
    {"num_threads": 4, "prefetch_queue_depth": 3},
    {"num_threads": 4, "workers": "processes"},
]
WHOLE = {"shuffle_after_epoch": True, "shuffle_after_epoch_seed": 4}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Files and rows of a table, each of which begins with its number."""
    made = tmp_path_factory.mktemp("combined")
    contents = [bytes([k] * (1 + 5 * k % 13)) for k in range(COUNT)]
    for k, content in enumerate(contents):
        (made / f"{k:02}.bin").write_bytes(content)
    lists = [list(content) for content in contents]
    table = pa.table({"number": range(COUNT), "ids": pa.array(lists, pa.list_(pa.uint8()))})
    every = [
        tf_records.example({"ids": list(content), "number": [content[0]]}) for content in contents
    ]
    tf_records.write(made / "few", every[:FEW])
    tf_records.write(made / "more", every[FEW:])
    feather.write_feather(table, made / "rows.arrow", chunksize=5, compression="uncompressed")
    return made


def _files(folder: Path, numbers: range, **more: Any) -> Any:
    names = [str(folder / f"{k:02}.bin") for k in numbers]
    return fn.readers.file(files=names, labels=list(numbers), **more)


def _sampler(folder: Path, **shard: Any) -> Any:
    return _files(folder, range(COUNT), sampler=samplers.Shuffled(5, seed=3), name="r", **shard)


def _whole(folder: Path, **shard: Any) -> Any:
    return _files(folder, range(COUNT), name="r", **WHOLE, **shard)


def _mix(folder: Path, **shard: Any) -> Any:
    parts = [
        _files(folder, numbers, **WHOLE, **shard) for numbers in (range(FEW), range(FEW, COUNT))
    ]
    return fn.readers.mix(parts, weights=[FEW, COUNT - FEW], mix_seed=2, name="r")[:2]


def _records(folder: Path, **shard: Any) -> Any:
    features = {
        "ids": tfrecord.VarLenFeature(tfrecord.int64, 0),
        "number": tfrecord.FixedLenFeature([1], tfrecord.int64, 0),
    }
    parts = []
    for name in ("few", "more"):
        places = {"path": str(folder / name), "index_path": str(folder / f"{name}.idx")}
        own = fn.readers.tfrecord(**places, features=features, **WHOLE, **shard)
        parts.append(list(own.values()))
    return fn.readers.mix(parts, weights=[FEW, COUNT - FEW], mix_seed=2, name="r")[:2]


def _columns(folder: Path, **shard: Any) -> Any:
    source = str(folder / "rows.arrow")
    ids, number = fn.readers.arrow(source=source, columns=["ids", "number"], **WHOLE, **shard)
    return ids, fn.reshape(number, shape=[1])


def _buckets(folder: Path, **shard: Any) -> Any:
    return _files(folder, range(COUNT), bucket_by="bytes", buckets=3, name="r", **WHOLE, **shard)


def _pack(folder: Path, **shard: Any) -> Any:
    ids = fn.readers.arrow(source=str(folder / "rows.arrow"), columns=["ids"])
    tokens, segments, _ = fn.readers.pack(ids, LENGTH, name="r", **WHOLE, **shard)
    return tokens, segments


KINDS = {
    "sampler": _sampler,
    "whole": _whole,
    "mix": _mix,
    "records": _records,
    "columns": _columns,
    "buckets": _buckets,
    "pack": _pack,
}
CACHED = [name for name in KINDS if name != "pack"]


def make(
    kind: str,
    folder: Path,
    where: Path | None,
    shard: int = 0,
    shards: int = 1,
    batch: int = 3,
    **engine: Any,
) -> Pipeline:
    engine = {"num_threads": 2, "enable_checkpointing": True, **engine}
    pipe = Pipeline(batch, device_id=None, seed=shard, **engine)
    with pipe:
        data, number = KINDS[kind](folder, shard_id=shard, num_shards=shards)
        wider = fn.cast(data, dtype=types.INT32)
        pipe.set_outputs(wider if where is None else fn.cache(wider, where=str(where)), number)
    return pipe


def taken(kind: str, pipe: Pipeline, batches: int) -> list[list[Any]]:
    """The numbers of the samples of each batch, or of a row the sequences in it."""
    found = []
    for _ in range(batches):
        data, numbers = pipe.run()
        rows = [(np.asarray(data.at(k)), np.asarray(numbers.at(k))) for k in range(len(data))]
        if kind == "pack":
            found.append([row[which > 0].tolist() for row, which in rows])
            continue
        for row, number in rows:
            assert row.tolist() == [int(number[0])] * (1 + 5 * int(number[0]) % 13)
        found.append([int(number[0]) for _, number in rows])
    return found


def tokens(kind: str, rows: list[Any]) -> list[int]:
    """All samples that are there, or all elements of rows, in order."""
    return sorted(t for row in rows for t in row) if kind == "pack" else sorted(rows)


def every(kind: str) -> list[int]:
    whole = range(COUNT)
    return [k for k in whole for _ in range(1 + 5 * k % 13)] if kind == "pack" else list(whole)


@pytest.mark.parametrize("kind", KINDS)
def test_one_order_on_any_engine(kind, folder, tmp_path):
    """Each sample once an epoch, with the same seed in the same order, cached or not."""
    size = make(kind, folder, None, batch=1).reader_meta().popitem()[1]["epoch_size"]
    wanted = taken(kind, make(kind, folder, None, num_threads=1), 20)
    rows = [row for batch in wanted for row in batch]
    assert tokens(kind, rows[:size]) == every(kind)
    assert tokens(kind, rows[size : 2 * size]) == every(kind)
    assert rows[:size] != rows[size : 2 * size]
    for engine in ENGINES:
        assert taken(kind, make(kind, folder, None, **engine), 20) == wanted
        if kind in CACHED:
            assert taken(kind, make(kind, folder, tmp_path / "kept", **engine), 20) == wanted


@pytest.mark.parametrize("kind", CACHED)
@settings(max_examples=3)
@given(
    before=st.integers(0, 17),
    engines=st.tuples(st.sampled_from(ENGINES[:2]), st.sampled_from(ENGINES)),
    shards=st.integers(1, 3),
    kept=st.sampled_from(["none", "all", "some"]),
)
def test_caches_resume_as_uninterrupted(kind, folder, before, engines, shards, kept):
    where = folder / "kept"
    shutil.rmtree(where, ignore_errors=True)
    shard = shards - 1
    wanted = taken(kind, make(kind, folder, None, shard, shards), before + 6)
    first = make(kind, folder, where, shard, shards, **engines[0])
    assert taken(kind, first, before) == wanted[:before]
    checkpoint = first.checkpoint()
    del first
    if kept == "none":
        shutil.rmtree(where, ignore_errors=True)
    elif kept == "all":
        taken(kind, make(kind, folder, where), COUNT)
    again = make(kind, folder, where, shard, shards, checkpoint=checkpoint, **engines[1])
    assert taken(kind, again, 6) == wanted[before:]


# An epoch of a mix ends with the first reader that is through its shard: see the test below.
@pytest.mark.parametrize("kind", [kind for kind in CACHED if kind not in ("mix", "records")])
@settings(max_examples=3)
@given(
    shards=st.integers(1, 3),
    others=st.integers(1, 3),
    data=st.data(),
    engine=st.sampled_from(ENGINES),
)
def test_caches_on_other_shards(kind, folder, shards, others, data, engine):
    """The rest of an epoch comes once, whoever has written what is in the cache."""
    where = folder / "kept"
    shutil.rmtree(where, ignore_errors=True)
    batch = 3 if kind == "buckets" else 1
    first = [make(kind, folder, where, k, shards, batch) for k in range(shards)]
    meta = first[0].reader_meta().popitem()[1]
    steps = meta.get("batches", COUNT // shards)
    before = data.draw(st.integers(0, steps - 1))
    seen = [n for pipe in first for own in taken(kind, pipe, before) for n in own]
    saved = first[-1].checkpoint()
    del first
    pipes = [
        make(kind, folder, where, k, others, batch, checkpoint=saved, **engine)
        for k in range(others)
    ]
    if kind == "buckets":
        counts = [pipe.reader_meta("r")["batches_of_epoch"] for pipe in pipes]
        if others == shards:  # nothing is dealt anew: the count is that of the whole epoch
            counts = [count - before for count in counts]
    else:
        left = COUNT - len(seen)
        counts = [(k + 1) * left // others - k * left // others for k in range(others)]
    for pipe, count in zip(pipes, counts, strict=True):
        seen += [n for own in taken(kind, pipe, count) for n in own]
    # Batches of one sample cannot be cut, so that some come again to make shards equal.
    repeated = len(seen) - COUNT
    assert 0 <= repeated < (shards + others if kind == "buckets" else 1)
    assert sorted(set(seen)) == list(range(COUNT))


@settings(max_examples=4)
@given(
    shards=st.integers(1, 3),
    others=st.integers(1, 3),
    before=st.integers(0, 5),
    engine=st.sampled_from(ENGINES),
)
def test_cached_mixes_on_other_shards(folder, shards, others, before, engine):
    """They give what they give without a cache, whatever wrote it."""
    where = folder / "kept"
    shutil.rmtree(where, ignore_errors=True)
    found = []
    for kept in (None, where):
        first = make("mix", folder, kept, 0, shards, 1)
        taken("mix", first, before)
        saved = first.checkpoint()
        pipes = [
            make("mix", folder, kept, k, others, 1, checkpoint=saved, **engine)
            for k in range(others)
        ]
        found.append([taken("mix", pipe, COUNT // others) for pipe in pipes])
    assert found[0] == found[1]
