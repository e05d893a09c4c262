"""Batches of samples of about one length: each sample once, resumed anywhere, on any shards."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

import headrace
import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn
from headrace.errors import HeadraceError
from headrace.operators.readers.buckets import BucketOrder, Buckets
from headrace.plugin.base_iterator import _DaliBaseIterator

COUNT = 47
SIZES = np.random.default_rng(3).integers(1, 200, COUNT)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("files")
    for k, size in enumerate(SIZES):
        (folder / f"{k:02}.bin").write_bytes(bytes([k]) * int(size))
    return [str(p) for p in sorted(folder.iterdir())]


def make(files: list[str], shard: int = 0, shards: int = 1, **more: Any) -> Pipeline:
    args = {
        "bucket_by": "bytes",
        "buckets": 4,
        "max_batch": 450,
        "random_shuffle": True,
    } | more.pop("args", {})
    pipe = Pipeline(6, device_id=None, seed=shard, **{"num_threads": 2, **more})
    with pipe:
        content, label = fn.readers.file(
            files=files, shard_id=shard, num_shards=shards, name="r", **args
        )
        pipe.set_outputs(fn.pad(content), label)
    return pipe


def labels(pipe: Pipeline, count: int) -> list[list[int]]:
    found = []
    for _ in range(count):
        content, label = pipe.run()
        own = [int(np.array(each)[0]) for each in label]
        assert content.as_array().shape == (len(own), max(SIZES[k] for k in own))
        found.append(own)
    return found


@example(lengths=[1] * 19 + [26], buckets=None, budget=50, before=1, shards=1, others=2)
@given(
    lengths=st.lists(st.integers(1, 50), min_size=1, max_size=60),
    buckets=st.sampled_from([None, 1, 3, [10.0], [5, 20, 30]]),
    budget=st.sampled_from([None, 50, 120.5]),
    before=st.integers(0, 25),
    shards=st.integers(1, 4),
    others=st.integers(1, 5),
)
def test_orders(lengths, buckets, budget, before, shards, others):
    sizes = np.array(lengths, float)

    def order(shard: int, count: int) -> BucketOrder:
        return BucketOrder(Buckets(sizes, 7, buckets, budget), shard, count, 5)

    readers = [order(k, shards) for k in range(shards)]
    steps = readers[0].steps
    assert all(reader.steps == steps for reader in readers)
    epochs = []
    for _ in range(3):
        drawn = [reader.draw(7) for _ in range(steps) for reader in readers]
        epochs.append(drawn)
        if len(lengths) >= steps * shards:
            assert sorted(chain(*drawn)) == list(range(len(lengths)))
        for batch in drawn:
            assert 1 <= len(batch) <= 7
            assert budget is None or len(batch) * sizes[batch].max() <= budget
    first = [order(k, shards) for k in range(shards)]
    before %= steps + 1
    taken = list(chain(*[r.draw(7) for _ in range(before) for r in first]))
    resumed = order(0, shards)
    resumed.restore(first[0].state())
    assert resumed.draw(7) == first[0].draw(7)
    if len(lengths) < 20 or not before:
        return
    origin = order(0, shards)
    for _ in range(before):
        origin.draw(7)
    dealt = [order(k, others) for k in range(others)]
    for reader in dealt:
        reader.deal({"shards": shards, "shard": 0, "state": origin.state()})
    left = dealt[0].rest_size() if before < steps else 0
    rest: list[int] = []
    while left and len(rest) < left:
        rest += chain(*[reader.draw(7) for reader in dealt])
    if left and len(rest) == left:  # else fewer samples are left than shards
        repeated = len(taken) + left - len(lengths)
        # Batches of one sample cannot be cut, so that some come again to make shards equal.
        assert repeated == 0 or 1 in map(len, epochs[0])
        assert 0 <= repeated < shards + others - 1
        assert sorted({*taken, *rest}) == list(range(len(lengths)))
        assert all(reader.epoch == 0 for reader in dealt)


def test_the_same_however_it_is_carried(files):
    wanted = labels(make(files, num_threads=1), 40)
    assert labels(make(files, num_threads=4), 40) == wanted
    assert labels(make(files, workers="processes", num_threads=4), 40) == wanted
    steps = make(files).reader_meta("r")["batches"]
    assert sorted(chain(*wanted[:steps])) == list(range(COUNT))
    assert wanted[:steps] != wanted[steps : 2 * steps]
    assert len({len(batch) for batch in wanted}) > 2
    plain = make(files, args={"random_shuffle": False, "max_batch": None, "buckets": 1})
    assert labels(plain, 9)[:8] == [[*range(k, min(k + 6, COUNT))] for k in range(0, COUNT, 6)]


@given(before=st.integers(0, 30), shards=st.integers(1, 3))
@settings(max_examples=5)
def test_resumed(files, before, shards):
    def made(**more: Any) -> list[Pipeline]:
        return [make(files, k, shards, enable_checkpointing=True, **more) for k in range(shards)]

    wanted = [labels(pipe, before + 20) for pipe in made()]
    first = made()
    for pipe, batches in zip(first, wanted, strict=True):
        assert labels(pipe, before) == batches[:before]
        saved = pipe.checkpoint()
        shard = first.index(pipe)
        other = make(
            files, shard, shards, enable_checkpointing=True, num_threads=1, checkpoint=saved
        )
        assert labels(other, 20) == batches[before:]


def test_resumed_with_other_shards(files):
    first = [make(files, k, 2, enable_checkpointing=True) for k in range(2)]
    seen = [k for pipe in first for batch in labels(pipe, 3) for k in batch]
    saved = first[1].checkpoint()
    others = [make(files, k, 3, enable_checkpointing=True, checkpoint=saved) for k in range(3)]
    steps = {pipe.reader_meta("r")["batches_of_epoch"] for pipe in others}
    assert len(steps) == 1
    seen += [k for pipe in others for batch in labels(pipe, min(steps)) for k in batch]
    assert sorted(seen) == list(range(COUNT))
    again = [
        k for pipe in others for b in labels(pipe, others[0].reader_meta("r")["batches"]) for k in b
    ]
    assert sorted(again) == list(range(COUNT))


def test_iterators_count_batches(files):
    pipes = [make(files, k, 2) for k in range(2)]

    class Batches(_DaliBaseIterator):
        def _assemble(self, batches: list[Any]) -> Any:
            return batches

    iterator = Batches(pipes, reader_name="r")
    for _ in range(3):
        found: list[int] = []
        steps = 0
        for batches in iterator:
            steps += 1
            for batch in batches:
                found += [int(np.array(each)[0]) for each in batch.outputs[1]]
        assert steps == pipes[0].reader_meta("r")["batches"]
        assert sorted(found) == list(range(COUNT))


def test_padding_is_counted(files):
    """Of batches of one length, of plain ones, along some axes, and where nothing is padded."""
    plain = {"bucket_by": None, "buckets": None, "max_batch": None, "random_shuffle": False}
    for args in ({}, plain):
        profile = headrace.profile()
        pipe = make(files, args=args, num_threads=1, profile=profile)
        shapes = []
        for _ in range(6):
            content, label = pipe.run()
            shapes.append((sum(int(SIZES[int(np.array(k)[0])]) for k in label), content.shape()))
        counted = pipe.counters()["padding"]
        used = sum(count for count, _ in shapes)
        padded = sum(shape[0] for _, rows in shapes for shape in rows)
        assert 0 < counted < 1
        if not args:
            assert counted < 0.3
        # Batches ahead of those that were taken are counted, too.
        assert counted == pytest.approx(1 - used / padded, abs=0.2)
        assert profile.figures()[0].padding == pytest.approx(counted, abs=0.1)
    pipe = Pipeline(4, 1, None, prefetch_queue_depth=1)
    with pipe:
        content = fn.readers.file(files=files)[0]
        tall = fn.expand_dims(content, axes=[1])
        pipe.set_outputs(fn.pad(tall, axes=[1], align=4), fn.pad(content, shape=[300]))
    pipe.run()
    assert pipe.counters()["padding"] == pytest.approx(0.75)


def test_padding_is_less():
    lengths = np.random.default_rng(0).uniform(1, 20, 5000)
    plain = Buckets(lengths, 32, 1, None).padding()
    assert plain > 0.4
    assert Buckets(lengths, 32, None, None).padding() < 0.05
    assert Buckets(lengths, 64, None, 300.0).padding() < 0.05


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ({"max_batch": 100}, "`max_batch` is 100"),
        ({"bucket_by": "duration"}, 'knows "bytes"'),
        ({"bucket_by": [1, 2]}, "47 samples"),
        ({"bucket_by": [-1] * COUNT}, "not negative"),
        ({"buckets": 0}, "`buckets` is 0"),
        ({"buckets": [3, 2]}, "ascending"),
        ({"bucket_by": None}, "give `bucket_by`"),
        ({"pad_last_batch": True}, "exclude each other"),
    ],
)
def test_errors(files, args, words):
    with pytest.raises(HeadraceError, match=words):
        make(files, args=args).build()


def test_what_has_another_size(files):
    pipe = Pipeline(6, device_id=None, num_threads=1)
    with pipe:
        content, _ = fn.readers.file(files=files, bucket_by="bytes")
        pipe.set_outputs(content, fn.external_source(lambda: [np.zeros(1)] * 6))
    with pytest.raises(HeadraceError, match="`bucket_by` says how many samples"):
        pipe.run()


def test_bad_samples(files, tmp_path):
    """A bad sample is made up for by others of its batch, so that batches keep their size."""
    (tmp_path / "empty").write_bytes(b"")
    names = [*files, str(tmp_path / "empty")]
    lengths = [*SIZES.tolist(), 7]

    def run(threads: int) -> list[list[int]]:
        pipe = Pipeline(6, device_id=None, num_threads=threads, on_bad_sample="skip", seed=1)
        with pipe:
            content, label = fn.readers.file(
                files=names, bucket_by=lengths, random_shuffle=True, name="r"
            )
            pipe.set_outputs(content, label)
        steps = pipe.reader_meta("r")["batches"]
        return [[int(np.array(e)[0]) for e in pipe.run()[1]] for _ in range(2 * steps)]

    found = run(1)
    assert COUNT not in chain(*found)
    assert set(chain(*found)) == set(range(COUNT))
    assert run(4) == found


def test_columns_and_pixels(tmp_path):
    """Lengths are known by the names of columns, read or not, and from the headers of images."""
    pa = pytest.importorskip("pyarrow")
    pq = pytest.importorskip("pyarrow.parquet")
    ids = [[k] * int(size) for k, size in enumerate(SIZES)]
    table = pa.table({"ids": ids, "k": range(COUNT), "seconds": SIZES / 10, "a.b": SIZES * 2})
    for part in range(2):
        rows = table.slice(part * 20, 20 + 7 * part)
        pq.write_table(rows, tmp_path / f"{part}.parquet", row_group_size=6)

    def drawn(reader: str, source: dict[str, Any], by: str, **more: Any) -> list[list[int]]:
        pipe = Pipeline(8, device_id=None, num_threads=2)
        with pipe:
            args = {"bucket_by": by, "columns": ["k"], "random_shuffle": True, **source, **more}
            found = getattr(fn.readers, reader)(name="r", **args)
            pipe.set_outputs(*(found if isinstance(found, list) else [found]))
        steps = pipe.reader_meta("r")["batches"]
        return [[int(np.array(row).flat[0]) for row in pipe.run()[-1]] for _ in range(steps)]

    files = {"paths": str(tmp_path)}
    wanted = drawn("parquet", files, SIZES, buckets=4, max_batch=600)
    assert sorted(chain(*wanted)) == list(range(COUNT))
    for reader, source in (("parquet", files), ("arrow", {"source": table})):
        assert drawn(reader, source, "ids", buckets=4, max_batch=600) == wanted
        assert drawn(reader, source, "seconds", buckets=4, max_batch=60) == wanted
        assert drawn(reader, source, "a.b", buckets=4, max_batch=1200) == wanted
        with pytest.raises(HeadraceError, match='knows "ids", "k", "seconds"'):
            drawn(reader, source, "id")
    names = []
    for k, size in enumerate(SIZES):
        form = ("bmp", "jpg", "png", "webp")[k % 4]
        names.append(str(tmp_path / f"{k:02}.{form}"))
        Image.new("RGB", (int(size), 3 + k % 5)).save(names[-1])
    areas = SIZES * (3 + np.arange(COUNT) % 5)
    found = [
        drawn("file", {"files": names, "columns": None}, by, buckets=4) for by in ("pixels", areas)
    ]
    assert found[0] == found[1]
    (tmp_path / "none.jpg").write_bytes(b"none")
    with pytest.raises(HeadraceError, match=r"none.jpg"):
        drawn("file", {"files": [str(tmp_path / "none.jpg")], "columns": None}, "pixels")


def test_dynamic_mode(files):
    args = {"files": files, "bucket_by": "bytes", "buckets": 4, "max_batch": 450}
    args |= {"random_shuffle": True, "enable_checkpointing": True}
    steps = make(files).reader_meta("r")["batches"]
    wanted = labels(make(files), 2 * steps)
    reader, found, states = ndd.readers.File(**args), [], []
    for _ in range(2):
        for content, label in reader.next_epoch(batch_size=6):
            found.append([int(np.asarray(row)[0]) for row in label.tensors])
            assert content.batch_size == len(found[-1])
            states.append(reader.get_state())
    assert found == wanted
    resumed = ndd.readers.File(**args)
    resumed.set_state(states[steps + 2])
    again = [b for _ in range(2) for b in resumed.next_epoch(batch_size=6)]
    assert [[int(np.asarray(r)[0]) for r in b[1].tensors] for b in again][: steps - 3] == (
        wanted[steps + 3 :]
    )
    assert ndd.readers.File(**args).get_metadata(batch_size=6)["batches"] == steps
    with pytest.raises(HeadraceError, match="`batch_size`"):
        next(iter(ndd.readers.File(**args).next_epoch()))
    with pytest.raises(HeadraceError, match="`next_epoch`"):
        ndd.readers.File(**args)(batch_size=3)


@given(
    before=st.integers(0, 30),
    weights=st.sampled_from([None, [3, 1]]),
    stop=st.sampled_from(["first", "all"]),
    shards=st.integers(1, 2),
)
@settings(max_examples=6)
def test_mixed(files, before, weights, stop, shards):
    """Readers are mixed batch by batch, in exact proportion, and each has its own epochs."""

    def made(shard: int, **more: Any) -> Pipeline:
        pipe = Pipeline(6, device_id=None, seed=1, enable_checkpointing=True, **more)
        args = {"bucket_by": "bytes", "max_batch": 450, "random_shuffle": True}
        args |= {"shard_id": shard, "num_shards": shards}
        with pipe:
            parts = [fn.readers.file(files=f, **args) for f in (files[:30], files[30:])]
            pipe.set_outputs(*fn.readers.mix(parts, weights=weights, stop=stop, name="r"))
        return pipe

    def drawn(pipe: Pipeline, count: int) -> list[list[tuple[int, int]]]:
        found = []
        for _ in range(count):
            data, _, reader = pipe.run()
            rows = [
                (int(np.array(r)), int(np.array(d)[0])) for d, r in zip(data, reader, strict=True)
            ]
            assert len({r for r, _ in rows}) == 1
            assert len(rows) * max(SIZES[k] for _, k in rows) <= 450
            found.append(rows)
        return found

    pipes = [made(k, num_threads=2) for k in range(shards)]
    meta = pipes[0].reader_meta("r")
    steps, epochs = (
        meta["batches"],
        [drawn(pipe, pipes[0].reader_meta("r")["batches"]) for pipe in pipes],
    )
    assert 0 < meta["padding"] < 1
    assert all(pipe.reader_meta("r")["batches"] == steps for pipe in pipes)
    counts = np.bincount([rows[0][0] for rows in epochs[0]], minlength=2)
    share = np.array(weights or [1, 1]) / sum(weights or [1, 1])
    assert abs(counts - share * steps).max() <= 1
    parts = {0: 30, 1: COUNT - 30}
    seen = [sum(r == n for e in epochs for rows in e for r, _ in rows) / parts[n] for n in parts]
    assert max(seen) == 1 if stop == "first" else min(seen) >= 1
    wanted = drawn(made(0, num_threads=1), before + 12)
    first = made(0, num_threads=4)
    assert drawn(first, before) == wanted[:before]
    assert drawn(made(0, num_threads=2, checkpoint=first.checkpoint()), 12) == wanted[before:]


def test_mixed_errors(files):
    pipe = Pipeline(6, device_id=None, num_threads=1)
    with pipe:
        parts = [fn.readers.file(files=files, **a) for a in ({"bucket_by": "bytes"}, {})]
        pipe.set_outputs(*fn.readers.mix(parts))
    with pytest.raises(HeadraceError, match="to all"):
        pipe.build()
