"""`readers.mix`: exact proportions, each reader's own order, resumed as uninterrupted."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, errors, fn
from headrace.config import WORKERS
from headrace.types import INT32
from tests.support.images import encoded

SIZES = (7, 12, 30)
ENGINES = st.fixed_dictionaries(
    {"num_threads": st.sampled_from([1, 4]), "prefetch_queue_depth": st.integers(1, 3)}
)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    """For each reader its files, whose first byte is that of the reader, and the second theirs."""
    folder = tmp_path_factory.mktemp("mixed")
    found = []
    for reader, size in enumerate(SIZES):
        found.append([str(folder / f"{reader}-{k}.bin") for k in range(size)])
        for k, path in enumerate(found[-1]):
            with open(path, "wb") as file:
                file.write(bytes([reader, k]))
    return found


def mixed(files: Any, order: dict[str, Any] | None = None, **arguments: Any) -> list[Any]:
    readers = [fn.readers.file(files=names, seed=3, **(order or {})) for names in files]
    return list(fn.readers.mix(readers, name="mix", **arguments))


def pipeline(
    files: Any,
    size: int,
    order: dict[str, Any] | None = None,
    *,
    engine: Any = None,
    **arguments: Any,
) -> Pipeline:
    pipe = Pipeline(
        size, device_id=None, seed=5, enable_checkpointing=True, **(engine or {"num_threads": 2})
    )
    with pipe:
        pipe.set_outputs(*mixed(files, order, **arguments))
    return pipe


def drawn(pipe: Pipeline, batches: int) -> list[tuple[int, int]]:
    """Of each sample its reader and its number, which its label is, too."""
    found = []
    for _ in range(batches):
        data, labels, readers = pipe.run()
        for k in range(len(data)):
            reader, number = np.asarray(data[k]).tolist()
            assert int(readers.at(k)) == reader
            assert int(labels.at(k)[0]) == number
            assert data.source_info()[k].endswith(f"{reader}-{number}.bin")
            found.append((reader, number))
    return found


def examples(few: int) -> settings:
    """As many as the profile says, or a few where each pipeline starts worker processes."""
    return settings(max_examples=few) if WORKERS.value() == "processes" else settings()


WEIGHTS = st.sampled_from([None, [1, 2, 5], [0.2, 0.7, 0.1], [1, 0, 1]])
STOPS = st.sampled_from(["first", "all", "never"])
ORDERS = st.sampled_from(
    [
        {},
        {"random_shuffle": True, "initial_fill": 4},
        {"shuffle_after_epoch": True},
    ]
)


@examples(2)
@given(WEIGHTS, st.sampled_from(["first", "all"]), ORDERS, st.integers(0, 9))
def test_exact_proportions(files, weights, stop, order, seed) -> None:
    """An epoch has the limiting reader's samples once each, and the others in proportion."""
    pipe = pipeline(files, 1, order, weights=weights, stop=stop, mix_seed=seed)
    size = pipe.reader_meta("mix")["epoch_size"]
    given_weights = weights or [1, 1, 1]
    lasts = [n / w for n, w in zip(SIZES, given_weights, strict=True) if w]
    bound = (min if stop == "first" else max)(lasts)
    limiting = next(k for k, w in enumerate(given_weights) if w and SIZES[k] / w == bound)
    epochs = [drawn(pipe, size) for _ in range(2)]
    for epoch in epochs:
        counts = Counter(reader for reader, _ in epoch)
        for reader, weight in enumerate(given_weights):
            assert abs(counts[reader] - bound * weight) < 1
        numbers = [number for reader, number in epoch if reader == limiting]
        assert sorted(numbers) == list(range(SIZES[limiting]))
    assert [r for r, _ in epochs[0]] != [r for r, _ in epochs[1]] or size < 8
    # Each reader goes on where it was: what comes is its own order.
    for reader, names in enumerate(files):
        own = [number for epoch in epochs for r, number in epoch if r == reader]
        alone = Pipeline(1, 1, None, enable_checkpointing=True, workers="threads")
        with alone:
            alone.set_outputs(fn.readers.file(files=names, seed=3, **order)[0])
        assert own == [int(np.asarray(alone.run()[0][0])[1]) for _ in own]


@examples(4)
@given(WEIGHTS, STOPS, ORDERS, st.integers(1, 5), st.integers(0, 12), ENGINES, ENGINES)
def test_resumed_is_uninterrupted(files, weights, stop, order, size, before, one, other) -> None:
    arguments: dict[str, Any] = {"weights": weights, "stop": stop}
    whole = drawn(pipeline(files, size, order, engine=one, **arguments), before + 8)
    stopped = pipeline(files, size, order, engine=one, **arguments)
    assert drawn(stopped, before) == whole[: before * size]
    engine = {**other, "checkpoint": stopped.checkpoint()}
    assert (
        drawn(pipeline(files, size, order, engine=engine, **arguments), 8) == whole[before * size :]
    )


@examples(3)
@given(
    st.integers(1, 3), st.integers(1, 3), st.integers(1, 6), st.sampled_from([[1, 2, 5], [3, 1, 1]])
)
def test_another_number_of_shards(files, shards, others, batches, weights) -> None:
    """The rest of an epoch is shared out anew: the limiting reader's samples come once each."""
    order = {"shuffle_after_epoch": True}
    lasts = [size / weight for size, weight in zip(SIZES, weights, strict=True)]
    limiting = lasts.index(min(lasts))

    def opened(shard: int, count: int, **engine: Any) -> Pipeline:
        own = {**order, "shard_id": shard, "num_shards": count}
        return pipeline(files, 1, own, engine={"num_threads": 1, **engine}, weights=weights)

    found, checkpoint = [], None
    for shard in range(shards):
        pipe = opened(shard, shards)
        size = pipe.reader_meta("mix")["epoch_size"] // shards
        found += drawn(pipe, min(batches, size))
        checkpoint = checkpoint or pipe.checkpoint()
    left = size * shards - len(found)
    for shard in range(others):
        pipe = opened(shard, others, checkpoint=checkpoint)
        found += drawn(pipe, (shard + 1) * left // others - shard * left // others)
    numbers = [number for reader, number in found if reader == limiting]
    assert len(numbers) == len(set(numbers))
    assert SIZES[limiting] - len(numbers) < shards


@given(WEIGHTS, STOPS, ORDERS, st.lists(st.integers(1, 9), min_size=3, max_size=9))
def test_a_state_tells_where_the_reader_was(files, weights, stop, order, sizes) -> None:
    """Also where it is looked at after other batches were drawn, over the ends of epochs."""

    def opened() -> Any:
        pipe = Pipeline(1, 1, None)
        with pipe:
            node = mixed(files, order, weights=weights, stop=stop)[0].source
        reader = node.schema.cls(node.args)
        reader.checkpointing = True
        reader.open(1, 5)
        return reader

    reader = opened()
    found = [(reader.state(), reader.draw(size)) for size in sizes]
    last = reader.state()
    for state, drawn in found[::-1]:
        other = opened()
        other.restore(json.loads(json.dumps(dict(state))))
        assert other.draw(len(drawn)) == drawn
    other = opened()
    for size in sizes:  # and nobody asks
        other.draw(size)
    assert dict(last) == dict(other.state())


def test_weights_by_epoch_and_after_a_checkpoint(files) -> None:
    def weights(epoch: int) -> list[float]:
        return [1, 1, 1] if epoch == 0 else [0, 0, 1]

    pipe = pipeline(files, 1, weights=weights)
    size = pipe.reader_meta("mix")["epoch_size"]
    assert size == 21
    assert Counter(r for r, _ in drawn(pipe, size)) == {0: 7, 1: 7, 2: 7}
    assert Counter(r for r, _ in drawn(pipe, 5)) == {2: 5}
    engine = {"num_threads": 1, "checkpoint": pipe.checkpoint()}
    changed = pipeline(files, 1, engine=engine, weights=[0, 1, 0])
    # Reader 1 goes on where it was.
    assert drawn(changed, 6) == [(1, number) for number in (7, 8, 9, 10, 11, 0)]


def test_one_engine_or_another(files, tmp_path) -> None:
    """The same bytes with threads and with processes, with a parser in one reader and bad files."""
    arrays, images = [], []
    for k in range(6):
        np.save(tmp_path / f"{k}.npy", np.full((k + 1,), k, np.uint8))
        arrays.append(str(tmp_path / f"{k}.npy"))
        images.append(str(tmp_path / f"{k}.jpg"))
        (tmp_path / f"{k}.jpg").write_bytes(encoded(20 + k, 20, seed=k) if k != 2 else b"bad")
    (tmp_path / "3.npy").write_bytes(b"no array")
    found = []
    for workers in ("threads", "processes"):
        pipe = Pipeline(4, 2, None, workers=workers, seed=5, on_bad_sample="skip")
        with pipe:
            jpegs, labels = fn.readers.file(files=images, labels=range(6))
            others, more = fn.readers.file(files=images, labels=range(10, 16))
            data, label, reader = fn.readers.mix([(jpegs, labels), (others, more)], weights=[1, 2])
            values, which = fn.readers.mix(
                [fn.readers.numpy(files=arrays), fn.readers.numpy(files=arrays[::-1])]
            )
            pipe.set_outputs(fn.decoders.image(data), label, reader, values, which)
        batches = [[np.asarray(row).tolist() for row in b] for _ in range(5) for b in pipe.run()]
        assert pipe.counters()["workers"] == workers
        assert pipe.counters()["skipped_samples"] > 0
        found.append(json.dumps(batches))
    assert found[0] == found[1]


def test_dynamic_mode(files) -> None:
    def reader(**more: Any) -> Any:
        readers = [ndd.readers.File(files=names) for names in files]
        return ndd.readers.Mix(readers=readers, weights=[1, 2, 5], **more)

    def numbers(batches: Any) -> list[Any]:
        return [
            [*[np.asarray(row).tolist() for row in b[0]], [int(np.asarray(row)) for row in b[2]]]
            for b in batches
        ]

    pipe = pipeline(files, 4, weights=[1, 2, 5])
    expected = [[list(each) for each in drawn(pipe, 1)] for _ in range(4)]
    whole = numbers(reader().next_epoch(batch_size=4))
    assert [batch[:-1] for batch in whole[:4]] == expected
    assert [batch[-1] for batch in whole[:4]] == [[r for r, _ in batch] for batch in expected]
    stopped = reader(enable_checkpointing=True)
    batches = iter(stopped.next_epoch(batch_size=4))
    next(batches)
    state = stopped.get_state()
    resumed = reader(enable_checkpointing=True)
    resumed.set_state(state)
    rest = numbers(resumed.next_epoch(batch_size=4))
    assert rest[: len(whole) - 1] == whole[1:]


def test_mixes_of_mixes(files) -> None:
    """They are drawn as one reader is, on each shard, and resumed."""

    def make(**more: Any) -> Pipeline:
        order = {"num_shards": 2, "shard_id": 1}
        pipe = Pipeline(5, 2, None, seed=5, enable_checkpointing=True, **more)
        with pipe:
            inner = fn.readers.mix([fn.readers.file(files=n, **order) for n in files[:2]])
            last = fn.readers.file(files=files[2], **order)
            pipe.set_outputs(*fn.readers.mix([inner[:2], last], weights=[1, 2], stop="all"))
        return pipe

    def taken(pipe: Pipeline, count: int) -> list[Any]:
        outputs = [pipe.run() for _ in range(count)]
        return [
            [(*np.asarray(o[0][k]).tolist(), int(np.asarray(o[2][k]))) for k in range(5)]
            for o in outputs
        ]

    first = make()
    whole = taken(first, 9)
    every = [each for batch in whole for each in batch]
    assert {(reader, which) for reader, _, which in every} == {(0, 0), (1, 0), (2, 1)}
    assert sorted(n for r, n, _ in every[:23] if r == 2) == list(range(15, 30))
    stopped = make()
    taken(stopped, 4)
    assert taken(make(checkpoint=stopped.checkpoint()), 5) == whole[4:]


def test_classes_and_serialized_pipelines(files) -> None:
    from headrace import ops

    pipe = Pipeline(2, 1, None, seed=5)
    with pipe:
        readers = [ops.readers.File(files=names, seed=3)() for names in files]
        pipe.set_outputs(*ops.readers.Mix(readers, weights=[1, 2, 5], name="mix")())
    again = Pipeline.deserialize(pipe.serialize())
    expected = drawn(pipeline(files, 2, weights=[1, 2, 5]), 4)
    assert drawn(pipe, 4) == drawn(again, 4) == expected


@pytest.mark.parametrize(
    ("make", "kind", "words"),
    [
        (lambda f: fn.readers.mix([]), errors.ArgumentTypeError, "list of readers"),
        (lambda f: fn.readers.mix([5]), errors.ArgumentTypeError, "element 0 is 5"),
        (
            lambda f: fn.readers.mix([fn.readers.file(files=f[0])[0] + 1]),
            errors.ArgumentTypeError,
            "before anything is decoded",
        ),
        (lambda f: mixed(f, weights=[1, 2]), errors.ArgumentValueError, "2 numbers for 3"),
        (lambda f: mixed(f, weights=[1, -2, 1]), errors.ArgumentValueError, "none below 0"),
        (lambda f: mixed(f, stop="last"), errors.ArgumentChoiceError, "never"),
        (
            lambda f: mixed(f, {"pad_last_batch": True}),
            errors.MisusedArgumentError,
            "pad_last_batch",
        ),
        (
            lambda f: (
                mixed([f[0], ["nowhere"]])[:1]
                and fn.readers.mix([fn.readers.file(files=f[0]), fn.readers.file(files=f[1])[0]])
            ),
            errors.ArgumentValueError,
            "different numbers of outputs",
        ),
        (
            lambda f: fn.readers.mix(
                [fn.readers.file(files=f[0])[1], fn.readers.file(files=f[1])[0]]
            ),
            errors.DataTypeError,
            "INT32",
        ),
        (
            lambda f: fn.readers.mix(
                [fn.readers.file(files=f[0]), fn.readers.file(file_list="nowhere")]
            ),
            errors.ArgumentValueError,
            "fn.readers.file",
        ),
        (
            lambda f: fn.readers.mix(
                [
                    fn.readers.numpy(
                        files=f[0], roi_end=fn.random.uniform(range=(1, 2), shape=1, dtype=INT32)
                    )
                ]
            ),
            errors.ArgumentValueError,
            "element 0 is read with `roi_end` of each sample",
        ),
        (
            lambda f: fn.readers.mix(
                [fn.readers.file(files=f[0], num_shards=2), fn.readers.file(files=f[1])]
            ),
            errors.MisusedArgumentError,
            "num_shards",
        ),
    ],
)
def test_wrong_arguments(files, make, kind, words) -> None:
    def run() -> None:
        pipe = Pipeline(2, 1, None)
        with pipe:
            found = make(files)
            pipe.set_outputs(*(found if isinstance(found, list) else [found]))
        pipe.run()

    with pytest.raises(kind, match=words):
        run()
