"""Squirrel's own objects: as plain sources, and in `source`."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from squirrel.catalog import Source as CatalogEntry
from squirrel.catalog.catalog import Catalog
from squirrel.driver import JsonlDriver, MessagepackDriver
from squirrel.iterstream import Composable, IterableSource

from headrace import Pipeline, fn
from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BadSampleError,
    DataTypeError,
    UsageError,
)
from headrace.operators.support.external.adapted import adapted
from headrace.plugin import squirrel
from headrace.plugin.squirrel import stream
from headrace.plugin.squirrel.chain import with_parallel_head
from tests.squirrel.shards import numbered, write_shard

COUNTS = [5, 0, 7, 1, 4, 6]
TOTAL = sum(COUNTS)
OPTIONS: dict[str, Any] = {"workers": 2, "readahead_bytes": 1 << 20, "allow_pickle": False}


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    return numbered(tmp_path / "shards", COUNTS)


def driver(folder: Path) -> MessagepackDriver:
    return MessagepackDriver(str(folder))


def as_tuple(sample: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(sample["image"], np.float32), np.array(sample["label"])


def same(one: Any, other: Any) -> None:
    if isinstance(other, dict):
        assert list(one) == list(other)
        for key in other:
            same(one[key], other[key])
    elif isinstance(other, (list, tuple)):
        assert type(one) is type(other)
        assert len(one) == len(other)
        for a, b in zip(one, other, strict=True):
            same(a, b)
    else:
        assert type(one) is type(other)
        np.testing.assert_array_equal(one, other)
        assert getattr(one, "dtype", None) == getattr(other, "dtype", None)


CHAINS: dict[str, Any] = {
    "nothing": lambda d: d.get_iter(),
    "one worker": lambda d: d.get_iter(max_workers=1),
    "map": lambda d: d.get_iter().map(as_tuple),
    "filter": lambda d: d.get_iter().filter(lambda s: s["label"] % 2).map(as_tuple),
    "batched": lambda d: d.get_iter().batched(4),
    "collated": lambda d: d.get_iter().map(as_tuple).batched(4, collation_fn=list),
    "rest": lambda d: d.get_iter().batched(4, drop_last_if_not_full=False),
    "shuffled": lambda d: d.get_iter(
        shuffle_key_buffer=9,
        key_shuffle_kwargs={"seed": 1},
        shuffle_item_buffer=5,
        item_shuffle_kwargs={"seed": 2},
    ),
    "keys": lambda d: d.get_iter(keys_iterable=["shard_002", "shard_000", "shard_002"]),
    "key hooks": lambda d: d.get_iter(key_hooks=[lambda keys: iter(list(keys)[::-1])]),
    "async map": lambda d: d.get_iter().async_map(as_tuple, 3, 2),
    "take": lambda d: d.get_iter().take(6),
    "loop": lambda d: d.get_iter().map(as_tuple).loop(2),
    "sliding": lambda d: d.get_iter().sliding(3, deepcopy=False),
    "zip index": lambda d: d.get_iter().zip_index(),
    "unpacker": lambda d: d.get_iter(get_kwargs={"unpacker_kwargs": {"max_buffer_size": 0}}),
}


@pytest.mark.parametrize("name", CHAINS)
def test_chains_give_what_squirrel_gives(shards: Path, name: str) -> None:
    found = with_parallel_head(CHAINS[name](driver(shards)), **OPTIONS)
    assert found is not None
    expected = list(CHAINS[name](driver(shards)))
    for _ in range(2 if name != "zip index" else 1):
        items = list(found[0])
        same(items, expected)
    same(list(stream.ComposableStream(CHAINS[name](driver(shards)))), expected)


class _Own(Composable):
    def __iter__(self) -> Iterator[Any]:
        return iter(self.source)


class _OwnDriver(MessagepackDriver):
    def get(self, key: str, **kwargs: Any) -> Any:
        return iter([key])


@pytest.mark.parametrize(
    "make",
    [
        lambda d: IterableSource([1, 2]),
        lambda d: d.get_iter().compose(_Own),
        lambda d: d.get_iter(flatten=False),
        lambda d: d.get_iter(get_kwargs={"unpacker_kwargs": {"use_list": True}}),
        lambda d: _OwnDriver(d.url).get_iter(),
    ],
    ids=["other source", "own step", "not joined", "lists", "own driver"],
)
def test_others_are_left_alone(shards: Path, make: Any) -> None:
    assert with_parallel_head(make(driver(shards)), **OPTIONS) is None


def test_json_is_recognised(tmp_path: Path) -> None:
    store = JsonlDriver(str(tmp_path)).store
    for shard in range(3):
        store.set([{"x": shard, "y": [1, 2]}] * 2, key=f"s{shard}")
    found = with_parallel_head(JsonlDriver(str(tmp_path)).get_iter(), **OPTIONS)
    assert found is not None
    assert list(found[0]) == list(JsonlDriver(str(tmp_path)).get_iter())


def test_what_squirrel_writes_is_read(tmp_path: Path) -> None:
    sample = {
        "a": np.arange(6, dtype=np.float32).reshape(2, 3),
        "b": np.float64(2.5),
        "c": np.array(["x", "yz"]),
        "d": [1, (2, "ü")],
        "e": b"\x00" * 40,
        "f": np.array([(1, 2.0)], dtype=[("i", "<i4"), ("x", "<f8")]),
        "g": 1 + 2j,
        "h": None,
        "i": {"deep": {"er": np.ones((0, 3))}},
        "j": True,
    }
    driver(tmp_path).store.set([sample, sample], key="one")
    found = with_parallel_head(driver(tmp_path).get_iter(), **OPTIONS)
    assert found is not None
    same(list(found[0]), list(driver(tmp_path).get_iter()))


def tutorial(source: Any, batch_size: int = 4, **arguments: Any) -> Any:
    pipe = Pipeline(batch_size, 2, None)
    with pipe:
        pipe.set_outputs(*fn.external_source(source=source, num_outputs=2, **arguments))
    return pipe


def labels(pipe: Any) -> list[int]:
    found = []
    while True:
        try:
            found += [int(np.asarray(v)) for v in pipe.run()[1]]
        except StopIteration:
            return found


@pytest.mark.filterwarnings("ignore:This epoch is empty")
@pytest.mark.parametrize("cycle", ["raise", None])
def test_a_plain_source_has_dalis_epochs(shards: Path, cycle: Any) -> None:
    pipe = tutorial(driver(shards).get_iter().map(as_tuple), batch=False, cycle=cycle)
    for number in range(2):
        expected = list(range(20)) if cycle == "raise" or not number else []
        assert labels(pipe) == expected
        pipe.reset()


def test_two_pipelines_of_one_composable(shards: Path) -> None:
    items = driver(shards).get_iter().map(as_tuple)
    pipes = [tutorial(items, batch=False), tutorial(items, batch=False)]
    both = [[int(np.asarray(v)) for pipe in pipes for v in pipe.run()[1]] for _ in range(5)]
    assert [batch[:4] for batch in both] == [batch[4:] for batch in both]
    assert sorted(v for batch in both for v in batch[:4]) == list(range(20))


def test_two_iterators_that_would_share_a_queue(shards: Path) -> None:
    items = driver(shards).get_iter().compose(_Own).map(as_tuple)
    first, second = iter(adapted(items)), iter(adapted(items))
    next(first)
    with pytest.raises(UsageError, match="Two iterators of one Composable"):
        next(second)
    del first, second
    assert len(list(adapted(items))) == TOTAL
    assert len(list(adapted(items))) == TOTAL


def test_dictionaries_and_text_are_refused_with_the_way_out(shards: Path) -> None:
    with pytest.raises(DataTypeError, match=r"'image', 'label'.*fields=.*`\.map\("):
        tutorial(driver(shards).get_iter(), batch=False).run()
    with pytest.raises(DataTypeError, match="dictionaries"):
        tutorial(driver(shards).get_iter().batched(4)).run()
    items = driver(shards).get_iter().map(lambda s: (s["image"], s["name"]))
    with pytest.raises(DataTypeError, match="text"):
        tutorial(items, batch=False).run()


def test_an_exhausted_composable(shards: Path) -> None:
    once = IterableSource(iter([(np.zeros(2), np.int64(k)) for k in range(4)]))
    pipe = tutorial(once, batch=False, cycle="raise")
    assert labels(pipe) == [0, 1, 2, 3]
    pipe.reset()
    with pytest.raises(UsageError, match="gave 4 items the first time and none now"):
        pipe.run()


def test_missing_and_empty_data_sets(tmp_path: Path) -> None:
    with pytest.raises(ArgumentValueError, match="does not exist"):
        tutorial(driver(tmp_path / "missing").get_iter().map(as_tuple), batch=False).run()
    write_shard(tmp_path / "empty" / "a.gz", [])
    with pytest.raises(ArgumentValueError, match="is empty"):
        tutorial(driver(tmp_path / "empty").get_iter().map(as_tuple), batch=False).run()
    with pytest.raises(ArgumentValueError, match="not a single item"):
        tutorial(IterableSource([]), batch=False).run()


def test_pickles_and_byte_order(tmp_path: Path) -> None:
    write_shard(tmp_path / "objects" / "a.gz", [{"image": np.array([1, None], object), "label": 1}])
    with pytest.raises(BadSampleError, match="allow_pickle"):
        tutorial(driver(tmp_path / "objects").get_iter().map(as_tuple), batch=False).run()
    big = IterableSource([(np.array([1.0, 2.0], ">f4"), np.array(1, ">i8"))] * 4)
    images, numbers = tutorial(big, batch=False).run()
    assert np.asarray(images.at(0)).tolist() == [1.0, 2.0]
    assert int(np.asarray(numbers.at(0))) == 1


def test_errors_of_the_users_functions_come_through(shards: Path) -> None:
    def fails(sample: Any) -> Any:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        tutorial(driver(shards).get_iter().map(fails), batch=False).run()

    def keys(stream: Any) -> Any:
        raise OSError("no keys")
        yield

    items = driver(shards).get_iter(key_hooks=[keys]).map(as_tuple)
    with pytest.raises(OSError, match="no keys"):
        tutorial(items, batch=False).run()


def test_without_the_plugin_it_is_left_as_it_is(
    shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    items = driver(shards).get_iter()
    monkeypatch.setitem(sys.modules, "headrace.plugin.squirrel", None)
    assert adapted(items) is items
    assert adapted([1]) == [1]


# -- `source` of them ----------------------------------------------------------------------------


def drawn(source: Any) -> list[int]:
    found = []
    for iteration in range(99):
        try:
            found += [int(v) for v in source(iteration)[-1]]
        except StopIteration:
            return found
    raise AssertionError


def test_drivers_and_catalogues(shards: Path) -> None:
    catalog = Catalog()
    catalog["photos"] = CatalogEntry("messagepack", driver_kwargs={"url": str(shards)})
    for data in (driver(shards), catalog["photos"]):
        source = squirrel.source(data, ["image", "label"], batch_size=4, num_shards=2, shard_id=1)
        assert drawn(source) == list(range(11, TOTAL))
    with pytest.raises(ArgumentValueError, match="has its own"):
        squirrel.source(driver(shards), storage_options={"protocol": "file"})


def test_composables(shards: Path) -> None:
    items = driver(shards).get_iter().filter(lambda s: s["label"] > 2)
    source = squirrel.source(items, ["image", "label"], batch_size=4)
    assert source.fields == ("image", "label")
    for _ in range(2):
        assert drawn(source) == list(range(3, TOTAL))
    assert drawn(squirrel.source(items.map(as_tuple), batch_size=4, last_batch="drop")) == list(
        range(3, TOTAL)
    )
    short = squirrel.source(items, ["label"], length=3, batch_size=2)
    assert drawn(short) == [3, 4, 5]
    with pytest.raises(ArgumentValueError, match="give `length`"):
        source.epoch_size()


def test_other_drivers(tmp_path: Path) -> None:
    numbered(tmp_path, [3, 2])

    class Twice(MessagepackDriver):
        def get(self, key: str, **kwargs: Any) -> Any:
            for sample in super().get(key, **kwargs):
                yield {"label": sample["label"] * 2}

    assert drawn(squirrel.source(Twice(str(tmp_path)), ["label"], batch_size=2)) == [0, 2, 4, 6, 8]


def test_what_a_composable_cannot_do(shards: Path) -> None:
    items = driver(shards).get_iter()
    for options in ({"order": "shuffle"}, {"num_shards": 2}, {"cache": "x"}):
        with pytest.raises(ArgumentValueError, match="an order of its own"):
            squirrel.source(items, "label", **options)
    with pytest.raises(ArgumentValueError, match="makes batches itself"):
        squirrel.source(items.batched(2), "label")
    with pytest.raises(ArgumentTypeError, match="`data` is a list"):
        squirrel.source([1, 2])
