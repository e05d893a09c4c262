"""Records that are parsed several at a time come out as when each is parsed alone."""

from __future__ import annotations

import io
import shutil
import tarfile
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from headrace import Pipeline, fn, tfrecord, types
from headrace.executor.cpu import runner
from headrace.operators.readers.caffe import CaffeReader
from headrace.operators.readers.caffe2 import Caffe2Reader
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


def tensor_records(wire, label_type):
    """Records of Caffe2 in any way that the format allows; some lack something."""
    random = wire.random

    def tensor(kind, *content):
        # Those that are none are no value of the field.
        kinds = [wire.field(2, 0, wire.number(each)) for each in (random.choice((11, 14)), kind)]
        others = wire.numbers(1, True)
        return wire.mixed((1, 2, 3, 4, 5, 6, 10), [*others, *kinds, *content])

    def integers(*values):
        if random.random() < 0.5:
            each = [wire.field(4, 0, wire.number(value & 2**64 - 1)) for value in values]
        else:
            each = [wire.message(4, b"".join(wire.number(v & 2**64 - 1) for v in values))]
        return tensor(2, *each)

    def floats(count):
        return tensor(1, wire.message(3, np.arange(count, dtype="<f4").tobytes()))

    for _ in range(200):
        image = tensor(4, *(wire.message(6, random.randbytes(random.randint(0, 60))) for _ in "ab"))
        labels = [random.randint(0, 5) for _ in wire.some()] or [3]
        box = integers(1, -2, 3, 4)
        if label_type == 0:
            parts = [image, integers(random.randint(-9, 2**31)), floats(2), box]
        elif label_type == 2:
            parts = [image, integers(*labels), floats(3), box]
        elif label_type == 1:
            parts = [image, integers(*labels), *([box] if random.random() < 0.7 else [])]
        else:
            parts = [image, integers(*labels), floats(len(labels)), box]
        if random.random() < 0.1:
            parts[random.randrange(len(parts))] = random.choice([image, box, floats(5), b"\x08"])
        yield b"".join(wire.mixed((1,), [wire.message(1, part)]) for part in parts)


def caffe2(root, wire, only=None, label_type=0):
    records = list(tensor_records(wire, label_type))
    records[0] = list(tensor_records(RandomWire(77), label_type))[1]  # which tells the types
    folder = root / f"lmdb {only is None}"
    shutil.rmtree(folder, ignore_errors=True)
    caffe_records.write(folder, [records[k] for k in only or range(len(records))])
    more = int(label_type != 1)
    how = {"additional_inputs": more, "bbox": label_type in (0, 2), "num_labels": 6}
    return fn.readers.caffe2, {"path": str(folder), "label_type": label_type, **how}


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


def mixed(root, wire, only=None):
    """Readers that are alike, others, and one whose outputs are columns and bytes."""
    tensors = [tf(root, wire), mxnet(root, wire), caffe(root, wire)]
    (root / "two").mkdir(exist_ok=True)
    tensors.append(tf(root / "two", wire))
    names = [str(root / f"{k}.bin") for k in range(20)]
    for k, name in enumerate(names):
        Path(name).write_bytes(bytes([k]) * k)

    def reader(**order):
        found = [make(**args, **order) for make, args in tensors]
        firsts = [next(iter(f.values())) if isinstance(f, dict) else f[0] for f in found]
        bytes_of_files = fn.readers.file(files=names, **order)[0]
        alike = fn.readers.mix([list(found[k].values())[:2] for k in (0, 3)])
        return [*fn.readers.mix([*firsts, bytes_of_files]), *alike]

    return reader, {}


FORMATS = {
    "tfrecord": (tf, TFRecordReader),
    "mxnet": (mxnet, MXNetReader),
    "caffe": (caffe, CaffeReader),
    **{f"caffe2 {kind}": (partial(caffe2, label_type=kind), Caffe2Reader) for kind in (0, 1, 2, 3)},
    "webdataset": (archive, WebdatasetReader),
    "mix": (mixed, None),
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


@pytest.mark.sweep
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


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "mix"])
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


def test_long_records_are_parsed_together(tmp_path, monkeypatch):
    """Those of other operators that are light are not, beyond 48 kB."""
    content = bytes(range(256)) * 250
    records = [record_io.record(record_io.image([k, 7.0], content, k)) for k in range(32)]
    args = record_io.write(tmp_path / "some.rec", records)
    monkeypatch.setattr(MXNetReader, "cpu", lambda *_: pytest.fail("parsed alone"))
    set_chunks("64:64", monkeypatch.setattr)
    pipe = Pipeline(BATCH, 1, None, workers="threads")
    with pipe:
        data, labels = fn.readers.mxnet(**args)
        pipe.set_outputs(data, labels, data[:3] + 1)
    for batch in range(2):
        data, labels, first = pipe.run()
        for k in range(BATCH):
            assert np.asarray(data.at(k)).tobytes() == content
            assert np.asarray(labels.at(k)).tolist() == [16 * batch + k, 7]
            assert np.asarray(first.at(k)).tolist() == [1, 2, 3]


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
