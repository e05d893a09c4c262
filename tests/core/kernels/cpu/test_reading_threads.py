"""Threads that read whole batches of files without the interpreter."""

from __future__ import annotations

import gc
import os
import threading

import numpy as np
import pytest

from headrace.kernels.cpu.reading_loop import KEPT_FILES, SLOTS
from headrace.kernels.cpu.reading_threads import BeingRead, FileExtents, ReadingThreads

COUNT = 40


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(3)
    for number in range(COUNT):
        name = f"{number:02}-äö" if number % 5 == 0 else f"{number:02}"
        (tmp_path / name).write_bytes(rng.bytes(number * 37 % 500 + 1))
    return tmp_path


@pytest.fixture(params=[1, 4])
def threads(request):
    found = ReadingThreads(request.param)
    yield found
    found.close()
    for thread in found.threads:
        thread.join()


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def contents(read):
    return [None if row is None else row.tobytes() for row in read.rows()]


def expected(folder, names):
    return [(folder / name).read_bytes() for name in names]


def begin(threads, names, root, numbers=None, guess=0):
    found = FileExtents.of(names, str(root))
    numbers = np.arange(len(names)) if numbers is None else np.array(numbers)
    return BeingRead(threads, found, numbers, np.empty, guess)


@pytest.mark.parametrize("guess", [0, 1000, 1 << 20])
def test_files_are_read_whole_whatever_memory_there_is_first(threads, folder, guess):
    names = names_in(folder)
    read = begin(threads, names, folder, guess=guess).wait()
    assert contents(read) == expected(folder, names)
    assert len(read.memories) == (1 if guess == 1 << 20 else 2)
    bases = np.array([memory.ctypes.data for memory in read.memories])
    assert not ((read.addresses - bases[read.of_memory]) % 64).any()


def test_any_files_in_any_order(threads, folder):
    names = names_in(folder)
    numbers = [7, 0, 7, 39, 5]
    read = begin(threads, names, folder, numbers).wait()
    assert contents(read) == expected(folder, [names[n] for n in numbers])


def test_names_may_be_complete_or_below_the_working_directory(threads, folder, monkeypatch):
    monkeypatch.chdir(folder)
    names = names_in(folder)[:3]
    mixed = [names[0], str(folder / names[1]), f"./{names[2]}"]
    for root in ("", ".", f"{folder}/"):
        assert contents(begin(threads, mixed, root).wait()) == expected(folder, names)


def test_what_cannot_be_read_is_left_out(threads, folder):
    (folder / "empty").write_bytes(b"")
    (folder / "directory").mkdir()
    names = ["01", "missing", "directory", "empty", "02"]
    read = begin(threads, names, folder, guess=5000).wait()
    first, last = expected(folder, ["01", "02"])
    assert contents(read) == [first, None, None, b"", last]


def read_now(extents, numbers, guess=0):
    return BeingRead(None, extents, np.array(numbers), np.empty, guess).wait()


@pytest.mark.parametrize("guess", [0, 300, 1 << 20])
def test_the_thread_that_asks_may_read_itself(folder, guess):
    (folder / "empty").write_bytes(b"")
    names = [*names_in(folder), "missing", "."]
    numbers = [*range(0, COUNT, 3), COUNT + 1, COUNT, COUNT + 2, 3]
    read = read_now(FileExtents.of(names, str(folder)), numbers, guess)
    want = expected(folder, [names[n] for n in numbers[:-4]])
    assert contents(read) == [*want, None, b"", None, *expected(folder, [names[3]])]


def test_extents_within_files(folder, threads):
    whole = [bytes(range(200)), bytes(range(100, 150))]
    for number, content in enumerate(whole):
        (folder / f"long {number}").write_bytes(content)
    files = np.array([0, 0, 1, 0, 1, 1, 1])
    offsets = np.array([3, 190, 0, 3, 50, 49, 60])
    sizes = np.array([10, -1, 50, 190, 0, 2, -1])
    extents = FileExtents.of(
        ["long 0", "long 1"], str(folder), files=files, offsets=offsets, sizes=sizes, largest=100
    )
    numbers = [1, 0, 2, 4, 3, 5, 6, 1]
    first = [whole[0][190:], whole[0][3:13], whole[1], b""]
    # One is larger than wanted, two reach behind the end.
    want = [*first, None, None, None, whole[0][190:]]
    assert contents(read_now(extents, numbers)) == want
    assert contents(BeingRead(threads, extents, np.array(numbers), np.empty, 1000).wait()) == want


def test_no_file_stays_open(folder):
    names = [*names_in(folder), "missing", "."]
    extents = FileExtents.of(names, str(folder))
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        read_now(extents, range(len(names)))
    assert len(os.listdir("/proc/self/fd")) == before


@pytest.mark.parametrize(("pieces", "bad"), [(1, 0), (2, 0), (3, 0), (2, 0.01)])
def test_pieces_of_entries(folder, threads, pieces, bad):
    """Those that are near one another come in one call; memory is taken once, and holds all."""
    rng = np.random.default_rng(pieces)
    count = KEPT_FILES + 9  # files share places where they stay open
    whole = [rng.bytes(20_000) for _ in range(count)]
    for number, content in enumerate(whole):
        (folder / f"long {number}").write_bytes(content)
    files = np.repeat(rng.integers(0, count, 300), pieces)
    files[rng.random(files.size) < 0.1] = 0
    offsets = rng.integers(0, 12, files.size) * 512 + rng.choice([0, 0, 0, 0, 7], files.size)
    sizes = rng.choice([0, 1, 100, 3000, 20_001], files.size, p=[0.1, 0.3, 0.3, 0.3 - bad, bad])
    extents = FileExtents.of(
        [f"long {k}" for k in range(count)],
        str(folder),
        files=files,
        offsets=offsets,
        sizes=sizes,
    )
    want = [
        whole[f][o : o + s] if o + s <= 20_000 else None
        for f, o, s in zip(files, offsets, sizes, strict=True)
    ]
    before = len(os.listdir("/proc/self/fd"))
    for helpers in (None, threads):
        read = BeingRead(helpers, extents, np.arange(files.size), np.empty, 0, pieces=pieces).wait()
        assert contents(read) == want
        assert len(read.memories) == 1 or None in want
        bases = np.array([memory.ctypes.data for memory in read.memories])[read.of_memory]
        there = read.addresses >= 0
        assert not ((read.addresses - bases)[there] % 64).any()
    assert KEPT_FILES // 2 < len(os.listdir("/proc/self/fd")) - before <= KEPT_FILES
    del extents, read
    gc.collect()
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_file_that_is_replaced_or_cut(folder):
    """What was opened before is read on; what is not there any more is not made up."""
    path = folder / "long"
    path.write_bytes(b"old" * 500)
    zeros = np.zeros(2, np.int64)
    extents = FileExtents.of(
        ["long"], str(folder), files=zeros, offsets=zeros + np.array([0, 600]), sizes=zeros + 600
    )
    assert contents(read_now(extents, [0, 1])) == [b"old" * 200] * 2
    path.with_name("new").write_bytes(b"new" * 500)
    path.with_name("new").rename(path)
    assert contents(read_now(extents, [0, 1])) == [b"old" * 200] * 2
    os.truncate(path, 900)
    other = FileExtents.of(
        ["long"], str(folder), files=zeros, offsets=zeros + np.array([0, 600]), sizes=zeros + 600
    )
    assert contents(read_now(other, [0, 1], 2000)) == [b"new" * 200, None]


def test_files_that_grow_while_they_are_read(folder):
    """Between the look at its size and the call with enough memory; not for ever."""
    path = folder / "01"

    def empty(shape, dtype):
        with open(path, "ab") as file:
            file.write(b"x" * 700)
        return np.empty(shape, dtype)

    read = BeingRead(None, FileExtents.of(["02", "01"], str(folder)), np.arange(2), empty, 0).wait()
    assert contents(read) == [*expected(folder, ["02"]), None]


def test_names_that_are_no_local_files():
    assert FileExtents.of(["a", "s3://bucket/b"], "") is None
    assert FileExtents.of(["a"], "memory://folder") is None
    assert FileExtents.of(["a\0b"], "") is None
    assert FileExtents.of(["a"], "b\0") is None
    found = FileExtents.of(["ä", "b"], "c")
    assert found.longest == 4
    assert found.begins.tolist() == [0, 3]


def test_many_batches_at_once_one_more_than_there_is_place_for(threads, folder):
    names = names_in(folder)
    gate = folder / "pipe"
    os.mkfifo(gate)  # to open one waits until somebody writes to it
    count = len(threads.threads)
    held = [begin(threads, ["pipe"], folder) for _ in range(count)]
    batches = [begin(threads, names, folder) for _ in range(SLOTS - count)]
    assert contents(begin(threads, names, folder).wait()) == [None] * COUNT
    with open(os.open(gate, os.O_RDWR)):
        for each in held:
            assert contents(each.wait()) == [None]  # it has no size
    for batch in batches:
        assert contents(batch.wait()) == expected(folder, names)


def test_a_slow_file_keeps_nobody_from_the_others(folder):
    threads = ReadingThreads(2)
    gate = folder / "pipe"
    os.mkfifo(gate)
    slow = begin(threads, ["pipe", "01", "02"], folder)
    done = []
    waiting = threading.Thread(target=lambda: done.append(slow.wait()))
    waiting.start()  # and calls the second thread, in a while
    with open(os.open(gate, os.O_RDWR)):
        waiting.join()
    assert contents(done[0]) == [None, *expected(folder, ["01", "02"])]
    threads.close()


def test_a_batch_that_nobody_wants_any_more(threads, folder):
    names = names_in(folder)
    gate = folder / "pipe"
    os.mkfifo(gate)
    held = [begin(threads, ["pipe"], folder) for _ in threads.threads]
    unwanted = begin(threads, names, folder)
    unwanted.stop()
    assert contents(unwanted.wait()) == [None] * COUNT
    with open(os.open(gate, os.O_RDWR)):
        for each in held:
            each.wait()


def test_threads_that_are_closed_read_nothing_and_keep_nobody_waiting(folder):
    threads = ReadingThreads(2)
    names = names_in(folder)
    gate = folder / "pipe"
    os.mkfifo(gate)
    held = begin(threads, ["pipe", *names[:8]], folder)
    behind = [begin(threads, names, folder) for _ in range(3)]
    threads.close()
    assert len(contents(begin(threads, ["01"], folder).wait())) == 1
    for each in behind:
        assert len(contents(each.wait())) == COUNT
    with open(os.open(gate, os.O_RDWR)):
        held.wait()
        for thread in threads.threads:
            thread.join()
