"""`fn.readers.squirrel`: epochs, parts, padding, shuffling, exact resume, bad samples."""

from __future__ import annotations

import inspect
import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace import Pipeline, fn, ops, types
from headrace.config import cache_folder
from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.support.registry import find
from headrace.plugin.squirrel.reader import SquirrelReader
from tests.squirrel.shards import numbered, write_shard

COUNTS = [5, 0, 7, 1, 4, 6]
TOTAL = sum(COUNTS)


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return numbered(tmp_path / "shards", COUNTS)


def pipeline(path: Path, fields: Any = ("label",), batch_size: int = 4, **arguments: Any) -> Any:
    settings = {k: arguments.pop(k) for k in ("on_bad_sample",) if k in arguments}
    pipe = Pipeline(batch_size, 2, None, seed=arguments.pop("pipeline_seed", 7), **settings)
    with pipe:
        outputs = fn.readers.squirrel(path=path, fields=fields, name="reader", **arguments)
        pipe.set_outputs(*(outputs if isinstance(outputs, list) else [outputs]))
    pipe.build()
    return pipe


def run(pipe: Any, batches: int) -> list[int]:
    return [int(np.asarray(v)) for _ in range(batches) for v in pipe.run()[-1]]


def opened(path: Path, batch_size: int = 4, seed: int = 3, **arguments: Any) -> SquirrelReader:
    schema = find("readers.squirrel")
    args = {name: arg.default for name, arg in schema.args.items()}
    reader = SquirrelReader({**args, "path": str(path), "fields": "label", **arguments})
    reader.open(batch_size, seed)
    return reader


def load(reader: SquirrelReader, entries: list[int]) -> list[int]:
    return [int(reader.index.fetch(entry)[0]) for entry in entries]


def test_values_types_and_sources(shards: Path) -> None:
    pipe = pipeline(shards, ["image", "label"], dtype={"image": types.FLOAT})
    images, labels = pipe.run()
    assert images.dtype == types.FLOAT
    assert labels.dtype == types.INT64
    for k in range(4):
        expected = np.random.default_rng(k).integers(0, 256, (6 + k % 3, 6, 3), np.uint8)
        np.testing.assert_array_equal(images.at(k), expected.astype(np.float32))
    assert images[1].source_info() == f"{shards}/shard_000.gz#1"


def test_epochs_follow_each_other(shards: Path) -> None:
    pipe = pipeline(shards)
    assert run(pipe, 3 * TOTAL // 4) == [k % TOTAL for k in range(3 * TOTAL // 4 * 4)]
    assert pipe.reader_meta("reader") == {
        "epoch_size": TOTAL,
        "epoch_size_padded": TOTAL,
        "number_of_shards": 1,
        "shard_id": 0,
        "pad_last_batch": 0,
        "stick_to_shard": 0,
    }


def test_a_data_set_smaller_than_a_batch(tmp_path: Path) -> None:
    numbered(tmp_path, [1, 2])
    for shuffle in (False, True):
        found = run(pipeline(tmp_path, batch_size=16, random_shuffle=shuffle), 3)
        assert [sorted(found[k : k + 3]) for k in range(0, 48, 3)] == [[0, 1, 2]] * 16


def test_padding_repeats_the_last_sample(shards: Path) -> None:
    pipe = pipeline(shards, pad_last_batch=True)
    expected = [*range(TOTAL), TOTAL - 1]
    assert run(pipe, 12) == expected * 2


@pytest.mark.parametrize("stick", [False, True])
@pytest.mark.parametrize("pad", [False, True])
def test_parts_hold_everything_once(shards: Path, stick: bool, pad: bool) -> None:
    for shuffle in (False, True):
        for number in range(3):
            epoch: list[list[int]] = []
            for part in range(4):
                reader = opened(
                    shards,
                    1,
                    seed=part,  # ranks need not agree on it
                    shard_id=part,
                    num_shards=4,
                    stick_to_shard=stick,
                    pad_last_batch=pad,
                    random_shuffle=shuffle,
                    initial_fill=3,
                )
                for _ in range(number):
                    load(reader, reader.draw(1))
                    reader.next_epoch(reader.epoch + 1)
                    assert reader.epoch
                found: list[int] = []
                before = reader.epoch
                while reader.epoch == before and (not found or len(found) < 6):
                    if len(found) == len(reader._order.entries_of(before, reader._order.shard)):
                        break
                    found += load(reader, reader.draw(1))
                epoch.append(found)
            assert sorted(itertools.chain(*epoch)) == list(range(TOTAL))


def test_a_new_order_every_epoch_and_the_same_every_run(shards: Path) -> None:
    options = {"random_shuffle": True, "initial_fill": 5, "pad_last_batch": True}
    found = run(pipeline(shards, batch_size=1, **options), 2 * TOTAL)
    first, second = found[:TOTAL], found[TOTAL:]
    assert sorted(first) == sorted(second) == list(range(TOTAL))
    assert first != second
    assert run(pipeline(shards, batch_size=1, **options), TOTAL) == first
    other = run(pipeline(shards, batch_size=1, pipeline_seed=8, **options), TOTAL)
    assert other != first


@given(
    counts=st.lists(st.integers(0, 6), min_size=1, max_size=8).filter(lambda c: sum(c) >= 3),
    parts=st.integers(1, 3),
    shuffle=st.booleans(),
    pad=st.booleans(),
    stick=st.booleans(),
    before=st.integers(0, 9),
    ahead=st.integers(0, 4),
)
def test_resume_goes_on_as_if_nothing_had_been(
    tmp_path_factory: Any,
    counts: list[int],
    parts: int,
    shuffle: bool,
    pad: bool,
    stick: bool,
    before: int,
    ahead: int,
) -> None:
    folder = numbered(tmp_path_factory.mktemp("shards"), counts, 1)

    def reader() -> SquirrelReader:
        return opened(
            folder,
            2,
            num_shards=parts,
            random_shuffle=shuffle,
            initial_fill=3,
            pad_last_batch=pad,
            stick_to_shard=stick,
            num_workers=2,
        )

    whole = reader()
    for _ in range(before):
        load(whole, whole.draw(2))
    state = whole.state()
    expected = [load(whole, whole.draw(2)) for _ in range(6)]
    resumed = reader()
    resumed.restore(state)
    assert [load(resumed, resumed.draw(2)) for _ in range(6)] == expected
    # Back to where it was, with batches drawn that nobody has loaded.
    for _ in range(ahead):
        whole.draw(2)
    whole.restore(state)
    assert [load(whole, whole.draw(2)) for _ in range(6)] == expected


def test_batches_may_be_loaded_in_any_order(shards: Path) -> None:
    reader = opened(shards, readahead_bytes=1, num_workers=1)
    drawn = [reader.draw(4) for _ in range(12)]  # two epochs and more, nothing loaded
    for entries in reversed(drawn):
        assert load(reader, entries[::-1]) == entries[::-1]
    assert load(reader, [3, 3, 17]) == [3, 3, 17]  # once more, and never drawn


def test_bad_samples(shards: Path) -> None:
    path = shards / "shard_002.gz"
    path.write_bytes(path.read_bytes()[:-20])
    with pytest.raises(BadSampleError, match=r"shard_002\.gz.*cut"):
        run(pipeline(shards), 6)
    good = opened(shards).meta()["epoch_size"] - 1
    found = run(pipeline(shards, on_bad_sample="skip"), 6)
    assert len(set(found)) == good
    assert set(range(5)) <= set(found)
    assert not list(cache_folder("squirrel").glob("*"))  # not worth to be remembered


def test_counts_are_remembered(shards: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(shards)
    assert len(list(cache_folder("squirrel").iterdir())) == 1
    with monkeypatch.context() as patch:
        patch.setattr("headrace.plugin.squirrel.dataset.ShardFolder.count", None)
        assert opened(shards).meta()["epoch_size"] == TOTAL
    next(cache_folder("squirrel").iterdir()).write_text("{")
    assert opened(shards).meta()["epoch_size"] == TOTAL
    monkeypatch.setenv("HEADRACE_CACHE_DIR", "/dev/null/nowhere")
    assert opened(shards).meta()["epoch_size"] == TOTAL


def test_a_shard_written_anew_behind_its_back(shards: Path) -> None:
    reader = opened(shards)
    write_shard(shards / "shard_005.gz", [{"label": np.int64(0)}])
    with pytest.raises(BadSampleError, match="written anew"):
        load(reader, reader.draw(TOTAL))


def test_fields_default_to_all(tmp_path: Path) -> None:
    write_shard(tmp_path / "a.gz", [{"x": np.zeros(2), "y": 1}] * 2)
    pipe = pipeline(tmp_path, None, batch_size=2)
    assert len(pipe.run()) == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_shards": 0}, "`num_shards` is 0"),
        ({"num_shards": 99}, "requested number of shards: 99"),
        ({"num_shards": 2, "shard_id": 2}, "`shard_id` is 2"),
        ({"initial_fill": 0}, "`initial_fill` is 0"),
        ({"num_workers": 0}, "`num_workers` is 0"),
        ({"readahead_bytes": 0}, "`readahead_bytes` is 0"),
        ({"prefetch_queue_depth": 0}, "`prefetch_queue_depth` is 0"),
    ],
)
def test_wrong_arguments(shards: Path, arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ArgumentValueError, match=message):
        pipeline(shards, **arguments)


def test_a_missing_data_set(tmp_path: Path) -> None:
    with pytest.raises(ArgumentValueError, match="does not exist"):
        pipeline(tmp_path / "missing")
    with pytest.raises(ArgumentValueError, match="`path` is a int"):
        pipeline(3)  # type: ignore[arg-type]


def test_all_faces(shards: Path) -> None:
    assert "squirrel" in dir(fn.readers)
    assert "path" in inspect.signature(fn.readers.squirrel).parameters
    pipe = Pipeline(4, 1, None)
    with pipe:
        reader = ops.readers.Squirrel(path=str(shards), fields="label")
        pipe.set_outputs(reader())
    assert [int(np.asarray(v)) for v in pipe.run()[0]] == [0, 1, 2, 3]


def test_the_iterator_of_pytorch(shards: Path) -> None:
    pytest.importorskip("torch")
    from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

    pipe = pipeline(shards, random_shuffle=True, initial_fill=4, pad_last_batch=True)
    iterator = DALIGenericIterator(
        pipe, ["label"], reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL
    )
    for _ in range(3):
        found = [int(v) for batch in iterator for v in batch[0]["label"]]
        assert sorted(found) == list(range(TOTAL))
    for _ in iterator:
        break
    iterator.reset()
    assert sorted(int(v) for batch in iterator for v in batch[0]["label"]) == list(range(TOTAL))
