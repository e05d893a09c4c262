"""Sequences packed into rows: each token once an epoch, resumed anywhere, on any shards."""

from __future__ import annotations

import io
import tarfile
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn, tfrecord, types
from headrace.errors import HeadraceError
from headrace.operators.readers.packed_index import packed
from headrace.plugin.base_iterator import _DaliBaseIterator
from tests.support import tf_records

pa = pytest.importorskip("pyarrow")

COUNT, LENGTH = 101, 16
SIZES = np.random.default_rng(2).integers(0, 13, COUNT)
TOKENS = [[100 * k + n for n in range(size)] for k, size in enumerate(SIZES)]
TABLE = pa.table(
    {"ids": pa.array(TOKENS, pa.list_(pa.int32())), "n": SIZES, "key": range(COUNT)}
    | {"pairs": [[[n, -n] for n in row] for row in TOKENS], "weights": [[0.5] * n for n in SIZES]}
)


@given(
    lengths=st.lists(st.integers(0, 40), min_size=1, max_size=80),
    length=st.sampled_from([1, 7, 64, 100]),
    split=st.booleans(),
)
def test_rows(lengths, length, split):
    rows = packed(np.array(lengths), length, split=split)
    wanted = {
        (k, n) for k, own in enumerate(lengths) for n in range(own if split else min(own, length))
    }
    found = []
    for begin, end in zip(rows.begins, rows.begins[1:], strict=False):
        assert 0 < rows.sizes[begin:end].sum() <= length
        for k in range(begin, end):
            found += [(int(rows.entries[k]), int(rows.firsts[k]) + n) for n in range(rows.sizes[k])]
    assert len(found) == len(wanted)
    assert set(found) == wanted
    count, total = len(rows.begins) - 1, len(wanted)
    assert count <= max(2 * -(-total // length), 1)  # any two rows are fuller than one


def test_padding_is_less():
    sizes = np.random.default_rng(0).lognormal(5.5, 1, 30000).astype(np.int64).clip(1, 2048)
    rows = packed(sizes, 2048, split=False)
    assert 1 - sizes.sum() / (2048 * (len(rows.begins) - 1)) < 0.005
    assert (
        rows.entries[rows.begins[:-1]] // 8192 == np.sort(rows.entries[rows.begins[:-1]] // 8192)
    ).all()


def record(values: list[int], label: int) -> bytes:
    return tf_records.example({"ids": values, "label": [label]})


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Arguments of a reader of the same sequences as records, which it parses."""
    path = tmp_path_factory.mktemp("records") / "x.tfrecord"
    features = {
        "ids": tfrecord.VarLenFeature(tfrecord.int64, 0),
        "label": tfrecord.FixedLenFeature([1], tfrecord.int64, 0),
    }
    places = tf_records.write(path, [record(own, k) for k, own in enumerate(TOKENS)])
    return {**places, "features": features}


def make(shard: int = 0, shards: int = 1, source: Any = TABLE, **more: Any) -> Pipeline:
    args = {"shard_id": shard, "num_shards": shards, "random_shuffle": True, "initial_fill": 7}
    args |= more.pop("args", {})
    columns = more.pop("columns", ["key", "ids"])
    records = more.pop("records", None)
    pipe = Pipeline(
        3, device_id=None, enable_checkpointing=True, **{"num_threads": 2, "seed": shard} | more
    )
    with pipe:
        if records is not None:
            data = fn.readers.tfrecord(**records)["ids"]
        else:
            data = fn.readers.arrow(source=source, columns=columns)
            data = data[-1] if columns[0] == "key" else data
        pipe.set_outputs(*fn.readers.pack(data, LENGTH, name="r", **args))
    return pipe


def drawn(pipe: Pipeline, batches: int) -> list[list[list[list[int]]]]:
    """The sequences of each row of each batch."""
    found = []
    for _ in range(batches):
        tokens, segments, positions = (out.as_array() for out in pipe.run())
        assert tokens.shape[1:] == segments.shape[1:] == positions.shape[1:] == (LENGTH,)
        assert segments.dtype == positions.dtype == np.int32
        batch = []
        for row, numbers, places in zip(tokens, segments, positions, strict=True):
            last = int(numbers.max())
            own = [row[numbers == n + 1].tolist() for n in range(last)]
            used = sum(map(len, own))
            assert (np.diff(numbers[:used]) >= 0).all()
            assert not numbers[used:].any()
            assert not places[used:].any()
            for n in range(last):
                assert places[numbers == n + 1].tolist() == list(range(len(own[n])))
            batch.append(own)
        found.append(batch)
    return found


def tokens_of(batches: Any) -> list[int]:
    return sorted(t for batch in batches for row in batch for own in row for t in own)


EVERY = sorted(t for row in TOKENS for t in row)


@pytest.mark.parametrize("parsed", [False, True])
def test_each_token_once_in_every_epoch(parsed, records):
    more = {"records": records} if parsed else {}
    meta = make(**more).reader_meta("r")
    rows = meta["epoch_size"]
    assert meta["padding"] == pytest.approx(1 - SIZES.sum() / (rows * LENGTH))
    assert meta["padding"] < 0.05
    wanted = drawn(make(num_threads=1, **more), rows)
    for threads in ({"num_threads": 4}, {"num_threads": 4, "workers": "processes"}):
        assert drawn(make(**threads, **more), rows) == wanted
    rows_in_order = [row for batch in wanted for row in batch]
    for epoch in range(3):
        assert tokens_of([rows_in_order[epoch * rows : (epoch + 1) * rows]]) == EVERY
    assert rows_in_order[:rows] != rows_in_order[rows : 2 * rows]
    if parsed:  # the rows are those of a table with the same sequences
        assert drawn(make(), rows) == wanted
        features = {"features": {"ids": records["features"]["ids"]}}
        sequences = ndd.readers.TFRecord(**(records | features))
    else:
        sequences = ndd.readers.Arrow(source=TABLE, columns=["ids"])
    reader = ndd.readers.Pack(reader=sequences, length=LENGTH)
    found = [np.asarray(out[0].tensors[0]) for out in reader.next_epoch(batch_size=1)]
    assert len(found) == rows
    plain = drawn(make(args={"random_shuffle": False}), -(-rows // 3))
    flat = [[t for own in row for t in own] for batch in plain for row in batch][:rows]
    assert [row[: len(own)].tolist() for row, own in zip(found, flat, strict=True)] == flat


@given(before=st.integers(0, 40), shards=st.integers(1, 3), parsed=st.booleans(), data=st.data())
@settings(max_examples=6)
def test_resumed(records, before, shards, parsed, data):
    shard = data.draw(st.integers(0, shards - 1))
    more = {"records": records} if parsed else {}
    wanted = drawn(make(shard, shards, **more), before + 8)
    first = make(shard, shards, num_threads=4, **more)
    assert drawn(first, before) == wanted[:before]
    again = make(shard, shards, num_threads=1, checkpoint=first.checkpoint(), **more)
    assert drawn(again, 8) == wanted[before:]


@given(before=st.integers(0, 8), others=st.integers(1, 5))
@settings(max_examples=6)
def test_resumed_with_other_shards(before, others):
    args = {"random_shuffle": False, "shuffle_after_epoch": True}
    first = [make(k, 2, args=args) for k in range(2)]
    seen = [batch for pipe in first for batch in drawn(pipe, before)]
    saved = first[0].checkpoint()
    pipes = [make(k, others, args=args, checkpoint=saved) for k in range(others)]
    left = make().reader_meta("r")["epoch_size"] - before * 6
    if left <= 0:
        return
    bounds = [left * k // others for k in range(others + 1)]
    for k, pipe in enumerate(pipes):
        rows = [row for batch in drawn(pipe, -(-left // 3)) for row in batch]
        seen.append(rows[: bounds[k + 1] - bounds[k]])
    assert tokens_of(seen) == EVERY


def test_ranks_have_as_many_batches():
    class Batches(_DaliBaseIterator):
        def _assemble(self, batches: list[Any]) -> Any:
            return batches

    counts = []
    for shards in (2, 3, 5):
        own = [sum(1 for _ in Batches([make(k, shards)], reader_name="r")) for k in range(shards)]
        assert len(set(own)) == 1
        counts.append(own[0])
    assert counts == sorted(counts, reverse=True)


def test_several_outputs_and_long_sequences(tmp_path):
    for too_long, wanted in (("split", EVERY), ("cut", [t for t in EVERY if t % 100 < 5])):
        pipe = Pipeline(4, device_id=None, num_threads=2)
        with pipe:
            columns = fn.readers.arrow(source=TABLE, columns=["ids", "weights", "pairs"])
            out = fn.readers.pack(
                columns, 5, too_long=too_long, lengths=SIZES, fill_value=[-1, 0.25, 7], name="r"
            )
            pipe.set_outputs(*out)
        seen = []
        rows = pipe.reader_meta("r")["epoch_size"]
        for _ in range(-(-rows // 4)):
            ids, weights, pairs, segments, positions = (o.as_array() for o in pipe.run())
            assert pairs.shape[1:] == (5, 2)
            assert weights.dtype == np.float64
            there = segments > 0
            np.testing.assert_array_equal(pairs[there], np.stack([ids, -ids], -1)[there])
            assert (weights[there] == 0.5).all()
            assert (ids[~there] == -1).all()
            assert (weights[~there] == 0.25).all()
            assert (pairs[~there] == 7).all()
            assert positions.max() < 5
            seen += [row[own].tolist() for row, own in zip(ids, there, strict=True)]
        assert sorted(t for row in seen[:rows] for t in row) == sorted(wanted)
    names = []
    for k, size in enumerate(SIZES[:20]):
        names.append(str(tmp_path / f"{k:02}"))
        (tmp_path / f"{k:02}").write_bytes(bytes([k + 1]) * int(size))
    for workers in ("threads", "processes"):
        pipe = Pipeline(99, device_id=None, num_threads=2, workers=workers)
        with pipe:  # and content of files
            content, _ = fn.readers.file(files=names)
            pipe.set_outputs(*fn.readers.pack(content, LENGTH, name="r"))
        rows = pipe.reader_meta("r")["epoch_size"]
        found = pipe.run()[0].as_array()[:rows]
        assert np.bincount(found.reshape(-1), minlength=21)[1:].tolist() == SIZES[:20].tolist()


def test_mixed_and_bad_samples():
    pipe = Pipeline(4, device_id=None, num_threads=2)
    with pipe:
        parts = [
            fn.readers.pack(fn.readers.arrow(source=t, columns=["ids"]), LENGTH)
            for t in (TABLE.slice(0, 50), TABLE.slice(50))
        ]
        pipe.set_outputs(*fn.readers.mix(parts))
    tokens, _, _, number = pipe.run()
    assert all(
        (np.array(t)[0] >= 5000) == int(np.array(n)) for t, n in zip(tokens, number, strict=True)
    )
    bad = [None if k == 40 else row for k, row in enumerate(TOKENS)]
    table = pa.table({"ids": pa.array(bad, pa.list_(pa.int32()))})
    args = {"lengths": SIZES}
    rows = make(source=table, columns=["ids"], args=args).reader_meta("r")["epoch_size"]
    pipe = make(source=table, columns=["ids"], args=args, on_bad_sample="skip")
    seen = set(tokens_of(drawn(pipe, rows)))
    assert not seen & set(TOKENS[40])
    assert len(seen) > len(EVERY) - 2 * LENGTH
    with pytest.raises(HeadraceError, match=r"'ids' has no value here.*"):
        drawn(make(source=table, columns=["ids"], args=args), rows)


def test_other_readers(tmp_path, records):
    """Components of archives, columns beside what is parsed, and records that are damaged."""
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for k in range(20):
            for name, content in (("a", bytes([k + 1]) * k), ("b", bytes(8))):
                member = tarfile.TarInfo(f"{k}.{name}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))
    for dtypes in (None, [types.UINT8, types.INT32]):
        pipe = Pipeline(1, 1, None)
        with pipe:
            data = fn.readers.webdataset(
                paths=str(tmp_path / "x.tar"),
                ext=["a", "b"],
                dtypes=dtypes,
            )
            pipe.set_outputs(*fn.readers.pack(data[0], 300, name="r"))
        assert pipe.reader_meta("r")["epoch_size"] == 1
        row = pipe.run()[0].as_array()
        assert np.bincount(row.reshape(-1), minlength=21)[1:].tolist() == list(range(20))
    pipe = Pipeline(1, 1, None)
    with pipe:  # a feature that is a number of each record, and a column beside bytes
        numbers = fn.readers.tfrecord(**records)["label"]
        files = [str(tmp_path / "x.tar")] * COUNT
        labels = fn.readers.file(files=files, labels=range(COUNT))[1]
        packed_ones = [fn.readers.pack(n, COUNT + 2, fill_value=-1)[0] for n in (numbers, labels)]
        pipe.set_outputs(*packed_ones)
    for out in pipe.run():
        assert sorted(out.as_array()[0].tolist()) == [-1, -1, *range(COUNT)]

    path = tmp_path / "damaged.tfrecord"
    damaged = bytearray(record(TOKENS[40], 0))
    damaged[20] ^= 1
    every = [bytes(damaged) if k == 40 else record(own, 0) for k, own in enumerate(TOKENS)]
    bad = records | tf_records.write(path, every)
    rows = make(records=bad).reader_meta("r")["epoch_size"]
    pipe = make(records=bad, on_bad_sample="skip")
    seen = set(tokens_of(drawn(pipe, rows)))
    assert not seen & set(TOKENS[40])
    assert len(seen) > len(EVERY) - 2 * LENGTH
    with pytest.raises(HeadraceError, match="wrong checksum"):
        drawn(make(records=bad), rows)


@pytest.mark.parametrize(
    ("define", "words"),
    [
        (lambda r: r.pack(r.arrow(source=TABLE, columns=["ids"]), 5), '"split"'),
        (lambda r: r.pack(r.arrow(source=TABLE, columns=["n"]), 5), "no sequence"),
        (lambda r: r.pack(r.arrow(source=TABLE, columns=["ids"]), 0), "`length` is 0"),
        (lambda r: r.pack(r.arrow(source=TABLE, columns=["ids"]), 20, lengths="m"), "`lengths` is"),
        (lambda r: r.pack(r.arrow(source=TABLE, columns=["ids"]), 20, lengths=[1]), "101 samples"),
        (
            lambda r: r.pack(r.arrow(source=TABLE, columns=["ids"]), 20, lengths=SIZES + 1),
            "lengths",
        ),
        (lambda r: r.pack(r.arrow(source=TABLE, columns=["ids"], num_shards=2), 20), "about rows"),
        (lambda r: r.pack(r.arrow(source=TABLE, columns=["ids"]), 20, fill_value=0.5), "int32"),
        (lambda r: r.pack(r.arrow(source=TABLE, columns=["ids"]) + 1, 20), "one reader"),
        (
            lambda r: r.pack(r.mix([r.arrow(source=TABLE, columns=["ids"])])[0], 20),
            "an order of its own",
        ),
    ],
)
def test_errors(define, words):
    def run() -> None:
        pipe = Pipeline(40, device_id=None, num_threads=1)
        with pipe:
            pipe.set_outputs(*define(fn.readers))
        pipe.run()

    with pytest.raises(HeadraceError, match=words):
        run()
