"""Reading whole files, and what is said when that fails."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest

from penstock.errors import ArgumentValueError, BadSampleError, MissingDependencyError
from penstock.operators.readers import storage
from penstock.operators.readers.listing import list_classes
from penstock.operators.readers.storage import is_remote, join, read_file


@pytest.fixture(params=[True, False], ids=["preadv", "readinto"])
def both_ways(request, monkeypatch):
    if request.param and not hasattr(os, "preadv"):
        pytest.skip("no preadv here")
    monkeypatch.setattr(storage, "_HAS_PREADV", request.param)


@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_003])
def test_content(tmp_path, both_ways, size):
    content = np.random.default_rng(size).bytes(size)
    path = tmp_path / "a file"
    path.write_bytes(content)
    data = read_file(str(path), np.empty)
    assert data.dtype == np.uint8
    assert data.shape == (size,)
    assert data.tobytes() == content
    assert read_file(f"file://{path}", np.empty).tobytes() == content


def test_reads_into_the_memory_it_is_given(tmp_path, both_ways):
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    memory = np.zeros(10, np.uint8)
    data = read_file(str(path), lambda shape, dtype: memory[: shape[0]])
    assert np.shares_memory(data, memory)
    assert memory.tobytes() == b"abc" + bytes(7)


def test_many_reads_for_a_large_file(tmp_path, both_ways, monkeypatch):
    monkeypatch.setattr(storage, "_LARGEST_READ", 7)
    path = tmp_path / "x"
    path.write_bytes(bytes(range(100)))
    assert read_file(str(path), np.empty).tobytes() == bytes(range(100))


def test_file_that_shrinks_while_it_is_read(tmp_path, both_ways, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(bytes(100))

    def allocate(shape, dtype):
        os.truncate(path, 40)  # after the size was asked for
        return np.empty(shape, dtype)

    with pytest.raises(BadSampleError, match="40 of 100 bytes"):
        read_file(str(path), allocate)


def test_errors(tmp_path, both_ways):
    missing = str(tmp_path / "missing")
    with pytest.raises(BadSampleError, match=re.escape(repr(missing)) + " does not exist"):
        read_file(missing, np.empty)
    with pytest.raises(BadSampleError, match="is a directory"):
        read_file(str(tmp_path), np.empty)
    with pytest.raises(BadSampleError, match="embedded null"):
        read_file("a\0b", np.empty)
    with pytest.raises(BadSampleError, match="does not exist"):
        read_file("", np.empty)


@pytest.mark.skipif(sys.platform == "win32", reason="needs rights on Windows")
def test_link_to_nothing(tmp_path, both_ways):
    os.symlink("/does/not/exist", tmp_path / "link")
    with pytest.raises(BadSampleError, match="symbolic link"):
        read_file(str(tmp_path / "link"), np.empty)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_forbidden(tmp_path, both_ways):
    path = tmp_path / "x"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(BadSampleError, match="permission denied"):
        read_file(str(path), np.empty)


def test_other_errors_of_the_system(tmp_path, both_ways):
    path = str(tmp_path / ("x" * 300))
    with pytest.raises(BadSampleError, match="too long"):
        read_file(path, np.empty)


def test_addresses():
    assert is_remote("s3://bucket/key")
    assert not is_remote("file:///a")
    assert not is_remote("/a/b")
    assert join("s3://bucket", "a/b") == "s3://bucket/a/b"
    assert join("root/", "a") == "root/a"
    assert join("", "a") == "a"
    assert join("root", "/a") == "/a"


def test_remote_files():
    fsspec = pytest.importorskip("fsspec")
    system = fsspec.filesystem("memory")
    try:
        system.pipe(
            {"/data/cat/1.jpg": b"one", "/data/cat/2.txt": b"2", "/data/dog/3.jpg": b"three"}
        )
        assert read_file("memory://data/cat/1.jpg", np.empty).tobytes() == b"one"
        found = list_classes("memory://data", file_filters=["*.jpg"])
        assert found.names == ["cat/1.jpg", "dog/3.jpg"]
        assert found.labels.tolist() == [0, 1]
        assert read_file(found.path(1), np.empty).tobytes() == b"three"
        with pytest.raises(BadSampleError, match="memory://data/nope"):
            read_file("memory://data/nope", np.empty)
        with pytest.raises(ArgumentValueError, match="memory://nope"):
            list_classes("memory://nope", file_filters=["*"])
    finally:
        system.rm("/data", recursive=True)


def test_addresses_of_unknown_kinds():
    pytest.importorskip("fsspec")
    with pytest.raises(ArgumentValueError, match="nokind"):
        read_file("nokind://x/y", np.empty)


def test_remote_files_without_fsspec(monkeypatch):
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(MissingDependencyError, match=r"needs fsspec.*\"s3\""):
        read_file("s3://bucket/key", np.empty)


def test_files_read_together(tmp_path):
    contents = [bytes(range(256)) * n for n in (1, 0, 300, 7)]
    paths = []
    for number, content in enumerate(contents):
        path = tmp_path / f"ünïcode {number}"
        path.write_bytes(content)
        paths.append(str(path))
    paths[2:2] = [str(tmp_path / "missing"), str(tmp_path)]
    found = storage.read_together(paths, np.empty)
    assert [f is None for f in found] == [False, False, True, True, False, False]
    assert [f.tobytes() for f in found if f is not None] == contents
    assert all(f.ctypes.data % 64 == found[0].ctypes.data % 64 for f in found if f is not None)


@pytest.mark.parametrize("name", ["memory://x", "a\0b"])
def test_what_cannot_be_read_together(tmp_path, name):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    assert storage.read_together([str(path), name], np.empty) == [None, None]


def test_reading_together_leaves_no_file_open(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"abc")

    def no_memory(shape, dtype):
        raise MemoryError

    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        storage.read_together([str(path)] * 3, np.empty)
        with pytest.raises(MemoryError):
            storage.read_together([str(path)] * 3, no_memory)
    assert len(os.listdir("/proc/self/fd")) == before


def test_files_read_into_memory_that_is_there(tmp_path):
    paths = [str(tmp_path / str(number)) for number in range(3)]
    for number, path in enumerate(paths):
        Path(path).write_bytes(bytes([number]) * 1000 * (number + 1))
    memory = np.zeros(100_000, np.uint8)
    asked = []

    def empty(shape, dtype):
        asked.append(shape)
        return memory[: shape[0]] if shape[0] <= memory.size else np.empty(shape, dtype)

    for free in (memory, memory[:6000], None):  # all of it, too little, nothing
        found = storage.read_together(paths, empty, free)
        assert [f.tobytes() for f in found] == [Path(path).read_bytes() for path in paths]
    assert asked == [(1024 + 2048 + 3008,)] * 3


def test_files_that_change_while_they_are_read(tmp_path, monkeypatch):
    """One is cut behind the look at its size, one grows: what cannot be read is left out."""
    paths = [str(tmp_path / str(number)) for number in range(3)]
    for path in paths:
        Path(path).write_bytes(b"x" * 1000)

    def empty(shape, dtype):
        os.truncate(paths[0], 10)
        with open(paths[1], "ab") as file:
            file.write(b"y" * 500)
        return np.empty(shape, dtype)

    found = storage.read_together(paths, empty)
    assert found[0] is None
    assert [f.tobytes() for f in found[1:]] == [b"x" * 1000] * 2


def test_without_the_calls_of_posix_files_are_read_one_by_one(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"abc")
    monkeypatch.setattr(storage, "_HAS_PREADV", False)
    assert storage.read_together([str(path)], np.empty) == [None]
    assert read_file(str(path), np.empty).tobytes() == b"abc"
