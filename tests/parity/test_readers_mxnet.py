"""`fn.readers.mxnet` against DALI."""

from __future__ import annotations

import struct

import numpy as np
import pytest

from tests.parity.support import LIBRARIES, assert_both_raise, compare_outputs, run_graph

RECORDS = [(3.5, b"hello"), (1, b"image two"), ([1, 2, 3.25], b"img3"), (7, b""), (2, b"x" * 99)]


def part(kind, data):
    return struct.pack("<II", 0xCED7230A, kind << 29 | len(data)) + data + b"\0" * (-len(data) % 4)


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("records")
    for name, in_parts in (("whole", False), ("parts", True)):
        data, places = b"", []
        for k, (label, image) in enumerate(RECORDS):
            several = np.ndim(label) > 0
            head = struct.pack("<IfQQ", len(label) if several else 0, 0 if several else label, k, 0)
            record = head + (np.array(label, "<f4").tobytes() if several else b"") + image
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
    assert_both_raise(
        lambda lib: tuple(
            lib.fn.readers.mxnet(
                path=[str(root / "whole.rec")] * 2, index_path=[str(root / "whole.idx")] * 2
            )
        ),
        match="single file",
    )
