"""Files that are all a stage has to do are read and stored several at a time."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.errors import OperatorError
from headrace.executor.cpu import loading
from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType

COUNT = 9


@pytest.fixture
def files(tmp_path):
    for number in range(COUNT):
        name = f"{number}-äö.bin" if number == 4 else f"{number}.bin"
        (tmp_path / name).write_bytes(bytes(range(number, number + 5 + number % 3)))
    return sorted(str(path) for path in tmp_path.iterdir())


def reading(files, *, behind=False, threads=3, **more):
    pipe = Pipeline(batch_size=4, num_threads=threads, device_id=None, **more)
    with pipe:
        data, labels = fn.readers.file(files=files, labels=list(range(10, 10 + len(files))))
        pipe.set_outputs(data + 1 if behind else data, labels)
    return pipe


def content(pipe, runs):
    found = []
    for _ in range(runs):
        data, labels = pipe.run()
        found += [
            (bytes(data.at(i)), int(labels.at(i)[0]), data[i].source_info(), labels.at(i).dtype)
            for i in range(4)
        ]
    return found


def expected(files, runs):
    found = []
    for k in range(4 * runs):
        number = k % len(files)
        with open(files[number], "rb") as file:
            found.append((file.read(), 10 + number, files[number], np.dtype(np.int32)))
    return found


@pytest.mark.parametrize("threads", [1, 3])
def test_contents_labels_and_sources(files, threads):
    assert content(reading(files, threads=threads), 5) == expected(files, 5)


def test_no_sample_goes_alone(files, monkeypatch):
    def alone(*_):
        raise AssertionError

    monkeypatch.setattr(loading, "_fetch", alone)
    assert content(reading(files), 2) == expected(files, 2)


def test_stages_that_do_more_see_each_sample(files):
    got = content(reading(files, behind=True), 3)
    want = expected(files, 3)
    assert [row[1:] for row in got] == [row[1:] for row in want]
    assert [row[0] for row in got] == [
        np.array([b + 1 for b in row[0]], np.int32).tobytes() for row in want
    ]


@pytest.mark.parametrize("kind", ["missing", "empty"])
@pytest.mark.parametrize("policy", ["raise", "skip", "replace"])
def test_bad_files(files, tmp_path, kind, policy):
    path = tmp_path / "bad.bin"
    if kind == "empty":
        path.touch()
    files[2] = str(path)
    pipe = reading(files, on_bad_sample=policy)
    if policy == "raise":
        with pytest.raises(OperatorError, match=rf"sample 2 of the batch, read from .*{path.name}"):
            pipe.run()
        return
    data, labels = pipe.run()
    assert str(path) not in [data[i].source_info() for i in range(4)]
    assert 12 not in [int(labels.at(i)[0]) for i in range(4)]
    assert [bad.source for bad in pipe.bad_samples if bad.iteration == 0] == [str(path)]


def test_empty_files_that_are_wanted(files, tmp_path):
    (tmp_path / "empty.bin").touch()
    files[1] = str(tmp_path / "empty.bin")
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(*fn.readers.file(files=files, dont_use_mmap=True))
    data, _ = pipe.run()
    assert [data.at(i).size for i in range(4)] == [5, 0, 7, 5]


def buffer(count, dtype=DALIDataType.INT32):
    return BatchBuffer(count, Spec(dtype, 1), ShapeStatistics())


def test_rows_put_at_once_are_the_batch():
    batch = buffer(5)
    batch.put_rows([3, 4], np.array([[3, 30], [4, 40]]))
    batch.put_rows([0, 1, 2], np.array([[0, 0], [1, 10], [2, 20]], np.int32))
    np.testing.assert_array_equal(batch.dense, [[i, 10 * i] for i in range(5)])
    batch.put_rows([2], np.array([[7, 8, 9]]))
    assert batch.dense is None
    assert [row.tolist() for row in batch.rows][2:4] == [[7, 8, 9], [3, 30]]


def test_rows_adopted_at_once():
    batch = buffer(3, DALIDataType.UINT8)
    values = [np.arange(4, dtype=np.uint8), np.arange(2, dtype=np.uint8)]
    batch.adopt_rows([2, 0], values)
    assert batch.rows[2] is values[0]
    assert batch.rows[0] is values[1]
    assert batch.rows[1] is None


def test_sources():
    batch = buffer(3)
    batch.set_sources([2, 0], ["c", "a"])
    assert batch.sources == ["a", "", "c"]


def test_memory_is_guessed(tmp_path):
    files = []
    for number, size in enumerate((100, 1, 5000, 5000, 3, 70_000, 2, 9)):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(bytes([number]) * size)
        files.append(str(path))
    assert content(reading(files, threads=1), 12) == expected(files, 12)
