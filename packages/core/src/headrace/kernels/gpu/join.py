"""Samples joined along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_EACH = constant(__name__, "EACH", 8, "uint32")
"""Elements that a thread makes."""
_PIECE = record("""join:Piece {
    uint32 first_block;
    uint64 source, target;
    int64 runs, length, pitch;
}""")


def join(queue: Queue, pieces: Sequence[DeviceBatch], axis: int, out: DeviceBatch) -> None:
    """Fill `out` with `pieces`, one after the other along `axis`."""
    runs = out.shapes[:, :axis].prod(axis=1)
    sizes = np.stack([piece.sizes() for piece in pieces], axis=1) * out.dtype.itemsize
    records = np.empty(sizes.shape, _PIECE)
    records["source"] = np.stack([piece.pointers for piece in pieces], axis=1)
    records["runs"] = runs[:, None]
    records["length"] = lengths = sizes // np.maximum(runs, 1)[:, None]
    ends = np.cumsum(lengths, axis=1)
    records["target"] = out.pointers[:, None] + (ends - lengths).astype(np.uint64)
    records["pitch"] = ends[:, -1:]
    records = records[sizes > 0]
    if not len(records):
        return
    # Everything is copied in the largest words that all addresses and lengths are multiples of.
    bits = np.bitwise_or.reduce(
        [
            np.bitwise_or.reduce(records[name].astype(np.uint64))
            for name in ("source", "target", "length", "pitch")
        ]
    )
    word = math.gcd(int(bits), 8)
    records["length"] //= word
    records["pitch"] //= word
    launch_records(
        queue,
        kernel("join.cu", "join", np.dtype(f"u{word}")),
        records,
        quotient_up(records["runs"] * records["length"], THREADS * _EACH),
    )
