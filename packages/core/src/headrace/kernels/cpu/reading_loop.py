"""The loop that reads files, or extents within files: compiled, without the interpreter.

To read a file takes four system calls, of which Python lets others have the interpreter in each;
and a thread that has read a few has to have it again for what comes next. Here whole batches are
read by threads that never need it. One thread reads files that are in the page cache about as fast
as several would; from a slow disk many have to be on their way at once. So a thread that finds that
what is left would take long calls another one to its side.

A job is an array of 64-bit numbers. Threads find jobs on a board, in the order in which they were
put there, take the files of a job one by one, and the last to leave it tells that it is done.
"""

from __future__ import annotations

import os
from typing import Any

import numba
import numpy as np
from numba import types

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.atomic import fetch_add
from headrace.kernels.cpu.decode.jpeg_scan import scan_one
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.semaphores import SEMAPHORE_NUMBERS, post, wait

SLOTS = 64
"""Largest number of jobs on a board."""
_MUTEX_NUMBERS = 8  # 40 bytes with glibc

CLOSED, THREADS, WAKE = 0, 1, 2
MUTEX = WAKE + SEMAPHORE_NUMBERS
_JOBS = MUTEX + _MUTEX_NUMBERS
BOARD_NUMBERS = _JOBS + SLOTS
"""Fields of a board: whether it is closed; the number of threads; a semaphore that wakes one of
them; a mutex; and the addresses of jobs, from the oldest on, 0 where there is none.
"""

(
    NAMES,
    BEGINS,
    ROOT,
    ROOT_BYTES,
    LONGEST,
    FILES,
    OFFSETS,
    SIZES,
    LARGEST,
    OPENED,
    NUMBERS,
    COUNT,
    PIECES,
    FOUND,
    FACTS,
    MEMORY,
    ROOM,
    NEXT,
    USED,
    READERS,
    CALLED,
    DONE,
) = range(22)
"""Fields of a job: addresses of the names of all files, each with a NUL after it, of the offset of
each (int64), and of the folder of names that are not complete, and its length; largest length of a
path; addresses of the file, offset and size of each extent (int64), or 0 where each extent is a
whole file; the largest extent to read; 0, or the address of `OpenFiles.table`; addresses of the
numbers of the extents to read (int64), how many these are, how many that follow one another are
pieces of one entry, and of the results (int64 ``(extents, 2)``: the address where an extent begins,
or one of the negative numbers below, and its size); 0, or the address of `scan_one`'s results
(int64 ``(extents, 5)``); the address of the memory and its length; the next extent to read, bytes
used of the memory, number of threads working on it, number of threads called, and a semaphore that
tells when it is done.
"""
JOB_NUMBERS = DONE + SEMAPHORE_NUMBERS

KEPT_FILES = 64
"""Largest number of files that stay open for one reader."""
KEPT_NUMBERS = 4
_KEPT_LOCK, KEPT_FILE, _KEPT_USERS, KEPT_DESCRIPTOR = range(KEPT_NUMBERS)
"""Of each place of a table of open files, the first number of which is how many there are: held
while another file takes the place; its file, how many threads use that, and its descriptor, -1 for
none."""

UNREAD, TOO_LARGE = -1, -2
"""In place of a place in memory: the file was not, or cannot be, read to its end; or there was no
place for it, and the size is what it would take."""

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
_END = os.SEEK_END
_NO_FILE = 1 << 62  # a directory has a larger size, on some file systems
_ALIGNMENT = 64
_MONOTONIC = 1  # CLOCK_MONOTONIC, of Linux
_SLASH = ord("/")
_GAP_BYTES, _GAP_SHARE = 2048, 8
"""Pieces of one entry are read in one call with what is between them, if that is no more bytes, and
a share of theirs: a call costs what it takes to copy 4 kB."""
_LONG_NANOSECONDS = 1_000_000
"""Work that a thread takes on without help: a batch takes a GPU longer. Threads that are woken for
less slow the others: eight shared 640 microseconds of an H200's host.
"""
_FIRST = 2
"""Files that tell how long others are going to take; not the first, for which all is cold."""

# What they are at run time is not what Numba's annotations say.
_open: Any = types.ExternalFunction("open", types.int32(types.uintp, types.int32, types.int32))
_seek: Any = types.ExternalFunction("lseek", types.int64(types.int32, types.int64, types.int32))
_read: Any = types.ExternalFunction(
    "pread", types.int64(types.int32, types.uintp, types.uintp, types.int64)
)
_close: Any = types.ExternalFunction("close", types.int32(types.int32))
_clock: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))
_lock: Any = types.ExternalFunction("pthread_mutex_lock", types.int32(types.uintp))
_unlock: Any = types.ExternalFunction("pthread_mutex_unlock", types.int32(types.uintp))


@njit(nogil=True)
def serve(board: np.ndarray) -> None:
    """Read files of all jobs on a board, and of those to come, until it is closed."""
    mutex = board.ctypes.data + 8 * MUTEX
    clock = np.empty(2, np.int64)
    while True:
        while wait(board.ctypes.data + 8 * WAKE) != 0:
            pass  # a signal came
        while True:
            _lock(mutex)
            address = np.int64(0) if board[CLOSED] else _job_to_read(board)
            closed = board[CLOSED] != 0
            if address:
                fetch_add(address + 8 * READERS, np.int64(1))
            _unlock(mutex)
            if closed:
                return
            if not address:
                break
            job = numba.carray(pointer(address), (JOB_NUMBERS,), np.int64)
            _read_extents(address, job, board, clock)
            _lock(mutex)
            if fetch_add(address + 8 * READERS, np.int64(-1)) == 1:
                _take_down(board, address)
                post(address + 8 * DONE)
            _unlock(mutex)


@njit(nogil=True)
def read_now(job: np.ndarray) -> None:
    """Read the extents of a job in the thread that calls."""
    board, clock = np.zeros(THREADS + 1, np.int64), np.empty(2, np.int64)  # there are no others
    _read_extents(job.ctypes.data, job, board, clock)


@njit()
def fill_in(
    job: np.ndarray,
    numbers: np.ndarray,
    pieces: int,
    found: np.ndarray,
    facts: np.ndarray,
    memory: np.ndarray,
) -> None:
    """Complete a job, which knows its files: the extents to read, and what for; see above.

    `facts` may be empty, for headers that are not looked at.
    """
    for k in range(len(found)):
        found[k, 0], found[k, 1] = UNREAD, 0
    job[NUMBERS], job[COUNT], job[PIECES] = numbers.ctypes.data, len(numbers), pieces
    job[FOUND] = found.ctypes.data
    job[FACTS] = facts.ctypes.data if len(facts) else 0
    job[MEMORY], job[ROOM] = memory.ctypes.data, memory.size
    job[CALLED] = 1


@njit()
def put_up(board: np.ndarray, address: int) -> bool:
    """Put the job at an address on a board; whether there was a place for it."""
    mutex = board.ctypes.data + 8 * MUTEX
    placed = False
    _lock(mutex)
    if not board[CLOSED]:
        for k in range(SLOTS):
            if not board[_JOBS + k]:
                board[_JOBS + k] = address
                placed = True
                break
    _unlock(mutex)
    if placed:
        post(board.ctypes.data + 8 * WAKE)
    return placed


@njit()
def sum_up(
    found: np.ndarray, facts: np.ndarray, addresses: np.ndarray, sizes: np.ndarray
) -> tuple[int, int, int, int, int]:
    """Sum up the results of a job that is done, as the next steps need them.

    `addresses`, `sizes`: int64: filled; -1 for the address of a file that was not read. Returns the
    numbers of files unread, unread for lack of memory, and empty; the bytes of all; and plain
    files.
    """
    unread, too_large, empty, total, plain = 0, 0, 0, 0, 0
    for k in range(len(facts)):
        plain += facts[k, 3] != 0
    for k in range(len(found)):
        begin, size = found[k, 0], found[k, 1]
        addresses[k] = max(begin, -1)
        sizes[k] = size
        unread += begin < 0
        too_large += begin == TOO_LARGE
        empty += begin >= 0 and size == 0
        total += size
    return unread, too_large, empty, total, plain


@njit()
def call_all(board: np.ndarray, address: int) -> None:
    """Wake all threads for a job, which may be done by now and whose numbers the caller keeps."""
    job = numba.carray(pointer(address), (JOB_NUMBERS,), np.int64)
    for _ in range(min(board[THREADS], job[COUNT]) - 1):
        if fetch_add(address + 8 * CALLED, np.int64(1)) < board[THREADS]:
            post(board.ctypes.data + 8 * WAKE)


@njit()
def stop(board: np.ndarray, wanted: int) -> None:
    """Leave out what was not read yet of the job at an address, or of all jobs if that is 0."""
    mutex = board.ctypes.data + 8 * MUTEX
    _lock(mutex)
    k = 0
    while k < SLOTS and board[_JOBS + k]:
        address = board[_JOBS + k]
        if wanted == 0 or address == wanted:
            job = numba.carray(pointer(address), (JOB_NUMBERS,), np.int64)
            fetch_add(address + 8 * NEXT, job[COUNT])
            if job[READERS] == 0:
                _take_down(board, address)
                post(address + 8 * DONE)
                continue
        k += 1
    _unlock(mutex)


@njit()
def close(board: np.ndarray) -> None:
    """Stop all jobs and let all threads of a board go."""
    _lock(board.ctypes.data + 8 * MUTEX)
    board[CLOSED] = 1
    _unlock(board.ctypes.data + 8 * MUTEX)
    stop(board, 0)
    for _ in range(board[THREADS]):
        post(board.ctypes.data + 8 * WAKE)


@njit(nogil=True)
def _job_to_read(board: np.ndarray) -> Any:
    """Find the oldest job with untaken files. The caller holds the mutex."""
    for k in range(SLOTS):
        address = board[_JOBS + k]
        if not address:
            break
        job = numba.carray(pointer(address), (JOB_NUMBERS,), np.int64)
        if job[NEXT] < job[COUNT]:
            return address
    return np.int64(0)


@njit(nogil=True)
def _take_down(board: np.ndarray, address: int) -> None:
    """Take a job off the board. Holds the mutex."""
    k = 0
    while k < SLOTS and board[_JOBS + k] != address:
        k += 1
    while k < SLOTS:
        board[_JOBS + k] = board[_JOBS + k + 1] if k + 1 < SLOTS else 0
        k += 1


@njit(nogil=True)
def _read_extents(address: int, job: np.ndarray, board: np.ndarray, clock: np.ndarray) -> None:
    """Read extents of a job until all are taken."""
    count = job[COUNT]
    found = numba.carray(pointer(job[FOUND]), (count, 2), np.int64)
    path = np.empty(job[LONGEST] + 1, np.uint8)
    root_bytes = job[ROOT_BYTES]
    root = numba.carray(pointer(job[ROOT]), (root_bytes,), np.uint8)
    for k_root in range(root_bytes):  # a slice takes two seconds more to compile
        path[k_root] = root[k_root]
    pieces = job[PIECES]
    span = np.empty(2, np.int64)
    began = np.int64(0)
    done = 0
    opened, place, descriptor = np.int64(-1), np.int64(0), np.int64(-1)
    while True:
        first = fetch_add(address + 8 * NEXT, np.int64(pieces))
        if first >= count:
            break
        last = min(first + pieces, count)
        together = pieces > 1 and _find_span(job, first, last, span)
        begin = np.int64(UNREAD)
        for k in range(first, last):
            number = _number(job[NUMBERS], k)
            file = _number(job[FILES], number) if job[FILES] else number
            if file != opened:
                _leave(place, descriptor)
                place, descriptor = _enter(job, file, path)
                opened = file
            if descriptor < 0:
                continue
            offset = _number(job[OFFSETS], number) if job[OFFSETS] else np.int64(0)
            wanted = _number(job[SIZES], number) if job[SIZES] else np.int64(-1)
            if not together:
                begin, wanted = _content(address, job, descriptor, offset, wanted)
            elif k == first:
                begin, _ = _content(address, job, descriptor, span[0], span[1])
                if begin < 0:  # each for itself, so that the others are read
                    together = False
                    begin, wanted = _content(address, job, descriptor, offset, wanted)
            found[k, 0], found[k, 1] = begin, wanted
            if together:
                found[k, 0] += offset - span[0]
            if job[FACTS] and begin >= 0:
                data = numba.carray(pointer(begin), (wanted,), np.uint8)
                scan_one(data, numba.carray(pointer(job[FACTS] + 40 * k), (5,), np.int64))
        done += last - first
        left = count - job[NEXT]
        called = job[CALLED]
        if done == last - first:
            began = _now(clock)
        elif done > _FIRST and left > 0 and called < board[THREADS]:
            spent = _now(clock) - began
            long = left * spent > called * (done - 1) * _LONG_NANOSECONDS
            if long and fetch_add(address + 8 * CALLED, np.int64(1)) < board[THREADS]:
                post(board.ctypes.data + 8 * WAKE)
    _leave(place, descriptor)


@njit(nogil=True)
def _find_span(job: np.ndarray, first: int, last: int, span: np.ndarray) -> bool:
    """Find the part of a file that has all pieces of an entry, and little besides; `span`: where
    it begins, and its size.
    """
    if not (job[FILES] and job[OFFSETS] and job[SIZES]):
        return False
    begin, end, total = np.int64(_NO_FILE), np.int64(0), np.int64(0)
    number = _number(job[NUMBERS], first)
    file = _number(job[FILES], number)
    least = _number(job[OFFSETS], number)
    for k in range(first, last):
        number = _number(job[NUMBERS], k)
        offset, size = _number(job[OFFSETS], number), _number(job[SIZES], number)
        away = (offset - least) % _ALIGNMENT != 0  # each is to begin where an array may
        if size < 1 or away or _number(job[FILES], number) != file or size > job[LARGEST]:
            return False
        begin, end, total = min(begin, offset), max(end, offset + size), total + size
    span[0], span[1] = begin, end - begin
    return bool(end - begin - total <= _GAP_BYTES + total // _GAP_SHARE)


@njit()
def numbers_of(entries: np.ndarray, pieces: int) -> np.ndarray:
    """The numbers of the extents that are pieces of entries, int64."""
    found = np.empty(len(entries) * pieces, np.int64)
    for k in range(found.size):
        found[k] = entries[k // pieces] * pieces + k % pieces
    return found


@njit()
def memory_for(job: np.ndarray, numbers: np.ndarray, pieces: int) -> Any:
    """Bytes of memory that extents take; -1 if unknown. `job` knows its files."""
    if not job[SIZES]:
        return np.int64(-1)
    job = job.copy()
    job[NUMBERS], span, total = numbers.ctypes.data, np.empty(2, np.int64), np.int64(0)
    for first in range(0, len(numbers), pieces):
        last = min(first + pieces, len(numbers))
        if pieces > 1 and _find_span(job, first, last, span):
            total += (span[1] + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
            continue
        for k in range(first, last):
            size = _number(job[SIZES], numbers[k])
            if size < 0:
                return np.int64(-1)
            total += (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    return total


@njit(nogil=True)
def _enter(job: np.ndarray, file: int, path: np.ndarray) -> Any:
    """A descriptor of a file, and its place among those that stay open; the place is 0 if it is to
    be closed, the descriptor negative if the file cannot be opened.
    """
    table = job[OPENED]
    if table:
        place = table + 8 * (1 + KEPT_NUMBERS * (file % _number(table, 0)))
        alone = fetch_add(place + 8 * _KEPT_LOCK, np.int64(1)) == 0
        kept = numba.carray(pointer(place), (KEPT_NUMBERS,), np.int64)
        if alone and (kept[KEPT_DESCRIPTOR] < 0 or kept[KEPT_FILE] != file):
            alone = kept[_KEPT_USERS] == 0
            if alone:
                if kept[KEPT_DESCRIPTOR] >= 0:
                    _close(np.int32(kept[KEPT_DESCRIPTOR]))
                kept[KEPT_DESCRIPTOR], kept[KEPT_FILE] = _opened(job, file, path), file
                alone = kept[KEPT_DESCRIPTOR] >= 0
        descriptor = np.int64(-1)
        if alone:
            fetch_add(place + 8 * _KEPT_USERS, np.int64(1))
            descriptor = kept[KEPT_DESCRIPTOR]
        fetch_add(place + 8 * _KEPT_LOCK, np.int64(-1))
        if alone:
            return place, descriptor
    return np.int64(0), np.int64(_opened(job, file, path))


@njit(nogil=True)
def _leave(place: int, descriptor: int) -> None:
    """Have done with what `_enter` has returned."""
    if place:
        fetch_add(place + 8 * _KEPT_USERS, np.int64(-1))
    elif descriptor >= 0:
        _close(np.int32(descriptor))


@njit(nogil=True)
def _number(address: int, k: int) -> Any:
    """Number `k` of those at an address."""
    return numba.carray(pointer(address + 8 * k), (1,), np.int64)[0]


@njit(nogil=True)
def _opened(job: np.ndarray, file: int, path: np.ndarray) -> Any:
    """A descriptor of a file, negative where it cannot be opened; `path` begins with the root."""
    begin = _number(job[BEGINS], file)
    name = numba.carray(pointer(job[NAMES] + begin), (job[LONGEST] + 1,), np.uint8)
    if name[0] == _SLASH:
        return _open(name.ctypes.data, _FLAGS, 0)
    k_name, k_path = 0, job[ROOT_BYTES]
    while name[k_name]:
        path[k_path] = name[k_name]
        k_name += 1
        k_path += 1
    path[k_path] = 0
    return _open(path.ctypes.data, _FLAGS, 0)


@njit(nogil=True)
def _content(address: int, job: np.ndarray, descriptor: int, offset: int, wanted: int) -> Any:
    """Read an extent of an open file, to the end if `wanted` is negative; what to note of it."""
    size = np.int64(wanted)
    if wanted <= 0:  # what ends before it is read to its end is found out below
        end: Any = _seek(np.int32(descriptor), 0, _END)
        size = end - offset if wanted < 0 else size
        if end < 0 or end > _NO_FILE or offset + size > end:
            return np.int64(UNREAD), np.int64(0)
    if size < 0 or size > job[LARGEST]:
        return np.int64(UNREAD), np.int64(0)
    taken = (size + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    begin = fetch_add(address + 8 * USED, np.int64(taken))
    if begin + taken > job[ROOM]:
        return np.int64(TOO_LARGE), size
    target = job[MEMORY] + begin
    done = np.int64(0)
    while done < size:
        # If a signal interrupts, the file stays unread here, and Python reads it.
        count = _read(np.int32(descriptor), target + done, size - done, offset + done)
        if count <= 0:
            return np.int64(UNREAD), np.int64(0)
        done += count
    return target, size


@njit(nogil=True)
def _now(clock: np.ndarray) -> Any:
    """Nanoseconds, of a clock that only goes on."""
    _clock(_MONOTONIC, clock.ctypes.data)
    return clock[0] * 1_000_000_000 + clock[1]
