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
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import pointer
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


@intrinsic  # type: ignore[misc]
def _call(typing: Any, function: Any, arguments: Any) -> Any:
    """Call the C function at an address with a tuple of 64-bit numbers; it returns an ``int``.

    Where a parameter is shorter, the function looks at the lower bits, by all 64-bit conventions.
    """
    count = arguments.count

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address, packed = args
        parts = cgutils.unpack_tuple(builder, packed, count)
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(64)] * count)
        return builder.call(builder.inttoptr(address, kind.as_pointer()), parts)

    return types.int32(function, arguments), generate


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
        _call(functions[SYNCHRONIZE], (event,))
    handle, state, count = job[HANDLE], job[STATE], job[COUNT]
    one = np.uint64(1)
    status = _call(functions[INITIALIZE], (handle, state, count, one, job[FORMAT]))
    if status == 0:
        tables = (handle, state, job[SOURCES], job[SIZES], job[IMAGES])
        params, stream = job[PARAMS], job[STREAM]
        if params:
            status = _set_regions(functions[SET_REGION], params, job[REGIONS], count)
            if status == 0:
                arguments = (*tables, params, stream)
                status = _call(functions[DECODE_REGIONS], arguments)
        else:
            status = _call(functions[DECODE], (*tables, stream))
    if event:
        _call(functions[RECORD], (event, job[STREAM]))
    job[STATUS] = np.uint64(status)


@njit(nogil=True)
def _set_regions(function: Any, params: Any, regions: Any, count: Any) -> Any:
    handles = numba.carray(pointer(params), (np.int64(count),), np.uint64)
    extents = numba.carray(pointer(regions), (4 * np.int64(count),), np.uint64)
    status = np.int32(0)
    for i in range(np.int64(count)):
        k = 4 * i
        status |= _call(
            function, (handles[i], extents[k], extents[k + 1], extents[k + 2], extents[k + 3])
        )
    return status
