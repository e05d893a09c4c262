"""`readers.file` against DALI's: files found, labels, orders, epochs, errors."""

from __future__ import annotations

import os
import random

import numpy as np
import pytest

from tests.parity.support import LIBRARIES, assert_both_raise


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("root")
    for name in (
        "b/2.jpg", "b/10.jpg", "a/z.PNG", "a/.hidden.jpg", "a/x.txt", "c/only.txt",
        "d/e/deep.jpg", ".hid/1.jpg", "top.jpg", "B/1.jpg", "a/noext", "ü/1.jpg", "a/é.jpg",
        "a/Z.jpg", "a/sub.jpg/in.jpg", "w s/a b.jpg",
    ):  # fmt: skip
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())
    (root / "empty").mkdir()
    os.symlink(root / "b", root / "link")
    os.symlink(root / "b/2.jpg", root / "c/link.jpg")
    return str(root)


@pytest.fixture(scope="module")
def many(tmp_path_factory):
    path = tmp_path_factory.mktemp("many") / "x"
    path.write_bytes(b"x")
    # The same file again and again: only labels, which number the list, are looked at.
    return str(path)


def read_all(library, batches=None, batch_size=1, pipeline=None, **arguments):
    """Source, label and content of every sample of one epoch, or of some batches."""
    lib = LIBRARIES[library]
    options = {"num_threads": 2, "device_id": None, "seed": 42} | (pipeline or {})
    pipe = lib.pipeline.Pipeline(batch_size=batch_size, **options)
    with pipe:
        pipe.set_outputs(*lib.fn.readers.file(name="reader", **arguments))
    pipe.build()
    meta = pipe.reader_meta("reader")
    found = []
    for _ in range(meta["epoch_size"] if batches is None else batches):
        data, label = pipe.run()
        found += [
            (data[k].source_info(), int(label.at(k)[0]), bytes(np.asarray(data.at(k))))
            for k in range(len(data))
        ]
    return found, {k: int(v) for k, v in meta.items()}


def assert_same(**arguments):
    assert read_all("headrace", **arguments) == read_all("dali", **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"dir_filters": ["a", "b"]},
        {"dir_filters": ["a", "b"], "case_sensitive_filter": True},
        {"dir_filters": "*"},
        {"dir_filters": ["?", "li*"]},
        {"file_filters": "*.txt"},
        {"file_filters": ["*.PNG"], "case_sensitive_filter": True},
        {"file_filters": ["*.png"]},
        {"file_filters": ["*"]},
        {"file_filters": ["[!1]*.jpg"]},
        {"file_filters": ["[^1]*.jpg"]},
        {"file_filters": ["[12]*", "?.jpg"]},
        {"file_filters": ["\\2.jpg"]},
        {"file_filters": ["*.jpg", "*2.jpg"]},
        {"file_filters": ["* *"]},
    ],
)
def test_directories(root, arguments):
    assert_same(file_root=root, **arguments)
    assert_same(file_root=root + "/", **arguments)


@pytest.mark.parametrize(
    "text",
    [
        "b/2.jpg 3\nb/10.jpg 4\n",
        "b/2.jpg 3\n\n  \nb/10.jpg  4  ",
        "b/2.jpg\t3\r\nb/10.jpg 4\t\n",
        "w s/a b.jpg 7",
        "a/x.txt 1\na/noext 2",
    ],
)
def test_list_files(root, tmp_path, monkeypatch, text):
    path = tmp_path / "list.txt"
    path.write_text(text)
    assert_same(file_list=str(path), file_root=root)
    assert_same(file_list=str(path), file_root=root, dir_filters="z", file_filters="z")
    beside = os.path.join(root, "list.txt")
    with open(beside, "w") as file:
        file.write(text)
    try:
        assert_same(file_list=beside)
        monkeypatch.chdir(root)
        assert_same(file_list="list.txt")
    finally:
        os.remove(beside)


def test_given_files(root, monkeypatch):
    names = ["b/2.jpg", "a/Z.jpg", "ü/1.jpg"]
    assert_same(files=names, file_root=root)
    assert_same(files=names, file_root=root, labels=[7, -3, 2**31 - 1])
    assert_same(files=[f"{root}/{n}" for n in names])
    assert_same(files=[f"{root}/{names[0]}", names[1]], file_root=root)
    monkeypatch.chdir(root)
    assert_same(files=names)
    assert_same(files=names[0])
    assert_same(files=names, initial_fill=0)  # nothing is shuffled


def test_empty_files(tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(b"")
    assert_same(files=[str(path)], dont_use_mmap=True)
    assert_both_raise(lambda lib: lib.fn.readers.file(files=[str(path)]), match="empty")


def orders():
    rng = random.Random(2)
    for _ in range(150):
        size = rng.choice([1, 2, 3, 7, 10, 16, 33, 100])
        shards = rng.randint(1, min(size, 4))
        arguments = {
            "num_shards": shards,
            "shard_id": rng.randrange(shards),
            "pad_last_batch": rng.random() < 0.5,
        }
        mode = rng.choice(["plain", "random", "after"])
        if mode == "random":
            arguments |= {
                "random_shuffle": True,
                "initial_fill": rng.choice([1, 2, 5, 1024]),
                "seed": rng.choice([0, 1, -7, 12345, 2**31 - 1]),
            }
        if mode == "after":
            arguments["shuffle_after_epoch"] = True
            if rng.random() < 0.5:
                arguments["shuffle_after_epoch_seed"] = rng.randint(-(2**63), 2**63 - 1)
        elif rng.random() < 0.4:
            arguments["stick_to_shard"] = True
        yield size, rng.randint(1, 9), arguments


@pytest.mark.parametrize(("size", "batch_size", "arguments"), list(orders()))
def test_orders(many, size, batch_size, arguments):
    assert_same(
        batches=-(-3 * size // batch_size) + 2,
        batch_size=batch_size,
        files=[many] * size,
        **arguments,
    )


@pytest.mark.sweep
@pytest.mark.parametrize(
    "arguments",
    [
        {"random_shuffle": True, "initial_fill": 3000},
        {"random_shuffle": True, "initial_fill": 1},
        {"shuffle_after_epoch": True},
    ],
)
@pytest.mark.parametrize("size", [5000, 70_000])
def test_long_orders(many, size, arguments):
    # From 65 536 samples on the standard library shuffles in another way.
    assert_same(
        batches=2,
        batch_size=1000,
        pipeline={"prefetch_queue_depth": 1},
        files=[many] * size,
        seed=3,
        **arguments,
    )


ERRORS = [
    ({}, "file_root"),
    ({"file_root": "/does/not/exist"}, "cannot be listed"),
    ({"file_root": "ROOT/top.jpg"}, "Not a directory"),
    ({"file_root": "ROOT", "file_filters": ["*.zzz"]}, "No files found"),
    ({"file_root": "ROOT", "file_filters": ["*.png"], "case_sensitive_filter": True}, "No files"),
    ({"file_root": "ROOT", "file_filters": []}, "file_filters"),
    ({"file_root": "ROOT", "dir_filters": []}, "dir_filters"),
    ({"file_root": "ROOT", "labels": [1]}, "labels"),
    ({"files": []}, "empty list"),
    ({"files": ["ROOT/top.jpg"], "labels": []}, "labels"),
    ({"files": ["ROOT/top.jpg"], "labels": [1, 2]}, "labels"),
    ({"files": ["ROOT/top.jpg"], "file_list": "ROOT/top.jpg"}, "not both"),
    ({"files": ["ROOT/nope"]}, "does not exist"),
    ({"files": ["ROOT/b"]}, "is a directory"),
    ({"files": [""]}, "does not exist"),
    ({"file_list": "/does/not/exist"}, "file_list"),
    ({"file_list": "ROOT"}, "file_list"),
    ({"files": ["ROOT/top.jpg"], "num_shards": 0}, "num_shards"),
    ({"files": ["ROOT/top.jpg"], "num_shards": -1}, "num_shards"),
    ({"files": ["ROOT/top.jpg"], "shard_id": 1}, "shard_id"),
    ({"files": ["ROOT/top.jpg"], "num_shards": 2}, "shards"),
    ({"files": ["ROOT/top.jpg"], "prefetch_queue_depth": 0}, "prefetch_queue_depth"),
    (
        {"files": ["ROOT/top.jpg"], "random_shuffle": True, "shuffle_after_epoch": True},
        "shuffle_after_epoch",
    ),
    (
        {"files": ["ROOT/top.jpg"], "stick_to_shard": True, "shuffle_after_epoch": True},
        "shuffle_after_epoch",
    ),
]


@pytest.mark.parametrize(("arguments", "word"), ERRORS)
def test_errors(root, arguments, word):
    def placed(value):
        if isinstance(value, str):
            return value.replace("ROOT", root)
        return [placed(v) for v in value] if isinstance(value, list) else value

    arguments = {name: placed(value) for name, value in arguments.items()}
    assert_both_raise(lambda lib: lib.fn.readers.file(**arguments), match=word, batch_size=1)


@pytest.mark.parametrize("line", ["a", "a x", "a 1.5", "5", " 5", "a 0x10"])
def test_wrong_lines(tmp_path, line):
    path = tmp_path / "list.txt"
    path.write_text(line)
    assert_both_raise(
        lambda lib: lib.fn.readers.file(file_list=str(path)), match="Line 1", batch_size=1
    )
