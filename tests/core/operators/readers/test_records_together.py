"""Records that are parsed several at a time come out as when each is parsed alone."""

from __future__ import annotations

import io
import shutil
import tarfile

import numpy as np
import pytest

from headrace import Pipeline, fn, tfrecord, types
from headrace.executor.cpu import runner
from headrace.operators.readers.caffe import CaffeReader
from headrace.operators.readers.mxnet import MXNetReader
from headrace.operators.readers.tfrecord import TFRecordReader
from headrace.operators.readers.webdataset import WebdatasetReader
from tests.support import caffe_records, record_io, tf_records
from tests.support.chunks import set_chunks
from tests.support.messages import RandomWire

BATCH = 16
ONE_BY_ONE = {"prefetch_queue_depth": 1, "on_bad_sample": "skip"}
NAMES = [b"image", b"label", b"box"]
FEATURES = {
    "image": tfrecord.FixedLenFeature((), tfrecord.string, "none"),
    "label": tfrecord.FixedLenFeature([1], tfrecord.int64, -1),
    "box": tfrecord.VarLenFeature(tfrecord.float32, 0.0),
}


def examples(wire):
    """Records in any way that the format allows; most lack something or have it of another kind."""
    one = lambda number, value: wire.message(number, wire.message(1, value))  # noqa: E731
    for _ in range(120):
        lists = (
            one(1, wire.random.randbytes(wire.random.randint(0, 9))),
            wire.message(3, wire.field(1, 0, wire.number(wire.integer()))),
            wire.message(2, b"".join(wire.numbers(1, False))),
        )
        features = b"".join(
            wire.message(1, wire.message(1, name) + wire.message(2, wire.mixed((1, 2, 3), [each])))
            for name, each in zip(NAMES, lists, strict=True)
        )
        others = [wire.example(NAMES)] if wire.random.random() < 0.4 else []
        yield tf_records.frame(wire.mixed((1,), [wire.message(1, features), *others]))


def tf(root, wire, only=None):
    records = list(examples(wire))
    places = tf_records.write(root / "some.rec", [records[k] for k in only or range(len(records))])
    return fn.readers.tfrecord, {"features": FEATURES, **places}


def mxnet(root, wire, only=None):
    labels = [3.5, [1, 2, 3.25], [7.0]]
    records = [
        record_io.record(record_io.image(labels[k % 3], wire.random.randbytes(k % 50), k))
        for k in range(80)
    ]
    records[5:8] = [bytes(99), records[5][:40], b""]
    records[9] = record_io.record(record_io.image(1, record_io.MAGIC * 3))
    return fn.readers.mxnet, record_io.write(
        root / "some.rec", [records[k] for k in only or range(len(records))]
    )


def caffe(root, wire, only=None):
    records = [wire.datum() for _ in range(300)]
    folder = root / f"lmdb {only is None}"
    shutil.rmtree(folder, ignore_errors=True)
    caffe_records.write(folder, [records[k] for k in only or range(len(records))])
    return fn.readers.caffe, {"path": str(folder)}


def archive(root, wire, only=None):
    """Members in any order, with others between them, of sizes that are whole numbers or not."""
    path = root / "some.tar"
    with tarfile.open(path, "w") as tar:
        for k in only or range(120):
            size = wire.random.choice([0, 4, 12, 3000, 5] if only is None else [4, 12, 3000])
            parts = [("img", bytes(size)), ("f32", wire.random.randbytes(size)), ("x", bytes(2500))]
            parts = [(e, c) for e, c in parts if e != "x" or k % 3 == 0]
            wire.random.shuffle(parts)
            for ending, content in parts:
                member = tarfile.TarInfo(f"{k:04}.{ending}")
                member.size = len(content)
                tar.addfile(member, io.BytesIO(content))
    how = {"ext": ["img", "f32"], "dtypes": [types.UINT8, types.FLOAT]}
    return fn.readers.webdataset, {"paths": [str(path)], **how}


FORMATS = {
    "tfrecord": (tf, TFRecordReader),
    "mxnet": (mxnet, MXNetReader),
    "caffe": (caffe, CaffeReader),
    "webdataset": (archive, WebdatasetReader),
}


def samples(made, batches):
    """What is read, with its source; and the bad samples."""
    reader, args = made
    pipe = Pipeline(BATCH, 1, None, workers="threads", **ONE_BY_ONE)
    with pipe:
        found = reader(**args, random_shuffle=True, initial_fill=50, seed=1)
        pipe.set_outputs(*(found.values() if isinstance(found, dict) else found))
    rows = []
    for _ in range(batches):
        outputs = pipe.run()
        rows += [
            [(np.asarray(o.at(k)).tobytes(), o[k].shape(), o[k].source_info()) for o in outputs]
            for k in range(BATCH)
        ]
        rows.append([str(output.dtype) for output in outputs])
    return rows, [(b.iteration, b.index, b.reason) for b in pipe.bad_samples]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("seed", [1, 2])
def test_as_one_by_one(tmp_path, monkeypatch, name, seed):
    make, _ = FORMATS[name]
    monkeypatch.setattr(runner, "_FEW_SAMPLES", 1 << 30)
    alone = samples(make(tmp_path, RandomWire(seed)), 3)
    monkeypatch.undo()
    set_chunks("64:64", monkeypatch.setattr)
    assert samples(make(tmp_path, RandomWire(seed)), 3) == alone
    assert alone[1]  # some are bad


@pytest.mark.parametrize("name", FORMATS)
def test_good_ones_need_no_call_for_each(tmp_path, monkeypatch, name):
    """The slow way is for what is damaged or unusual alone."""
    make, cls = FORMATS[name]
    only = {"mxnet": [*range(5), *range(10, 80)], "webdataset": range(60)}.get(name)
    if only is None:  # those that are good when read alone
        reader, args = make(tmp_path, RandomWire(3))
        pipe = Pipeline(1, 1, None, workers="threads", **ONE_BY_ONE)
        with pipe:
            found = reader(**args, name="r")
            pipe.set_outputs(*(found.values() if isinstance(found, dict) else found))
        size, calls = pipe.epoch_size("r"), []
        parse = cls.cpu

        def noted(self, c, *data):
            calls.append(None)
            made = parse(self, c, *data)
            calls[-1] = made
            return made

        monkeypatch.setattr(cls, "cpu", noted)
        while len(calls) < size:
            pipe.run()
        only = [
            k
            for k, made in enumerate(calls[:size])
            if made is not None and (name != "tfrecord" or made[0].tobytes() != b"none")
        ]
        assert len(only) >= 2 * BATCH
    alone = samples(make(tmp_path, RandomWire(3), list(only)), 3)
    assert not alone[1]
    assert len(set(map(str, alone[0]))) > 3
    monkeypatch.setattr(cls, "cpu", lambda *_: pytest.fail("parsed alone"))
    set_chunks("64:64", monkeypatch.setattr)
    assert samples(make(tmp_path, RandomWire(3), list(only)), 3) == alone


def test_numbers_of_the_engine_are_not_written_to(tmp_path):
    """Outputs that are pieces of one memory are a user's own."""
    reader, args = archive(tmp_path, RandomWire(1), range(40))
    pipe = Pipeline(BATCH, 2, None)
    with pipe:
        pipe.set_outputs(*reader(**(args | {"dtypes": None})))
    first = [np.asarray(tensor).copy() for tensor in pipe.run()[1]]
    kept = pipe.run()
    for output in kept:
        for tensor in output:
            np.asarray(tensor)[...] = 7
    for _ in range(3):
        pipe.run()
    assert all((np.asarray(t) == 7).all() for output in kept for t in output)
    again = Pipeline(BATCH, 2, None)
    with again:
        again.set_outputs(*reader(**(args | {"dtypes": None})))
    for ours, theirs in zip(again.run()[1], first, strict=True):
        np.testing.assert_array_equal(np.asarray(ours), theirs)
