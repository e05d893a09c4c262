"""The loop of the thread that decodes by JPEG engines: compiled, without the interpreter.

The engines rest while nvJPEG is not called. Where threads that read files and queue kernels share
the interpreter, getting it back takes longer than all that lies between two calls; so this loop
takes batches that others have made ready, and needs the interpreter for none of it.

A job is an array of 64-bit numbers: what nvJPEG's functions are to be called with. Jobs come
through a ring of their addresses; semaphores of the system tell that one has come, or is done.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import call_at, pointer
from headrace.kernels.cpu.semaphores import SEMAPHORE_NUMBERS, post, wait
from headrace.kernels.gpu.decode.engine_lock import acquire_engines, release_engines

RING = 1024
"""Largest number of waiting jobs."""

(
    KIND,
    FUNCTIONS,
    HANDLE,
    STATE,
    COUNT,
    FORMAT,
    SOURCES,
    SIZES,
    IMAGES,
    PARAMS,
    REGIONS,
    STREAM,
    EVENT,
    STATUS,
    DONE,
) = range(15)
"""Fields of a job: `BATCH` or `OTHER`; the address of an array of the functions' addresses;
nvJPEG's handle and state; number of images and output format; addresses of the tables that are
nvJPEG's arguments; 0, or the address of the images' parameters, and of a region for each of them
(int64: offsets to the right and down, width, height); the stream; 0, or an event that follows the
earlier use of the state; nvJPEG's status; and a semaphore.
"""
JOB_NUMBERS = DONE + SEMAPHORE_NUMBERS
BATCH, OTHER = 0, 1
"""Kinds of jobs: a batch to decode, or something that takes the interpreter."""

INITIALIZE, DECODE, DECODE_REGIONS, SET_REGION, RECORD, SYNCHRONIZE = range(6)
"""The functions."""


@njit(nogil=True)
def serve(ring: np.ndarray, wake: np.ndarray, position: int, lock: np.ndarray) -> int:
    """Decode one batch after the other, until a job of another kind comes.

    `ring`: uint64 ``(RING,)``: addresses of jobs.
    """
    while True:
        while wait(wake.ctypes.data) != 0:
            pass  # a signal came
        address = ring[position % RING]
        position += 1
        job = numba.carray(pointer(address), (JOB_NUMBERS,), np.uint64)
        if job[KIND] != BATCH:
            return position
        acquire_engines(lock)
        _decode(job)
        release_engines(lock)
        post(address + np.uint64(8 * DONE))


@njit(nogil=True)
def _decode(job: np.ndarray) -> None:
    functions = numba.carray(pointer(job[FUNCTIONS]), (6,), np.uint64)
    event = job[EVENT]
    if event:
        call_at(functions[SYNCHRONIZE], (event,))
    handle, state, count = job[HANDLE], job[STATE], job[COUNT]
    one = np.uint64(1)
    status = call_at(functions[INITIALIZE], (handle, state, count, one, job[FORMAT]))
    if status == 0:
        tables = (handle, state, job[SOURCES], job[SIZES], job[IMAGES])
        params, stream = job[PARAMS], job[STREAM]
        if params:
            status = _set_regions(functions[SET_REGION], params, job[REGIONS], count)
            if status == 0:
                arguments = (*tables, params, stream)
                status = call_at(functions[DECODE_REGIONS], arguments)
        else:
            status = call_at(functions[DECODE], (*tables, stream))
    if event:
        call_at(functions[RECORD], (event, job[STREAM]))
    job[STATUS] = np.uint64(status)


@njit(nogil=True)
def _set_regions(function: Any, params: Any, regions: Any, count: Any) -> Any:
    handles = numba.carray(pointer(params), (np.int64(count),), np.uint64)
    extents = numba.carray(pointer(regions), (4 * np.int64(count),), np.uint64)
    status = np.int32(0)
    for i in range(np.int64(count)):
        k = 4 * i
        status |= call_at(
            function, (handles[i], extents[k], extents[k + 1], extents[k + 2], extents[k + 3])
        )
    return status
