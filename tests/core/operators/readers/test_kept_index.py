"""Indexes that are kept: the same as found anew, never of a file that has changed."""

from __future__ import annotations

import io
import json
import os
import pickle
import tarfile
import time

import numpy as np
import pytest

import headrace as hr
from headrace.operators.readers import coco_columns, kept_index
from headrace.operators.readers.kept_index import kept_arrays

ARRAYS = {"a": np.arange(6.0).reshape(2, 3), "none": np.empty((0, 2), np.int32), "b": np.array([7])}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder of kept indexes, in which files of any size and age are kept."""
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(kept_index, "SMALLEST_BYTES", 0)
    monkeypatch.setattr(coco_columns, "SMALLEST_BYTES", 0)
    monkeypatch.setattr(kept_index, "_YOUNG_SECONDS", 0)
    return tmp_path / "cache" / kept_index.KIND


def counted(found=ARRAYS):
    """A function that finds arrays, and how often it was called."""

    def find():
        find.calls += 1
        return found

    find.calls = 0
    return find


def same(found):
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_found_once(folder, tmp_path):
    path = tmp_path / "data"
    path.write_text("x")
    find = counted()
    for _ in range(3):
        found = kept_arrays("k", [str(path)], find)
        same(found)
        assert not found["a"].flags.writeable
        same(pickle.loads(pickle.dumps(found)))
    assert find.calls == 1
    kept_arrays("other", [str(path)], find)
    kept_arrays("k", [str(path), str(path)], find)
    assert find.calls == 3
    assert len(kept_index.kept_files()) == 3
    assert all(name[0] != "." for name in os.listdir(folder))


def test_a_changed_file_is_looked_through_again(folder, tmp_path):
    path = tmp_path / "data"
    find = counted()
    now = time.time()
    for content, when in (("x", now), ("xy", now), ("yx", now - 9), ("zz", now)):
        path.write_text(content)
        os.utime(path, (when, when))
        same(kept_arrays("k", [str(path)], find))
    assert find.calls == 4


def test_damaged_files_are_made_again(folder, tmp_path):
    path = tmp_path / "data"
    path.write_text("x")
    kept_arrays("k", [str(path)], counted())
    (file,) = kept_index.kept_files()
    content = file.read_bytes()
    start = content.index(b"[[")
    damaged = [b"", content[:30], content[:-1], content + b"x", b"y" + content[1:]]
    damaged.append(content[:start] + b"{" + content[start + 1 :])
    damaged.append(content.replace(b"<f8", b"<q9"))
    for each in damaged:
        file.unlink()
        file.write_bytes(each)
        find = counted()
        same(kept_arrays("k", [str(path)], find))
        assert find.calls == 1
        same(kept_arrays("k", [str(path)], find))
        assert find.calls == 1


def test_what_is_not_kept(folder, tmp_path, monkeypatch):
    path = tmp_path / "data"
    path.write_text("x")
    assert kept_arrays("k", [str(path)], counted(None)) is None
    same(kept_arrays("k", ["memory://x"], counted()))
    same(kept_arrays("k", [str(tmp_path / "missing")], counted()))
    with monkeypatch.context() as patch:
        patch.setattr(kept_index, "SMALLEST_BYTES", 2)
        same(kept_arrays("k", [str(path)], counted()))
    with monkeypatch.context() as patch:
        patch.setattr(kept_index, "_YOUNG_SECONDS", 3600)
        same(kept_arrays("k", [str(path)], counted()))
    with monkeypatch.context() as patch:
        patch.setattr(kept_index, "LIMIT_BYTES", 10)
        same(kept_arrays("k", [str(path)], counted()))
    assert kept_index.kept_files() == []
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "file"))
    find = counted()
    for _ in range(2):
        same(kept_arrays("k", [str(path)], find))
    assert find.calls == 2


def test_what_was_used_last_stays(folder, tmp_path, monkeypatch):
    paths = [tmp_path / str(k) for k in range(3)]
    for number, path in enumerate(paths):
        path.write_text("x")
        kept_arrays("k", [str(path)], counted())
        newest = max(kept_index.kept_files(), key=lambda file: file.stat().st_mtime_ns)
        os.utime(newest, (number, number))
    first = counted()
    kept_arrays("k", [str(paths[0])], first)  # used again
    size = newest.stat().st_size
    monkeypatch.setattr(kept_index, "LIMIT_BYTES", 3 * size)
    kept_arrays("other", [str(paths[0])], counted())
    second = counted()
    kept_arrays("k", [str(paths[0])], first)
    kept_arrays("k", [str(paths[1])], second)
    assert (first.calls, second.calls) == (0, 1)


def written(root):
    """Arguments of readers whose indexes are kept."""
    (root / "list.txt").write_text("a.bin 3\n\nb.bin 4\n")
    (root / "names.txt").write_text("a.npy\nb.npy\n")
    for number, name in enumerate("ab"):
        (root / f"{name}.bin").write_bytes(name.encode())
        np.save(root / f"{name}.npy", np.array([number]))
        with tarfile.open(root / f"{name}.tar", "w") as archive:
            for ending in ("x", "y"):
                info = tarfile.TarInfo(f"{name}.{ending}")
                info.size = 2
                archive.addfile(info, io.BytesIO(f"{name}{ending}".encode()))
    boxes = [{"image_id": k, "category_id": 7, "bbox": [k, 2, 3, 4]} for k in (1, 0, 1)]
    images = [{"id": k, "file_name": f"{'ab'[k]}.bin", "width": 9, "height": 9} for k in (0, 1)]
    annotations = {"images": images, "annotations": boxes, "categories": [{"id": 7}]}
    (root / "coco.json").write_text(json.dumps(annotations))
    return {
        "file": {"file_list": str(root / "list.txt")},
        "numpy": {"file_list": str(root / "names.txt")},
        "webdataset": {"paths": [str(root / "a.tar"), str(root / "b.tar")], "ext": ["x", "y"]},
        "coco": {"file_root": str(root), "annotations_file": str(root / "coco.json")},
    }


def read(name, arguments):
    pipe = hr.Pipeline(2, 1, None, prefetch_queue_depth=1)
    with pipe:
        found = getattr(hr.fn.readers, name)(**arguments)
        pipe.set_outputs(*(found if isinstance(found, list) else [found]))
    batches = pipe.run()
    sources = batches[0].source_info()
    return sources, [[np.array(batch.at(k)).tolist() for k in range(2)] for batch in batches]


@pytest.mark.parametrize("name", ["file", "numpy", "webdataset", "coco"])
def test_readers_give_the_same_from_kept_indexes(folder, tmp_path, name):
    arguments = written(tmp_path)[name]
    first = read(name, arguments)
    assert len(kept_index.kept_files()) == 1
    before = kept_index.kept_files()[0].stat().st_ino
    assert read(name, arguments) == first
    assert [file.stat().st_ino for file in kept_index.kept_files()] == [before]
