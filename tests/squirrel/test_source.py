"""`source`: every argument, orders and parts, positions, and what is said when things go wrong."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Pipeline, fn, ops, types
from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BadSampleError,
    DataTypeError,
    ShapeError,
    UsageError,
)
from headrace.plugin import squirrel
from headrace.types import BatchInfo
from tests.squirrel.shards import numbered, packed, write_json_shard, write_shard

COUNTS = [5, 0, 7, 1, 4, 6]
TOTAL = sum(COUNTS)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return numbered(tmp_path / "shards", COUNTS)


def epoch(source: Any, number: int = 0, start: int = 0) -> list[list[int]]:
    """The labels of all batches of an epoch, from batch `start` on."""
    batches = []
    iteration = start
    while True:
        try:
            batch = source(BatchInfo(iteration, number))
        except StopIteration:
            return batches
        batches.append(
            [
                int(v)
                for v in (batch if source.external_source_traits.num_outputs is None else batch[-1])
            ]
        )
        iteration += 1


def until_the_end(pipe: Pipeline) -> Iterator[Any]:
    while True:
        try:
            outputs = pipe.run()
        except StopIteration:
            return
        yield outputs


def labels(batches: list[list[int]]) -> list[int]:
    return [label for batch in batches for label in batch]


def test_a_pipeline_of_it(shards: Path) -> None:
    pipe = Pipeline(batch_size=4, num_threads=2, device_id=None)
    with pipe:
        images, numbers = fn.external_source(squirrel.source(shards, ["image", "label"]))
        pipe.set_outputs(images, numbers)
    for _ in range(2):
        found: list[int] = []
        for images, numbers in until_the_end(pipe):
            for k in range(len(numbers)):
                number = int(np.asarray(numbers.at(k)))
                expected = np.random.default_rng(number).integers(
                    0, 256, (6 + number % 3, 6, 3), np.uint8
                )
                np.testing.assert_array_equal(images.at(k), expected)
                found.append(number)
        assert found == list(range(TOTAL))
        pipe.reset()


def test_the_class_takes_it_too(shards: Path) -> None:
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        source = ops.ExternalSource(source=squirrel.source(shards, ["label"]), num_outputs=1)
        pipe.set_outputs(*source())
    assert [int(np.asarray(v)) for v in pipe.run()[0]] == [0, 1, 2, 3]


def test_one_field_is_no_list(shards: Path) -> None:
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(squirrel.source(shards, "label", dtype=np.int32)))
    (batch,) = pipe.run()
    assert batch.dtype == types.INT32


@pytest.mark.parametrize("last_batch", ["drop", "fill"])
def test_samples_in_place_of_batches(shards: Path, last_batch: str) -> None:
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        source = squirrel.source(shards, "label", last_batch=last_batch)
        pipe.set_outputs(fn.external_source(source, batch=False))
    for _ in range(2):
        found = [int(np.asarray(v)) for (batch,) in until_the_end(pipe) for v in batch]
        expected = list(range(TOTAL))
        assert found == (expected[:20] if last_batch == "drop" else [*expected, TOTAL - 1])
        pipe.reset()


def test_samples_with_a_partial_batch_are_refused(shards: Path) -> None:
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(squirrel.source(shards, "label"), batch=False))
    with pytest.raises(UsageError, match="leave `batch`"):
        pipe.run()


def test_all_tensors_of_the_first_sample_are_the_default(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.gz", [{"b": np.ones(2), "a": b"abc", "c": [1, 2], "d": 2.5}] * 2)
    source = squirrel.source(tmp_path, batch_size=2)
    assert source.fields == ("b", "a", "c", "d")
    batch = source(0)
    assert [v[0].dtype.name for v in batch] == ["float64", "uint8", "int64", "float64"]
    assert batch[1][0].tolist() == list(b"abc")


def test_text_is_refused_with_the_way_out(shards: Path) -> None:
    with pytest.raises(DataTypeError, match=r"'name' holds text .* `fields`"):
        squirrel.source(shards)


@pytest.mark.parametrize("order", ["sequential", "interleave", "shuffle"])
@pytest.mark.parametrize("workers", [1, 3])
def test_every_sample_once(shards: Path, order: str, workers: int) -> None:
    source = squirrel.source(
        shards, "label", order=order, num_workers=workers, batch_size=3, shuffle_buffer=4
    )
    first = labels(epoch(source, 0))
    assert sorted(first) == list(range(TOTAL))
    assert (first == list(range(TOTAL))) == (order == "sequential")
    second = labels(epoch(source, 1))
    assert sorted(second) == list(range(TOTAL))
    assert (second == first) == (order != "shuffle")
    assert labels(epoch(source, 0)) == first


@given(
    counts=st.lists(st.integers(0, 9), min_size=1, max_size=12).filter(lambda c: sum(c) >= 5),
    parts=st.integers(1, 5),
    buffer=st.integers(1, 10),
    seed=st.integers(-(2**63), 2**63),
    number=st.integers(0, 3),
    start=st.integers(0, 6),
    order=st.sampled_from(["sequential", "interleave", "shuffle"]),
)
def test_parts_share_nothing_and_resume_exactly(
    tmp_path_factory: Any,
    counts: list[int],
    parts: int,
    buffer: int,
    seed: int,
    number: int,
    start: int,
    order: str,
) -> None:
    folder = numbered(tmp_path_factory.mktemp("shards"), counts, 1)
    found = []
    for part in range(parts):
        options: dict[str, Any] = {
            "order": order,
            "num_shards": parts,
            "shard_id": part,
            "shuffle_buffer": buffer,
            "seed": seed,
            "batch_size": 2,
            "num_workers": 2,
        }
        source = squirrel.source(folder, "label", **options)
        batches = epoch(source, number)
        found += labels(batches)
        assert len(labels(batches)) == source.epoch_size()
        resumed = squirrel.source(folder, "label", **{**options, "num_workers": 1})
        assert epoch(resumed, number, start) == batches[start:]
    assert sorted(found) == list(range(sum(counts)))


@pytest.mark.parametrize("last_batch", ["fill", "drop"])
@pytest.mark.parametrize("parts", [2, 3, 5])
def test_all_parts_have_equally_many_batches(shards: Path, last_batch: str, parts: int) -> None:
    lengths = set()
    for part in range(parts):
        source = squirrel.source(
            shards, "label", num_shards=parts, shard_id=part, last_batch=last_batch, batch_size=4
        )
        batches = epoch(source)
        assert all(len(batch) == 4 for batch in batches)
        assert epoch(source, 1, len(batches) - 1) == batches[-1:]
        lengths.add(len(batches))
    assert len(lengths) == 1


def test_length_cuts_or_goes_on(shards: Path) -> None:
    short = squirrel.source(shards, "label", length=7, batch_size=3)
    assert epoch(short) == [[0, 1, 2], [3, 4, 5], [6]]
    assert short.epoch_size() == 7
    long = squirrel.source(
        shards, "label", length=2 * TOTAL + 2, batch_size=5, order="shuffle", shuffle_buffer=3
    )
    batches = epoch(long)
    found = labels(batches)
    assert len(found) == 2 * TOTAL + 2
    assert sorted(found[:TOTAL]) == sorted(found[TOTAL : 2 * TOTAL]) == list(range(TOTAL))
    assert epoch(long, 0, 6) == batches[6:]


def test_numbers_of_iterations_will_do(shards: Path) -> None:
    source = squirrel.source(shards, "label", batch_size=9, order="shuffle")
    first = [int(v) for v in source(0)]
    assert [int(v) for v in source(0)] != first  # the next epoch
    resumed = squirrel.source(shards, "label", batch_size=9, order="shuffle")
    assert len(resumed(1)) == 9
    with pytest.raises(ArgumentValueError, match="`batch_size`"):
        squirrel.source(shards, "label")(0)


def test_the_batch_size_must_fit_the_pipeline(shards: Path) -> None:
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(squirrel.source(shards, "label", batch_size=5)))
    with pytest.raises(ArgumentValueError, match="more than the 4"):
        pipe.run()


def test_it_can_be_pickled(shards: Path) -> None:
    source = squirrel.source(shards, "label", batch_size=30)
    source(0)
    assert len(pickle.loads(pickle.dumps(source))(0)) == TOTAL


def test_schema_and_mismatches(tmp_path: Path) -> None:
    samples: list[Any] = [{"x": np.zeros((2, 3), np.float32)} for _ in range(5)]
    samples[2] = {"x": np.zeros((2, 3), np.float64)}
    write_shard(tmp_path / "a.gz", samples)
    with pytest.raises(DataTypeError, match=r"Sample 2 of the shard 'a'.*float64.*float32"):
        squirrel.source(tmp_path, "x", batch_size=9)(0)
    cast = squirrel.source(tmp_path, "x", batch_size=9, on_mismatch="cast")(0)
    assert {v.dtype.name for v in cast} == {"float32"}
    assert {v.dtype.name for v in squirrel.source(tmp_path, "x", batch_size=9, dtype="f2")(0)} == {
        "float16"
    }
    skipping = {"on_mismatch": "skip", "schema": {"x": (np.float32, (None, 3))}, "batch_size": 3}
    source = squirrel.source(tmp_path, "x", **skipping)
    assert [len(source(BatchInfo(k, 0))) for k in range(2)] == [3, 1]
    assert len(source(BatchInfo(1, 0))) == 1  # found again, past what was skipped
    samples[4] = {"x": np.zeros(3, np.float32)}
    write_shard(tmp_path / "a.gz", samples)
    with pytest.raises(ShapeError, match="1 dimensions where others have 2"):
        squirrel.source(tmp_path, "x", batch_size=9, on_mismatch="cast")(0)
    samples[4] = {"y": 1}
    write_shard(tmp_path / "a.gz", samples)
    with pytest.raises(BadSampleError, match=r"Sample 4 .* no field 'x'"):
        squirrel.source(tmp_path, "x", batch_size=9, on_mismatch="cast")(0)
    with pytest.raises(ShapeError, match=r"shape \(2, 3\) where `schema` says \(3, None\)"):
        squirrel.source(tmp_path, "x", schema={"x": (np.float32, (3, None))}, batch_size=1)(0)


def test_big_endian_arrays_are_converted(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.gz", [{"x": np.array([1.0, 2.0], ">f4")}])
    (sample,) = squirrel.source(tmp_path, "x", batch_size=1)(0)
    assert sample.dtype == np.dtype("=f4")
    assert sample.tolist() == [1.0, 2.0]


def test_lines_of_json(tmp_path: Path) -> None:
    write_json_shard(tmp_path / "a.gz", [{"x": np.full((2,), k, np.float32)} for k in range(4)])
    assert [v.tolist() for v in squirrel.source(tmp_path, "x", batch_size=2)(1)] == [[2, 2], [3, 3]]


@pytest.mark.parametrize("order", ["sequential", "interleave", "shuffle"])
def test_read_ahead_is_bounded(tmp_path: Path, order: str) -> None:
    sample = {"x": np.zeros(1000, np.uint8)}
    for shard in range(10):
        write_shard(tmp_path / f"{shard}.gz", [sample] * 40)
    source = squirrel.source(
        tmp_path, "x", batch_size=5, readahead_bytes=20_000, num_workers=3, order=order,
        shuffle_buffer=10,
    )  # fmt: skip
    count = 0
    for iteration in range(80):
        count += len(source(iteration))
        # Each thread may be at one more sample, and the buffer holds some.
        assert source._pass._reader.bytes_ahead <= 20_000 + 3000 + 10_000
    assert count == 400


def test_a_cache_needs_no_inflating(shards: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    source = squirrel.source(shards, "label", batch_size=4, cache=str(cache))
    first = epoch(source)
    source.close()
    assert len(list(cache.iterdir())) == len(COUNTS)
    for path in shards.iterdir():  # what is in them is not looked at again
        status = path.stat()
        path.write_bytes(bytes(status.st_size))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert epoch(squirrel.source(shards, "label", batch_size=4, cache=str(cache))) == first
    numbered(shards, [2])  # written anew
    again = squirrel.source(shards, "label", batch_size=2, cache=str(cache))
    assert epoch(again)[0] == [0, 1]
    again.close()
    assert not [path for path in cache.iterdir() if path.suffix != ".inflated"]


def test_faults(tmp_path: Path) -> None:
    with pytest.raises(ArgumentValueError, match="does not exist"):
        squirrel.source(tmp_path / "missing")
    write_shard(tmp_path / "empty" / "a.gz", [])
    with pytest.raises(ArgumentValueError, match="empty: its shards hold no samples"):
        squirrel.source(tmp_path / "empty")
    write_shard(tmp_path / "list" / "a.gz", [[1, 2]])
    with pytest.raises(ArgumentTypeError, match="only dictionaries have fields"):
        squirrel.source(tmp_path / "list")
    write_shard(tmp_path / "objects" / "a.gz", [{"x": np.array([1, None], object)}])
    with pytest.raises(BadSampleError, match="allow_pickle"):
        squirrel.source(tmp_path / "objects")
    write_shard(tmp_path / "objects" / "a.gz", [{"x": np.array([1, 2], object)}])
    (sample,) = squirrel.source(tmp_path / "objects", "x", allow_pickle=True, batch_size=1)(0)
    assert sample.tolist() == [1, 2]


def test_a_cut_shard_gives_its_good_samples_and_stays_an_error(shards: Path) -> None:
    path = shards / "shard_002.gz"
    path.write_bytes(path.read_bytes()[:-20])
    source = squirrel.source(shards, "label", batch_size=5)
    assert [int(v) for k in range(2) for v in source(BatchInfo(k, 0))] == list(range(10))
    for _ in range(2):
        with pytest.raises(BadSampleError, match=r"shard_002\.gz.*cut"):
            source(BatchInfo(2, 0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "random"}, "`order` is 'random'"),
        ({"last_batch": "pad"}, "`last_batch` is 'pad'"),
        ({"num_shards": 0}, "`num_shards` is 0"),
        ({"num_shards": 2, "shard_id": 2}, "`shard_id` is 2"),
        ({"length": 0}, "`length` is 0"),
        ({"batch_size": -1}, "`batch_size` is -1"),
        ({"num_workers": 0}, "`num_workers` is 0"),
        ({"readahead_bytes": 0}, "`readahead_bytes` is 0"),
        ({"shuffle_buffer": 0}, "`shuffle_buffer` is 0"),
        ({"on_mismatch": "ignore"}, "`on_mismatch` is 'ignore'"),
        ({"fields": []}, "`fields` is empty"),
        ({"fields": ["label", "label"]}, "names a field twice"),
        ({"fields": ["nothing"]}, "no field 'nothing'"),
        ({"fields": 3}, "`fields` must be a name"),
        ({"dtype": "U3"}, "`dtype` <U3"),
        ({"dtype": {"image": "f4"}}, "`dtype` names 'image'"),
        ({"schema": {"image": "f4"}}, "`schema` describes 'image'"),
        ({"schema": {"label": ("i8", "x")}}, "`schema` gives 'x'"),
    ],
)
def test_wrong_arguments(shards: Path, options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        squirrel.source(shards, **{"fields": "label", **options})


def test_no_thread_stays(shards: Path) -> None:
    before = set(threading.enumerate())
    source = squirrel.source(shards, "label", batch_size=2, num_workers=3)
    source(0)
    source.close()
    assert set(threading.enumerate()) <= before
    source(0)
    threads = set(threading.enumerate()) - before
    assert threads
    del source
    gc.collect()
    for thread in threads:
        thread.join(5)
        assert not thread.is_alive()


def test_fewer_samples_than_parts(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.gz", [{"x": 1}])
    source = squirrel.source(tmp_path, "x", num_shards=2, batch_size=1)
    with pytest.raises(ArgumentValueError, match="fewer than the 2 parts"):
        source(0)


def test_bare_arrays_have_no_fields(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.gz", [np.zeros(3)])
    with pytest.raises(ArgumentTypeError, match="type ndarray"):
        squirrel.source(tmp_path)
    assert packed(1) == b"\x01"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_reads_by_itself(shards: Path) -> None:
    source = squirrel.source(shards, "label", batch_size=4, num_workers=2)
    first = epoch(source)
    source(BatchInfo(0, 1))
    context = multiprocessing.get_context("fork")
    queue = context.SimpleQueue()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # forking with threads is what this is about
        process = context.Process(target=lambda: queue.put(epoch(source, 2)))
        process.start()
    assert queue.get() == first
    process.join(20)
    assert process.exitcode == 0
    assert epoch(source, 1) == first


@pytest.mark.parametrize("last_batch", ["partial", "drop", "fill"])
@pytest.mark.parametrize("parts", [1, 2])
def test_the_length_of_an_epoch(shards: Path, last_batch: str, parts: int) -> None:
    for part in range(parts):
        how = {"last_batch": last_batch, "num_shards": parts, "shard_id": part}
        source = squirrel.source(shards, "label", **how)
        if part == 0:
            assert source.count_batches(4) is None, "nothing is read to know it"
        source.epoch_size()
        source.expect_batch_size(4)
        assert source.count_batches(4) == len(epoch(source))
        other = squirrel.source(shards, "label", batch_size=3, **how)
        assert other.count_batches(4) == len(epoch(other)), "it was counted once for all"
    cut = squirrel.source(shards, "label", length=9, batch_size=4, last_batch=last_batch)
    assert cut.count_batches(4) == len(epoch(cut))
    assert squirrel.source(shards, "label", on_mismatch="skip").count_batches(4) is None
