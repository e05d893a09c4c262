"""Tables of records, one a sample, for kernels whose samples need different numbers of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.gpu.shared import constant
from headrace.tensors.gpu.queue import KernelSource, Queue
from headrace.tensors.gpu.traced import traced

THREADS = constant(__name__, "THREADS", 256)
"""Of a block, where nothing else is said."""
_MOST_BLOCKS = 1 << 28
"""So that numbers of what each of 8 warps does are below 2**31."""


@traced
def fill_fields(records: np.ndarray, *columns: np.ndarray) -> None:
    """Fill the fields of records, in their order."""
    for name, values in zip(records.dtype.names or (), columns, strict=True):
        records[name] = values


def launch_records(
    queue: Queue,
    kernel: KernelSource,
    records: np.ndarray,
    blocks: np.ndarray,
    *args: Any,
    shared_bytes: int = 0,
) -> None:
    """Queue a kernel on samples that need `blocks` blocks of `THREADS` threads each.

    `kernel`: its first parameters are the address of the records, their pitch, the number of
    samples, and the number of blocks of a sample if it is the same for all (otherwise 0).
    `records`: one a sample; the first field, ``first_block``, is filled in here.
    """
    total, each = _share_out(records, blocks)
    launch_counted(queue, kernel, records, total, each, *args, shared_bytes=shared_bytes)


@traced
def _share_out(records: np.ndarray, blocks: np.ndarray) -> tuple[int, int]:
    """Fill ``first_block``; the number of blocks, and that of each sample, as of
    `launch_counted`.
    """
    ends = np.cumsum(blocks)
    records["first_block"] = ends - blocks
    total = int(ends[-1]) if len(ends) else 0
    return total, int(blocks[0]) if total and (blocks == blocks[0]).all() else 0


def launch_counted(
    queue: Queue,
    kernel: KernelSource,
    records: np.ndarray,
    blocks: int,
    blocks_each: int,
    *args: Any,
    shared_bytes: int = 0,
    threads: int = THREADS,
) -> None:
    """`launch_records` where ``first_block`` is filled in already."""
    if blocks == 0:
        return
    if blocks > _MOST_BLOCKS:
        raise ValueError(
            f"A batch needs {blocks} blocks of threads, and the GPU takes {_MOST_BLOCKS} at a time."
        )
    queue.launch(
        kernel,
        (blocks, 1, 1),
        (threads, 1, 1),
        queue.upload(records),
        np.uint32(records.strides[0]),
        np.uint32(len(records)),
        queue.word(np.uint32, blocks_each),
        *args,
        shared_bytes=shared_bytes,
    )


def launch_evenly(
    queue: Queue,
    kernel: KernelSource,
    samples: np.ndarray,
    blocks_each: int,
    *args: Any,
    threads: int = THREADS,
) -> None:
    """Queue a kernel on samples that all get as many blocks, whether they need them or not.

    `kernel`: its first parameters are the address of the samples and the number of blocks of each.
    """
    queue.launch(
        kernel,
        (blocks_each * len(samples), 1, 1),
        (threads, 1, 1),
        queue.upload(samples),
        queue.word(np.uint32, blocks_each),
        *args,
    )


def quotient_up(value: Any, by: Any) -> Any:
    """Quotient of integers, rounded up."""
    return -(-value // by)
