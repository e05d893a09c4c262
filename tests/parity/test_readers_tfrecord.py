"""`fn.readers.tfrecord` against DALI, and what its own records of defaults are worth."""

from __future__ import annotations

import struct

import numpy as np
import nvidia.dali.tfrecord
import pytest

import headrace.experimental.dynamic as ndd
import headrace.tfrecord
from tests.parity.support import LIBRARIES, assert_both_raise, compare_outputs, run_graph
from tests.support import tf_records
from tests.support.messages import MESSAGES, RandomWire

_MODULES = {"nvidia.dali": nvidia.dali.tfrecord, "headrace": headrace.tfrecord}


def varint(number):
    number &= (1 << 64) - 1
    found = b""
    while number > 127:
        found += bytes([number & 127 | 128])
        number >>= 7
    return found + bytes([number])


def field(number, content):
    return varint(number << 3 | 2) + varint(len(content)) + content


def feature(values, packed):
    if values and isinstance(values[0], bytes):
        return field(1, b"".join(field(1, value) for value in values))
    floats = bool(values) and isinstance(values[0], float)
    numbers = [struct.pack("<f", v) if floats else varint(v) for v in values]
    tag = b"\x0d" if floats else b"\x08"
    content = field(1, b"".join(numbers)) if packed else b"".join(tag + n for n in numbers)
    return field(2 if floats else 3, content)


def example(features, packed=True):
    entries = [
        field(1, field(1, name.encode()) + field(2, feature(values, packed)))
        for name, values in features.items()
    ]
    return field(1, b"".join(entries))


def write(root, name, examples, *, checksums=True):
    plain = [struct.pack("<QI", len(each), 0) + each + bytes(4) for each in examples]
    tf_records.write(
        root / f"{name}.rec", [*map(tf_records.frame, examples)] if checksums else plain
    )


RECORDS = [
    {"image": [b"jpeg0"], "label": [3], "box": [0.5, 1.5], "list": [1, 2, 3, 300, 2**40, -9]},
    {"image": [b"jpeg-one" * 40], "label": [-7], "box": [2.0, -3.0], "list": []},
    {"image": [b"aa", b"bbb"], "label": [2**62], "box": [1.0, 2.0], "list": [4, 5]},
    {"image": [b"x"], "label": [0], "box": [8.0, 9.0], "list": [6, 7, 8, 9], "extra": [1.0]},
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("records")
    write(root, "packed", [example(each) for each in RECORDS])
    write(root, "single", [example(each, packed=False) for each in RECORDS], checksums=False)
    write(root, "less", [example({"label": [5]})])
    return root


def usual(t):
    return {
        "image": t.FixedLenFeature((), t.string, ""),
        "label": t.FixedLenFeature([1], t.int64, -1),
        "box": t.FixedLenFeature([2], t.float32, 0.0),
        "list": t.VarLenFeature(t.int64, 0),
    }


def graph(root, names, features=usual, **arguments):
    def read(lib):
        paths, index = ([str(root / f"{n}.{end}") for n in names] for end in ("rec", "idx"))
        options = {"path": paths, "index_path": index} | arguments
        options["features"] = features(_MODULES[lib.__name__])
        found = lib.fn.readers.tfrecord(**options)
        assert list(found) == list(options["features"])
        outputs = list(found.values())
        return *outputs, lib.fn.get_property(outputs[0], key="source_info")

    return read


def assert_same(*args, batch_size=3, **arguments):
    outputs = [
        run_graph(library, graph(*args, **arguments), batch_size=batch_size, iterations=4)
        for library in LIBRARIES
    ]
    compare_outputs(*outputs)


def test_records(root):
    assert_same(root, ["packed"])
    assert_same(root, ["single", "packed"])
    for arguments in (
        {"random_shuffle": True, "initial_fill": 3},
        {"random_shuffle": True, "seed": 5},
        {"num_shards": 2, "shard_id": 1},
        {"num_shards": 2, "stick_to_shard": True, "pad_last_batch": True},
        {"use_o_direct": True, "dont_use_mmap": True},
    ):
        assert_same(root, ["packed", "single"], **arguments)
    assert_same(
        root,
        ["packed"],
        lambda t: {
            "box": t.FixedLenFeature([2, 1], t.float32, 0.0),
            "label": t.FixedLenFeature((), t.int64, 0),
            "list": t.VarLenFeature([2], t.int64, 0),
        },
    )


def test_every_way_to_write(tmp_path):
    """Unknown fields, lists in pieces, numbers that are longer than they need be, ..."""
    wire, examples = RandomWire(1), []
    while len(examples) < 40:
        data = wire.example([b"image", b"list"])
        entries = MESSAGES["PlainExample"].FromString(data).features.entry
        features = {entry.key: entry.value for entry in entries}
        if {b"image", b"list"} <= features.keys() and (
            features[b"image"].bytes_list.value and features[b"list"].int64_list.value
        ):
            examples.append(data)
    write(tmp_path, "random", examples)
    wanted = lambda t: {n: usual(t)[n] for n in ("image", "list")}  # noqa: E731
    assert_same(tmp_path, ["random"], wanted, batch_size=10)


def test_sequences(tmp_path):
    """The context is read as the features of an `Example`; DALI has nothing for lists of others."""
    sequence = MESSAGES["SequenceExample"]()
    sequence.context.feature["label"].int64_list.value.append(7)
    sequence.feature_lists.feature_list["image"].feature.add().bytes_list.value.append(b"frame")
    write(tmp_path, "sequence", [sequence.SerializeToString()])
    label = lambda t: {"label": t.FixedLenFeature([1], t.int64, 0)}  # noqa: E731
    assert_same(tmp_path, ["sequence"], label, batch_size=1)
    image = lambda t: {"image": t.FixedLenFeature((), t.string, "")}  # noqa: E731
    with pytest.raises(headrace.errors.BadSampleError, match="'image' is in the `feature_lists`"):
        run_graph("headrace", graph(tmp_path, ["sequence"], image), batch_size=1)


def test_what_records_lack(root):
    """DALI makes numbers of whatever is in memory."""

    def features(t):
        return {
            "a": t.FixedLenFeature([2, 3], t.int64, 7),
            "b": t.FixedLenFeature((), t.float32, 1.5),
            "c": t.FixedLenFeature((), t.string, "none"),
            "d": t.VarLenFeature([2], t.float32, 1.0),
        }

    ((a, b, c, d, _),) = run_graph("headrace", graph(root, ["less"], features), batch_size=1)
    np.testing.assert_array_equal(a.samples[0], np.full((2, 3), 7))
    assert b.samples[0] == 1.5
    assert bytes(c.samples[0]) == b"none"
    assert d.samples[0].shape == (0, 2)


def test_dynamic_mode(root):
    reader = ndd.readers.TFRecord(
        path=[str(root / "packed.rec")],
        index_path=[str(root / "packed.idx")],
        features=usual(headrace.tfrecord),
    )
    labels = [step["label"] for step in reader.next_epoch()]
    assert [int(np.asarray(label)[0]) for label in labels] == [each["label"][0] for each in RECORDS]


def test_errors(root):
    (root / "cut.rec").write_bytes((root / "packed.rec").read_bytes()[:30])
    (root / "cut.idx").write_text("0 30\n")
    (root / "text.idx").write_text("no numbers here\n")
    (root / "empty.idx").write_text("")
    label = lambda t: {"label": t.VarLenFeature(t.int64, 0)}  # noqa: E731
    for args, arguments, words in (
        ((["packed"], label), {"index_path": [str(root / "none.idx")]}, "cannot be opened"),
        ((["packed"], label), {"index_path": [str(root / "empty.idx")]}, "No records"),
        (
            (["packed", "single"], label),
            {"index_path": [str(root / "packed.idx")]},
            "needs to match",
        ),
        ((["none"], label), {"index_path": [str(root / "packed.idx")]}, "does not exist"),
        ((["packed"], lambda t: {}), {}, "empty"),
        (
            (["packed"], lambda t: {"label": 10}),
            {},
            "Expected `headrace.tfrecord.Feature` for the \"label\", but got <class 'int'>",
        ),
        (
            (["packed"], lambda t: {"list": t.FixedLenFeature([2], t.int64, 0)}),
            {},
            "Expected at least 6 elements",
        ),
        ((["packed"], lambda t: {"list": t.VarLenFeature([4], t.int64, 0)}), {}, "partial shape"),
        ((["packed"], lambda t: {"image": t.VarLenFeature(t.string, "")}), {}, "not supported"),
    ):
        assert_both_raise(graph(root, *args, **arguments), batch_size=1, match=words)
    for args, arguments, words in (
        ((["cut"], label), {}, "damaged"),
        ((["packed"], label), {"index_path": [str(root / "text.idx")]}, "two numbers"),
        (
            (["packed"], lambda t: {"label": t.FixedLenFeature([1], t.float32, 0.0)}),
            {},
            "another type",
        ),
        ((["packed"], lambda t: 5), {}, "dict of"),
        (  # DALI reads on behind the record's elements
            (["packed"], lambda t: {"list": t.FixedLenFeature([7], t.int64, 0)}),
            {},
            "too large .* Expected at most 6 elements",
        ),
    ):
        with pytest.raises(headrace.errors.HeadraceError, match=words):
            run_graph("headrace", graph(root, *args, **arguments), batch_size=1)
