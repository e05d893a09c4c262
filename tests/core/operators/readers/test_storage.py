"""Reading whole files, and what is said when that fails."""

from __future__ import annotations

import os
import re
import sys

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, BadSampleError, MissingDependencyError
from headrace.operators.readers import storage
from headrace.operators.readers.index import FileIndex
from headrace.operators.readers.listing import list_classes
from headrace.operators.readers.storage import is_remote, join, read_file


@pytest.mark.parametrize("size", [0, 1, 4096, 1_000_003])
def test_content(tmp_path, size):
    content = np.random.default_rng(size).bytes(size)
    path = tmp_path / "a file"
    path.write_bytes(content)
    data = read_file(str(path), np.empty)
    assert data.dtype == np.uint8
    assert data.shape == (size,)
    assert data.tobytes() == content
    assert read_file(f"file://{path}", np.empty).tobytes() == content


def test_reads_into_the_memory_it_is_given(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"abc")
    memory = np.zeros(10, np.uint8)
    data = read_file(str(path), lambda shape, dtype: memory[: shape[0]])
    assert np.shares_memory(data, memory)
    assert memory.tobytes() == b"abc" + bytes(7)


def test_many_reads_for_a_large_file(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "_LARGEST_READ", 7)
    path = tmp_path / "x"
    path.write_bytes(bytes(range(100)))
    assert read_file(str(path), np.empty).tobytes() == bytes(range(100))


def test_file_that_shrinks_while_it_is_read(tmp_path, monkeypatch):
    path = tmp_path / "x"
    path.write_bytes(bytes(100))

    def allocate(shape, dtype):
        os.truncate(path, 40)  # after the size was asked for
        return np.empty(shape, dtype)

    with pytest.raises(BadSampleError, match="40 of 100 bytes"):
        read_file(str(path), allocate)


def test_errors(tmp_path):
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
def test_link_to_nothing(tmp_path):
    os.symlink("/does/not/exist", tmp_path / "link")
    with pytest.raises(BadSampleError, match="symbolic link"):
        read_file(str(tmp_path / "link"), np.empty)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read all")
def test_forbidden(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(b"x")
    path.chmod(0)
    with pytest.raises(BadSampleError, match="permission denied"):
        read_file(str(path), np.empty)


def test_other_errors_of_the_system(tmp_path):
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
        assert list(found.names) == ["cat/1.jpg", "dog/3.jpg"]
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


def test_extents_of_files(tmp_path):
    path = tmp_path / "x"
    path.write_bytes(bytes(range(100)))
    for offset, size, want in [
        (0, 3, [0, 1, 2]),
        (97, -1, [97, 98, 99]),
        (100, -1, []),
        (5, 0, []),
    ]:
        assert read_file(str(path), np.empty, offset, size).tolist() == want
    for offset, size in [(98, 3), (101, -1), (101, 0)]:
        with pytest.raises(BadSampleError, match=f"ends at byte 100, .* at {offset}"):
            read_file(str(path), np.empty, offset, size)


@pytest.fixture
def system():
    fsspec = pytest.importorskip("fsspec")
    found = fsspec.filesystem("memory")
    found.pipe({"/data/a": b"abcdef", "/data/b": b"12345"})
    yield found
    found.rm("/data", recursive=True)


def test_extents_of_remote_files(system):
    assert read_file("memory://data/a", np.empty, 2, 3).tobytes() == b"cde"
    with pytest.raises(BadSampleError, match="2 of the 9 bytes that begin at 4"):
        read_file("memory://data/a", np.empty, 4, 9)


def test_several_addresses_are_asked_for_at_once(system, monkeypatch):
    asked = []
    cat_ranges = type(system).cat_ranges
    monkeypatch.setattr(
        type(system), "cat_ranges", lambda *a, **k: asked.append(a[1]) or cat_ranges(*a, **k)
    )
    places = [
        ("memory://data/a", 0, -1),
        ("/local", 0, -1),
        ("memory://data/nope", 0, -1),
        ("memory://data/b", 1, 3),
        ("memory://data/b", 1, 30),
    ]
    paths, offsets, sizes = zip(*places, strict=True)
    index = FileIndex(paths, files=range(5), offsets=offsets, sizes=sizes)
    rows = index.fetch_together(np.arange(5), np.empty)
    assert [row if row is None else row.tobytes() for row in rows] == [
        b"abcdef", None, None, b"234", None,
    ]  # fmt: skip
    assert asked == [["/data/a", "/data/nope", "/data/b", "/data/b"]]
    assert rows[0].base is rows[3].base
