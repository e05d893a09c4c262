"""Copies of large memory by several threads, past the caches and without the interpreter.

An ordinary store reads a line of the cache before it writes it: a copy moves its bytes three times,
and one past the caches twice. H200's host, 68 MB to page-locked memory by 8 threads, GB/s: 28
by `numpy.copyto`, 40 so; 17 MB by 4 threads: 29 and 35.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.atomic import fetch_add
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.semaphores import SEMAPHORE_NUMBERS, post, semaphores, wait

SOURCE, TARGET, BYTES, PIECE, PIECES, NEXT, COPIED, WAKE = range(8)
"""Fields of a job, which threads share for all copies, one after the other: the addresses and the
number of bytes; bytes of a piece; number of pieces, the next one to copy, and how many are copied;
a semaphore that wakes a thread, and one for the last piece."""
DONE = WAKE + SEMAPHORE_NUMBERS
JOB_NUMBERS = DONE + SEMAPHORE_NUMBERS
_NONE_LEFT = np.int64(1) << np.int64(40)
"""Next piece between two copies. A thread that was woken for one may look at the next."""
_LINE, _BLOCK = 64, 256


@intrinsic  # type: ignore[misc]
def _copy_line(typing: Any, target: Any, source: Any) -> Any:
    """Copy 64 bytes to an address that is a multiple of 64, past the caches."""
    kind = ir.VectorType(ir.IntType(64), _LINE // 8)

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        places = [builder.inttoptr(address, kind.as_pointer()) for address in args]
        line = builder.load(places[1], align=1)
        stored = builder.store(line, places[0], align=_LINE)
        flag = builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)])
        stored.set_metadata("nontemporal", flag)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64), generate


@intrinsic  # type: ignore[misc]
def _fence(typing: Any) -> Any:
    """Order stores past the caches before what other threads are told next."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        builder.fence("seq_cst")
        return context.get_dummy_value()

    return types.void(), generate


def new_job() -> np.ndarray:
    """Return a job for threads to `serve`."""
    job = np.zeros(JOB_NUMBERS, np.int64)
    job[NEXT] = _NONE_LEFT
    for field in (WAKE, DONE):
        semaphores().make(job.ctypes.data + 8 * field)
    return job


@njit(nogil=True)
def copy_streaming(target: int, source: int, size: int) -> None:
    """Copy `size` bytes from address to address; the memory must not overlap."""
    given = numba.carray(pointer(np.uint64(source)), (size,), np.uint8)
    out = numba.carray(pointer(np.uint64(target)), (size,), np.uint8)
    begin = min(size, -target % _LINE)
    end = begin + (size - begin) // _BLOCK * _BLOCK
    out[:begin] = given[:begin]
    for k in range(begin, end, _BLOCK):
        for line in range(0, _BLOCK, _LINE):
            _copy_line(target + k + line, source + k + line)
    out[end:] = given[end:]
    _fence()


@njit(nogil=True)
def _copy_pieces(job: np.ndarray) -> None:
    """Copy pieces until none is left; whoever copies the last one says so."""
    at = job.ctypes.data
    while True:
        k = fetch_add(at + 8 * NEXT, np.int64(1))
        if k >= job[PIECES]:
            return
        begin = k * job[PIECE]
        size = min(job[PIECE], job[BYTES] - begin)
        copy_streaming(job[TARGET] + begin, job[SOURCE] + begin, size)
        if fetch_add(at + 8 * COPIED, np.int64(1)) + 1 == job[PIECES]:
            post(at + 8 * DONE)


@njit(nogil=True)
def copy_shared(job: np.ndarray, target: int, source: int, size: int, piece: int) -> None:
    """Copy with the threads that `serve` the job; one call at a time."""
    at = job.ctypes.data
    pieces = -(-size // piece)
    job[SOURCE], job[TARGET], job[BYTES], job[PIECE] = source, target, size, piece
    job[PIECES], job[COPIED] = pieces, 0
    # A late thread may count on: `NEXT` is only ever written while it is too large to be a piece.
    _fence()
    job[NEXT] = 0
    for _ in range(pieces - 1):
        post(at + 8 * WAKE)
    _copy_pieces(job)
    while wait(at + 8 * DONE) != 0:
        pass  # a signal came
    job[NEXT] = _NONE_LEFT


@njit(nogil=True)
def serve(job: np.ndarray) -> None:
    """Take part in all copies to come."""
    while True:
        while wait(job.ctypes.data + 8 * WAKE) != 0:
            pass  # a signal came
        _copy_pieces(job)
