"""`fn.readers.caffe` and `fn.readers.caffe2` against DALI, on data bases that LMDB itself wrote."""

from __future__ import annotations

import lmdb
import numpy as np
import pytest

from headrace import errors
from headrace.experimental import dynamic
from headrace.kernels.cpu.lmdb_pages import read_extents
from tests.parity.support import LIBRARIES, assert_both_raise, compare_outputs, run_graph
from tests.support.caffe_records import (
    BYTE,
    DOUBLE,
    FLOAT,
    INT64,
    STRING,
    datum,
    field,
    floats,
    ints,
    record,
    tensor,
    varint,
    write,
)

IMAGE = tensor(STRING, [1], field(6, b"hello"))
PIXELS = tensor(BYTE, [2, 3, 2], field(5, bytes(range(12))))
PLAIN = field(7, 0)
"""The field of a ``Datum`` that says that it is not encoded."""


def both(operator, path, batch_size=3, iterations=3, **arguments):
    def graph(lib):
        outputs = getattr(lib.fn.readers, operator)(path=path, **arguments)
        outputs = tuple(outputs) if isinstance(outputs, (list, tuple)) else (outputs,)
        if arguments.get("image_available", True):
            outputs += (lib.fn.get_property(outputs[0], key="source_info"),)
        return outputs

    compare_outputs(
        *(run_graph(lib, graph, batch_size=batch_size, iterations=iterations) for lib in LIBRARIES),
        max_levels=0,
    )


@pytest.fixture(scope="module")
def bases(tmp_path_factory):
    root = tmp_path_factory.mktemp("bases")
    rng = np.random.default_rng(0)
    # The large ones fill pages of their own.
    sizes = rng.choice([0, 1, 30, 800, 5000, 70_000], 150)
    images = [rng.bytes(size) for size in sizes]
    return (
        write(root / "many", [datum(image, k * 7 - 30) for k, image in enumerate(images)]),
        write(root / "few", [datum(b"x" * k, k) for k in range(1, 4)], "image {}"),
    )


def test_data_bases(bases):
    many, few = bases
    both("caffe", many, batch_size=64)
    both("caffe", [few, many], batch_size=100)
    both("caffe", few, image_available=False)
    both("caffe", few, label_available=False)
    for options in (
        {"random_shuffle": True, "initial_fill": 3},
        {"random_shuffle": True, "seed": 5},
        {"num_shards": 4, "shard_id": 1, "batch_size": 25},
        {"num_shards": 4, "shard_id": 3, "stick_to_shard": True, "pad_last_batch": True},
    ):
        both("caffe", many, **options)


def test_datums(tmp_path):
    unknown = field(99, b"x") + field(98, 5) + field(97, 1.5) + varint(96 << 3 | 1) + b"12345678"
    records = {
        "labels": [datum(b"a", 2**31 + 5), datum(b"", -7), datum(b"abc"), b""],
        "pixels": [datum(bytes(range(60)), 3, PLAIN), datum(b"", 1, PLAIN, shape=(0, 0, 0))],
        "others": [datum(b"ab", 3, unknown), datum(b"ab", 3) + datum(b"cde", 4), datum(b"1", 2)],
    }
    for name, each in records.items():
        both("caffe", write(tmp_path / name, each), batch_size=len(each), iterations=1)
    reader = dynamic.readers.Caffe(path=str(tmp_path / "labels"), label_available=False)
    found = [bytes(np.asarray(image)) for (image,) in reader.next_epoch()]
    assert found == [b"a", b"", b"abc", b""]


@pytest.mark.parametrize(
    ("records", "arguments"),
    [
        ([record(IMAGE, ints(5)), record(IMAGE, ints(-6, packed=False))], {}),
        ([record(PIXELS, floats(5.5))], {"num_labels": 3}),
        ([record(tensor(BYTE, [2, 2], field(5, b"abcd")), ints(1))], {}),
        ([record(tensor(STRING, [2], field(6, b"a"), field(6, b"bcd")), ints(1))], {}),
        ([record(IMAGE, field(1, 1) + field(3, 2.5))], {}),
        ([record(ints(7))], {"image_available": False}),
        ([record(IMAGE)], {"label_type": 4}),
        ([record(IMAGE, floats(0.1, 2, 3)), record(IMAGE, floats(1))], {"label_type": 2}),
        ([record(IMAGE, ints(1, 2))], {"label_type": 2}),
        (
            [record(IMAGE, ints(1, 3, 1), floats(0.5, 1, 2), ints(2, 7, 1, 1))],
            {"label_type": 3, "num_labels": 4, "additional_inputs": 1},
        ),
        ([record(IMAGE, ints(7), ints(1, 2, 3, 4))], {"bbox": True}),
        (
            [
                record(
                    IMAGE,
                    ints(7),
                    tensor(FLOAT, [2, 1], field(3, 1.0), field(3, 2.0)),
                    tensor(INT64, [2], field(10, 1), field(10, 2**40)),
                    ints(1, 2, 3, 4),
                )
            ],
            {"additional_inputs": 2, "bbox": True},
        ),
    ],
)
def test_tensors(tmp_path, records, arguments):
    path = write(tmp_path, records)
    both("caffe2", path, batch_size=len(records), iterations=1, **arguments)


def test_numbers_of_labels(tmp_path):
    """DALI fails with all of these."""
    path = write(tmp_path, [record(IMAGE, ints(1, 3)), record(IMAGE, ints(0), floats(2.5))])
    found = run_graph(
        "headrace",
        lambda lib: tuple(
            lib.fn.readers.caffe2(path=path, label_type=1, num_labels=4, additional_inputs=0)
        ),
        batch_size=2,
    )
    _, labels, boxes = [output.samples for output in found[0]]
    np.testing.assert_array_equal(labels, [[0, 1, 0, 1], [1, 0, 0, 0]])
    assert [box.shape for box in boxes] == [(0,), (0,)]


def test_errors(bases, tmp_path):
    (tmp_path / "none").mkdir()
    (tmp_path / "text").mkdir()
    (tmp_path / "text/data.mdb").write_bytes(b"no data base" * 1000)
    (tmp_path / "cut").mkdir()
    content = (tmp_path / bases[0] / "data.mdb").read_bytes()
    (tmp_path / "cut/data.mdb").write_bytes(content[: len(content) // 8])
    write(tmp_path / "empty", [])
    wrong = write(tmp_path / "wrong", [b"\xff" * 4])
    for path, words in (
        ("none", "no folder with a data base"),
        ("empty", "has no entries"),
        ("wrong", "Error while parsing Caffe"),
    ):
        assert_both_raise(
            lambda lib: tuple(lib.fn.readers.caffe(path=str(tmp_path / path))),  # noqa: B023
            match=words,
        )
    for path, words in (("text", "does not begin as"), ("cut", "page is missing")):
        with pytest.raises(errors.ArgumentValueError, match=words):
            next(iter(dynamic.readers.Caffe(path=str(tmp_path / path)).next_epoch()))
    mixed = write(tmp_path / "mixed", [datum(bytes(60), 1, PLAIN), datum(b"a", 1)])
    sizes = write(tmp_path / "sizes", [datum(bytes(59), 1, PLAIN)])
    for path, words in ((mixed, "as the first"), (sizes, "does not match"), (wrong, "Datum")):
        assert_both_raise(
            lambda lib: tuple(lib.fn.readers.caffe(path=path)),  # noqa: B023
            batch_size=2,
            match=words,
        )
    for number, (records, arguments, words) in enumerate(
        (
            ([b"\xff" * 3], {}, "Error while parsing Caffe2"),
            ([record(IMAGE)], {}, "no label"),
            ([record(IMAGE, ints(1, 2))], {}, "expected 1"),
            ([record(IMAGE, tensor(INT64, [1], field(10, 1)))], {}, "Unsupported label data type"),
            ([record(ints(3), ints(1))], {}, "The image is a tensor"),
            ([record(tensor(BYTE, [2, 2], field(5, b"abc")), ints(1))], {}, "size mismatch"),
            ([record(IMAGE, ints(1))], {"label_type": 5}, "Unsupported label type"),
            (
                [record(IMAGE, ints(9))],
                {"label_type": 1, "num_labels": 4},
                "Label index out of bounds",
            ),
            ([record(IMAGE, ints(1))], {"bbox": True}, "no box"),
            ([record(IMAGE, ints(1), floats(1, 2, 3, 4))], {"bbox": True}, "no box"),
            (
                [record(IMAGE, ints(1), tensor(DOUBLE, [1], field(9, b"8" * 8)))],
                {"additional_inputs": 1},
                "Unsupported data type",
            ),
            ([record(IMAGE, ints(1)), record(PIXELS, ints(1))], {}, "numbers of dimensions"),
            ([record(IMAGE, ints(1)), record(IMAGE, floats(1))], {}, "same types"),
        )
    ):
        path = write(tmp_path / f"{number}", records)
        assert_both_raise(
            lambda lib: tuple(lib.fn.readers.caffe2(path=path, **arguments)),  # noqa: B023
            batch_size=2,
            match=words,
        )


def test_places_of_values(tmp_path):
    """Whatever was written, changed and deleted: what LMDB finds is where it is said to lie."""
    rng = np.random.default_rng(1)
    with lmdb.open(str(tmp_path), map_size=1 << 28) as base:
        for size in (20, 500, 3000):
            with base.begin(write=True) as work:
                for _ in range(1500):
                    key = f"{rng.integers(4000):0{rng.integers(1, 40)}}".encode()
                    work.put(key, rng.bytes(rng.integers(size)))
                for key, _ in list(work.cursor())[::3]:
                    work.delete(key)
        with base.begin() as work:
            want = list(work.cursor())
    content = (tmp_path / "data.mdb").read_bytes()
    keys, offsets, sizes = read_extents(str(tmp_path / "data.mdb"))
    assert len(want) > 1000
    assert want == [
        (key, content[offset : offset + size])
        for key, offset, size in zip(keys, offsets.tolist(), sizes.tolist(), strict=True)
    ]
    with lmdb.open(str(tmp_path), max_dbs=1) as base:
        base.open_db(b"inner")
    with pytest.raises(ValueError, match="data bases within it"):
        read_extents(str(tmp_path / "data.mdb"))
