"""`fn.readers.mxnet` against DALI."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from headrace import errors
from tests.parity.support import LIBRARIES, assert_both_raise, compare_outputs, run_graph
from tests.support import record_io
from tests.support.record_io import MAGIC, part

RECORDS = [(3.5, b"hello"), (1, b"image two"), ([1, 2, 3.25], b"img3"), (7, b""), (2, b"x" * 99)]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("records")
    for name, in_parts in (("whole", False), ("parts", True)):
        data, places = b"", []
        for k, (label, image) in enumerate(RECORDS):
            record = record_io.image(label, image, k)
            places.append(len(data))
            if in_parts:
                data += part(1, record[:37]) + part(2, record[37:39]) + part(3, record[39:])
            else:
                data += part(0, record)
        (root / f"{name}.rec").write_bytes(data)
        lines = [f"{k}\t{place}" for k, place in enumerate(places)]
        (root / f"{name}.idx").write_text("\n".join(lines) + "\n")
        (root / f"{name}.reversed.idx").write_text("\n".join(lines[::-1]))
        (root / f"{name}.some.idx").write_text("\n".join(lines[:3]))
    return root


def graph(root, name="whole", index=None, **arguments):
    def read(lib):
        images, labels = lib.fn.readers.mxnet(
            path=str(root / f"{name}.rec"),
            index_path=[str(root / f"{index or name}.idx")],
            **arguments,
        )
        return images, labels, lib.fn.get_property(images, key="source_info")

    return read


def test_records(root):
    for options in (
        {},
        {"name": "parts"},
        {"index": "whole.reversed"},
        {"index": "whole.some"},
        {"random_shuffle": True, "initial_fill": 3},
        {"random_shuffle": True, "seed": 5},
        {"num_shards": 2, "shard_id": 1},
        {"num_shards": 2, "stick_to_shard": True, "pad_last_batch": True},
    ):
        outputs = [
            run_graph(library, graph(root, **options), batch_size=3, iterations=4)
            for library in LIBRARIES
        ]
        compare_outputs(*outputs)


def test_errors(root, tmp_path):
    (root / "empty.idx").write_text("\n")
    (root / "text.idx").write_text("no numbers here\n")
    (root / "far.idx").write_text("0\t3\n1\t9999\n")
    (root / "noise.rec").write_bytes(b"x" * 100)
    for options, words in (
        ({"index": "none"}, "cannot be opened"),
        ({"index": "empty"}, "lists no record"),
        ({"index": "text"}, "expected two numbers"),
        ({"index": "far"}, "."),
        ({"name": "none", "index": "whole"}, "does not exist"),
        ({"name": "noise", "index": "whole"}, "."),
    ):
        assert_both_raise(graph(root, **options), batch_size=1, match=words)
    for paths, indexes in ((2, 2), (1, 2), (1, 0)):
        assert_both_raise(
            lambda lib: tuple(
                lib.fn.readers.mxnet(
                    path=[str(root / "whole.rec")] * paths,  # noqa: B023
                    index_path=[str(root / "whole.idx")] * indexes,  # noqa: B023
                )
            ),
            match="single file",
        )
    with pytest.raises(errors.ArgumentValueError, match=r"no_such.rec' does not exist"):
        read(root, ["whole.rec", "no_such.rec"], "whole.idx")
    with pytest.raises(errors.ArgumentValueError, match="has a record at byte 9999"):
        read(root, ["whole.rec", "noise.rec"], "far.idx")


def read(root, names, index, lib="headrace"):
    """All records of several files that are read as one."""

    def graph(lib):
        paths = [str(root / name) for name in names]
        images, labels = lib.fn.readers.mxnet(path=paths, index_path=str(root / index))
        return images, labels, lib.fn.get_property(images, key="source_info")

    return run_graph(lib, graph, batch_size=9, iterations=2)


def test_random_records(tmp_path):
    """Contents with the magic number in all places; and a file that is cut into several."""
    rng = random.Random(3)
    pieces = [MAGIC, MAGIC[:2], b"x", b"four", b""]
    contents = [b"".join(rng.choices(pieces, k=rng.randint(0, 7))) for _ in range(30)]
    records = [record_io.record(record_io.image(k, data)) for k, data in enumerate(contents)]
    record_io.write(tmp_path / "whole.rec", records)
    found = read(tmp_path, ["whole.rec"], "whole.idx")
    assert [bytes(image) for images, *_ in found for image in images.samples] == contents[:18]
    compare_outputs(found, read(tmp_path, ["whole.rec"], "whole.idx", "dali"))
    content = (tmp_path / "whole.rec").read_bytes()
    for cuts in (
        (len(records[0]),),
        (37, 70),
        (5, 6, 7, 8, 300),
        (0, 10, len(content), len(content)),
    ):
        ends = [0, *cuts, len(content)]
        names = [f"{k}.rec" for k in range(len(ends) - 1)]
        for name, (begin, end) in zip(names, pairwise(ends), strict=True):
            (tmp_path / name).write_bytes(content[begin:end])
        several = read(tmp_path, names, "whole.idx")
        compare_outputs([batch[:2] for batch in several], [batch[:2] for batch in found])
        if len(cuts) < 3:  # DALI looks for the rest of a record in one further file
            compare_outputs(several, read(tmp_path, names, "whole.idx", "dali"))


def test_parts_out_of_place(tmp_path):
    image = record_io.image(1, b"abcd")
    for parts in ([(2, image)], [(3, image)], [(1, image), (1, b"")], [(1, image), (0, b"")]):
        record_io.write(tmp_path / "wrong.rec", [b"".join(part(*each) for each in parts)])
        with pytest.raises(errors.BadSampleError, match=r"wrong.rec.* at index 0|part of kind"):
            read(tmp_path, ["wrong.rec"], "wrong.idx")
