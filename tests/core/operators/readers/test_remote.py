"""Remote files: read ahead, tried again, and kept on a local disk."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import fsspec
import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.errors import BadSampleError, SuspectDataWarning
from headrace.operators.readers import remote
from headrace.operators.readers.file_cache import FileCache, files_in, kept_files
from headrace.operators.readers.remote import ReadAhead, fetch
from headrace.operators.readers.storage import read_file
from headrace.operators.support import disk_room

COUNT = 23


@pytest.fixture
def store():
    """A store in memory; `asked` has the paths of each request, `answers` what to say first."""
    system = fsspec.filesystem("memory")
    for k in range(COUNT):
        system.pipe_file(f"/shop/{k:02}.bin", bytes([k]) * (k + 1))
    kind = type(system)  # of which each thread has an object of its own
    asked, answers = [], []
    plain = kind.cat_ranges

    def cat_ranges(self, paths, *args, **kwargs):
        asked.append(list(paths))
        answer = answers.pop(0) if answers else None
        if answer is not None:
            return [answer] * len(paths)
        return plain(self, paths, *args, **kwargs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kind, "cat_ranges", cat_ranges)
        yield SimpleNamespace(asked=asked, answers=answers, put=system.pipe_file, rm=system.rm)
    system.rm("/shop", recursive=True)


@pytest.fixture
def waits(monkeypatch):
    found = []
    monkeypatch.setattr(remote, "wait", found.append)
    return found


def names(count=COUNT):
    return [f"memory://shop/{k:02}.bin" for k in range(count)]


def test_what_may_pass_is_tried_again(store, waits):
    store.answers += [ConnectionResetError("reset"), TimeoutError("slow")]
    assert read_file(names()[2], np.empty).tolist() == [2, 2, 2]
    assert len(store.asked) == 3
    assert 0.05 <= waits[0] <= 0.15
    assert 0.2 <= waits[1] <= 0.6


def test_what_lasts_is_not(store, waits, monkeypatch):
    with pytest.raises(BadSampleError, match="FileNotFoundError"):
        read_file("memory://shop/nope", np.empty)
    assert (len(store.asked), waits) == (1, [])
    monkeypatch.setenv("HEADRACE_REMOTE_RETRIES", "2")
    store.answers += [ConnectionResetError("reset")] * 3
    with pytest.raises(BadSampleError, match=r"00\.bin' cannot be read: ConnectionResetError"):
        read_file(names()[0], np.empty)
    assert (len(store.asked), len(waits)) == (4, 2)


def batches(files, count=10, **settings):
    pipe = Pipeline(4, device_id=None, seed=5, **{"num_threads": 2, **settings})
    with pipe:
        content, label = fn.readers.file(files=files, random_shuffle=True, initial_fill=9, seed=3)
        pipe.set_outputs(fn.cast(content, dtype=types.INT32) + 1, label)
    return [[[np.array(s).tolist() for s in o] for o in pipe.run()] for _ in range(count)]


def test_remote_is_like_local(store, tmp_path):
    """In the same order and with the same bytes, however it is carried; nothing is read twice."""
    local = []
    for k in range(COUNT):
        path = tmp_path / f"{k:02}.bin"
        path.write_bytes(bytes([k]) * (k + 1))
        local.append(str(path))
    wanted = batches(local)
    ways = ({"num_threads": 1}, {"num_threads": 4}, {"num_threads": 2, "workers": "processes"})
    for settings in ways:
        store.asked.clear()
        assert batches(names(), 5, **settings) == wanted[:5], settings
        asked = [path for paths in store.asked for path in paths]
        assert all(asked.count(path) <= 2 for path in asked)  # once in each of two epochs


class Store:
    """Stands for `fetch`: it answers when it is told to."""

    def __init__(self):
        self.open = threading.Event()
        self.asked = []

    def __call__(self, places):
        self.asked += [address for address, _, _ in places]
        self.open.wait()
        return [address.encode() for address, _, _ in places]


def test_the_window(monkeypatch):
    made = Store()
    monkeypatch.setattr(remote, "fetch", made)
    monkeypatch.setattr(remote, "_SHORT_SECONDS", -1.0)  # as if every entry were waited for
    ahead = ReadAhead(lambda number: (str(number), 0, -1))
    ahead.expect(range(100))
    made.open.set()
    assert ahead.take([3, 2, 50]) == [b"3", b"2", b"50"]
    assert sorted(map(int, made.asked)) == [*range(32), 50]
    assert ahead.window == 32
    for k in range(0, 64, 8):
        ahead.take(range(k, k + 8))
    assert ahead.window == 64
    ahead.expect(range(1000, 1200))  # another order
    assert ahead.take([1000]) == [b"1000"]
    assert made.asked.count("1000") == 1
    assert len(ahead._coming) <= 64


@pytest.mark.usefixtures("roomy_caches")
def test_the_file_cache(store, tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_FILE_CACHE", str(tmp_path))
    places = [(name, 0, -1) for name in names()] + [(names()[5], 1, 2)]
    wanted = fetch(places)
    assert wanted[-1] == bytes([5, 5])
    store.asked.clear()
    assert fetch(places) == wanted
    assert not store.asked
    assert kept_files(tmp_path).number == COUNT + 1
    store.put("/shop/03.bin", b"new!")
    assert fetch(places[3:4]) == [b"new!"]
    for number, (path, _) in enumerate(list(files_in(tmp_path))):
        content = path.read_bytes()
        path.write_bytes([content[:-1], bytes(len(content)), b"", content[:-1] + b"?"][number % 4])
    assert fetch([places[0], *places[4:]]) == [wanted[0], *wanted[4:]]
    store.asked.clear()
    assert fetch(places[4:]) == wanted[4:]
    assert not store.asked
    store.rm("/shop/07.bin")
    (gone,) = fetch(places[7:8])
    assert isinstance(gone, FileNotFoundError)
    monkeypatch.setenv("HEADRACE_FILE_CACHE_CHECK_SECONDS", "1e9")
    assert fetch(places[8:9]) == wanted[8:9]
    store.put("/shop/08.bin", b"other")
    assert fetch(places[8:9]) == wanted[8:9]


def test_a_full_disk_is_said_once(store, tmp_path, monkeypatch):
    monkeypatch.setattr(disk_room, "FREE_SHARE", 1.0)
    monkeypatch.setenv("HEADRACE_FILE_CACHE", str(tmp_path))
    places = [(name, 0, -1) for name in names()]
    with pytest.warns(SuspectDataWarning, match="HEADRACE_FILE_CACHE_BYTES says how much") as said:
        wanted = fetch(places)
    assert len(said) == 1
    assert fetch(places) == wanted
    assert kept_files(tmp_path).number == 0
    monkeypatch.setenv("HEADRACE_FILE_CACHE_BYTES", "1e6")
    assert fetch(places) == wanted
    assert kept_files(tmp_path).number == COUNT


def test_the_file_cache_keeps_its_size(tmp_path):
    def fill(first):
        cache = FileCache(tmp_path, 20_000)
        for k in range(first, first + 60):
            cache.put((f"s://{k}", 0, -1), (1, 2, 3), bytes(900))
        return cache

    with ThreadPoolExecutor(3) as threads:
        caches = list(threads.map(fill, (0, 100, 200)))
    for k in range(300, 330):
        assert kept_files(tmp_path).number >= 4
        assert kept_files(tmp_path).size_bytes <= 20_000
        caches[0].put((f"s://{k}", 0, -1), (1, 2, 3), bytes(800 + 9 * k))
    assert caches[0].get(("s://329", 0, -1), (1, 2, 3))
    caches[0].put(("s://large", 0, -1), (1, 2, 3), bytes(30_000))
    assert caches[0].get(("s://large", 0, -1), (1, 2, 3)) is None
