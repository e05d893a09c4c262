"""Indexes of all kinds, in pipelines and in dynamic mode: what they say is what comes out."""

from __future__ import annotations

import pickle
import zlib

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn, types
from headrace.errors import ArgumentValueError, BadSampleError, ShapeError
from headrace.executor.loader import Loader
from headrace.operators import (
    FileIndex,
    Index,
    Planned,
    RaggedColumn,
    Reader,
    Spec,
    reader,
)
from headrace.operators.support import registry

COUNT = 7
CONTENTS = [bytes(range(k, 3 * k + 4)) for k in range(COUNT)]
BOXES = [np.arange(4 * k, dtype=np.float32).reshape(k, 4) for k in range(COUNT)]


@pytest.fixture
def declare():
    """Makes `fn.readers.made` and `ndd.readers.Made` of a class, for the time of a test."""

    def made(cls, **traits):
        reader("readers.made", **traits)(cls)

    yield made
    registry._schemas.pop("readers.made", None)
    vars(ndd.readers).pop("Made", None)
    vars(fn.readers).pop("made", None)


@pytest.fixture
def extents(tmp_path):
    """Contents in two files, and where they are: files, offsets and sizes."""
    places = []
    for number in range(2):
        at = 5
        with open(tmp_path / str(number), "wb") as file:
            file.write(bytes(at))
            for k in range(number, COUNT, 2):
                file.write(CONTENTS[k])
                places.append((k, number, at, len(CONTENTS[k])))
                at += len(CONTENTS[k])
    return [str(tmp_path / "0"), str(tmp_path / "1")], np.array(sorted(places))[:, 1:].T


def ragged():
    return RaggedColumn(np.concatenate(BOXES), np.cumsum([len(b) for b in BOXES]))


def batches(behind=None, **settings):
    """Samples of a pipeline, as tuples of arrays, and their sources: two epochs."""
    settings = {"batch_size": 4, "num_threads": 2, "device_id": None} | settings
    pipe = Pipeline(**settings)
    with pipe:
        outputs = fn.readers.made()
        outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
        pipe.set_outputs(*outputs, *(behind(*outputs) if behind else ()))
    found, sources = [], []
    for _ in range(4):
        batch = pipe.run()
        found += list(
            zip(*[[np.array(each.at(k)) for k in range(4)] for each in batch], strict=True)
        )
        sources += [batch[0][k].source_info() for k in range(4)]
    return found[: 2 * COUNT], sources[:COUNT], pipe


def dynamic(size=3):
    found = []
    for batch in ndd.readers.Made().next_epoch(batch_size=size):
        found += list(zip(*[[np.asarray(s) for s in each] for each in batch], strict=True))
    return found[:COUNT]


def check(found, *columns):
    for k, sample in enumerate(found):
        for value, column in zip(sample, columns, strict=True):
            np.testing.assert_array_equal(value, column[k % COUNT])
            assert value.dtype == np.asarray(column[k % COUNT]).dtype


def arrays(contents):
    return [np.frombuffer(content, np.uint8) for content in contents]


@pytest.mark.parametrize("threads", [1, 3])
def test_extents_and_columns(declare, extents, threads):
    paths, (files, offsets, sizes) = extents
    labels = np.arange(COUNT, dtype=np.int16)

    class Made(Reader):
        """Extents."""

        def list_entries(self):
            return FileIndex(
                paths, files=files, offsets=offsets, sizes=sizes, columns=[labels, ragged()]
            )

    declare(Made, num_outputs=3)
    found, sources, _ = batches(num_threads=threads)
    check(found, arrays(CONTENTS), labels, BOXES)
    assert sources == [f"{paths[f]} at index {o}" for f, o in zip(files, offsets, strict=True)]
    check(dynamic(), arrays(CONTENTS), labels, BOXES)
    # And where something follows in the same stage.
    found, _, _ = batches(lambda data, label, boxes: (label * label, boxes + 1))
    squares = (labels * labels).astype(np.int16)
    check(found, arrays(CONTENTS), labels, BOXES, squares, [b + np.float32(1) for b in BOXES])


@pytest.mark.parametrize("behind", [False, True])
def test_entries_of_several_pieces(declare, extents, behind):
    paths, (files, offsets, sizes) = extents
    turned = np.arange(COUNT)[::-1]
    pairs = [np.stack([each, each[turned]], axis=1) for each in (files, offsets, sizes)]

    class Made(Reader):
        """An entry, and the one at its place from the end."""

        def list_entries(self):
            return FileIndex(paths, files=pairs[0], offsets=pairs[1], sizes=pairs[2])

    declare(Made, num_outputs=2)
    data = arrays(CONTENTS)
    expected = [data, data[::-1]]
    if behind:
        expected += [[d.astype(np.int32) + 1 for d in data[::-1]]]
    found, _, _ = batches((lambda first, second: (second + 1,)) if behind else None)
    check(found, *expected)
    check(dynamic(), *expected[:2])


class Inflating(Reader):
    """Inflates what it reads, and multiplies it by a detail."""

    def cpu(self, c, record, factor):
        return np.frombuffer(zlib.decompress(record), np.uint8) * factor.astype(np.uint8)


def test_a_parser_gets_details(declare, tmp_path):
    for k, content in enumerate(CONTENTS):
        (tmp_path / str(k)).write_bytes(zlib.compress(content))
    factors = np.arange(2, 2 + COUNT)

    class Made(Inflating):
        """Details."""

        def list_entries(self):
            names = [str(k) for k in range(COUNT)]
            return FileIndex(names, root=str(tmp_path), columns=[ragged()], details=[factors])

        def infer(self, record, factor):
            assert (record, factor) == (Spec(types.UINT8, 1), Spec(types.INT64, 0))
            return record

    declare(Made, num_outputs=2)
    expected = [d * np.uint8(f) for d, f in zip(arrays(CONTENTS), factors, strict=True)]
    found, sources, _ = batches()
    check(found, expected, BOXES)
    assert sources == [str(k) for k in range(COUNT)]
    check(dynamic(), expected, BOXES)


@pytest.mark.in_threads
def test_a_parser_plans_several_entries_at_once(declare, tmp_path):
    """A byte says how often the next one is to be repeated."""
    for k in range(COUNT):
        (tmp_path / str(k)).write_bytes(bytes([k, 10 * k]))
    planned = []

    class Made(Reader):
        """Repeats."""

        plans_values = True

        def list_entries(self):
            return FileIndex([str(tmp_path / str(k)) for k in range(COUNT)])

        def plan(self, c, data):
            planned.append(c.size)
            return Planned(np.array([[row[0]] for row in data.rows], np.int64))

        def cpu(self, c, data):
            out = c.out
            out[...] = data[1]
            return out

    declare(Made)
    expected = [np.full(k, 10 * k, np.uint8) for k in range(COUNT)]
    check(batches(num_threads=1)[0], expected)
    assert max(planned) > 1
    check(dynamic(), expected)


def test_columns_alone(declare):
    class Made(Reader):
        """Reads nothing."""

        def list_entries(self):
            return Index(COUNT, columns=[np.arange(COUNT), ragged()])

    declare(Made, num_outputs=2)
    check(batches()[0], np.arange(COUNT), BOXES)
    check(dynamic(), np.arange(COUNT), BOXES)


class Far(Index):
    """Bytes that are kept nowhere; one entry cannot be had at the first try, one never."""

    def __init__(self):
        super().__init__(COUNT, [Spec(types.UINT8, 1)], columns=[np.arange(COUNT)])
        self.tried = []

    def source(self, entry):
        return f"far {entry}"

    def fetch_together(self, entries, empty):
        return [None if e in (2, 5) else arrays(CONTENTS)[e].copy() for e in entries]

    def fetch(self, entry):
        self.tried.append(entry)
        if entry == 5:
            raise BadSampleError("too far")
        return (arrays(CONTENTS)[entry],)


@pytest.mark.in_threads
def test_what_cannot_be_had_with_others_is_fetched_alone(declare):
    index = Far()

    class Made(Reader):
        """Reads from afar."""

        def list_entries(self):
            return index

    declare(Made, num_outputs=2)
    with pytest.raises(BadSampleError, match=r'too far[^\0]*read from "far 5"'):
        batches()
    found, _, pipe = batches(on_bad_sample="skip")
    for data, number in found:
        assert bytes(data) == CONTENTS[int(number)]
    assert {int(number) for _, number in found} == set(range(COUNT)) - {5}
    assert {bad.source for bad in pipe.bad_samples} == {"far 5"}
    assert set(index.tried) == {2, 5}


@pytest.mark.in_threads
def test_extents_of_addresses(declare):
    system = pytest.importorskip("fsspec").filesystem("memory")
    whole = b"".join(CONTENTS)
    system.pipe({"/data/all": whole})
    ends = np.cumsum([len(content) for content in CONTENTS])

    class Made(Reader):
        """Extents of a remote file."""

        def list_entries(self):
            begins = np.concatenate(([0], ends[:-1]))
            files = np.zeros(COUNT, int)
            return FileIndex(
                ["memory://data/all"], files=files, offsets=begins, sizes=ends - begins
            )

    declare(Made)
    try:
        check(batches()[0], arrays(CONTENTS))
        check(dynamic(), arrays(CONTENTS))
        system.pipe({"/data/all": whole[:-3]})
        with pytest.raises(BadSampleError, match=r"memory://data/all.* has \d+ of the \d+ bytes"):
            batches()
    finally:
        system.rm("/data", recursive=True)


def test_an_index_can_be_pickled(extents):
    paths, (files, offsets, sizes) = extents
    index = FileIndex(paths, files=files, offsets=offsets, sizes=sizes, columns=[ragged()])
    entries = np.array([3, 0, 6])
    first = Loader(index).load(entries, np.empty)
    copy = pickle.loads(pickle.dumps(index))
    again = Loader(copy).load(entries, np.empty)
    assert first.missing == again.missing == []
    assert [row.tobytes() for row in again.columns[0]] == [CONTENTS[e] for e in entries]
    for k, entry in enumerate(entries):
        np.testing.assert_array_equal(again.columns[1][k], BOXES[entry])
    assert first.sources == again.sources


def test_large_files_are_left_to_the_parser(tmp_path):
    for k, size in enumerate((10, 100, 10)):
        (tmp_path / str(k)).write_bytes(bytes(size))
    loader = Loader(FileIndex(["0", "1", "2"], root=str(tmp_path), largest_bytes=50))
    loaded = loader.load(np.arange(3), np.empty)
    assert loaded.missing == [1]
    assert [len(row) for row in loaded.columns[0]] == [10, 10]
    assert loader.fetch(None, 1) == (str(tmp_path / "1"),)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"offsets": [1, 2], "sizes": [1]}, r"shapes \[\(1,\), \(2,\)\]"),
        ({"files": [0, 3]}, "about files 0 to 3 where there are 2"),
        ({"files": [0, -1]}, "about files -1 to 0"),
        ({"offsets": [0, 0, 0]}, "about files 0 to 2 where there are 2"),
        ({"columns": [np.zeros(3)]}, r"of 2 entries have the lengths \[3\]"),
    ],
)
def test_an_index_that_makes_no_sense(arguments, match):
    with pytest.raises(ArgumentValueError, match=match):
        FileIndex(["a", "b"], **arguments)


def test_another_number_of_outputs_than_declared(declare):
    class Made(Reader):
        """Has two columns."""

        def list_entries(self):
            return Index(COUNT, columns=[np.arange(COUNT)] * 2)

    declare(Made, num_outputs=3)
    with pytest.raises(ShapeError, match="make 2 outputs where the declaration says 3"):
        batches()
