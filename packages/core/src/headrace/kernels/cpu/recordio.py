"""Records of MXNet: a magic number, length and kind of the part; then labels and a file."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.copy_rows import copy_bytes
from headrace.kernels.cpu.pointers import pointer

MAGIC = 0xCED7230A
PART_BYTES, LABEL_BYTES = 8, 24
"""Before a part, and at the beginning of a record: the number of labels after it, or 0 and a label,
float32; then two numbers of the image, of 64 bits."""


@njit(nogil=True)
def find_parts(addresses: np.ndarray, sizes: np.ndarray, found: np.ndarray) -> bool:
    """Find labels and files of records at addresses; False if one is not whole, or not in one part.

    `found`: int64 ``(records, 4)``: where the labels begin, and their number; where the file
    begins, and its size.
    """
    for k in range(len(addresses)):
        if sizes[k] < PART_BYTES + LABEL_BYTES:
            return False
        words = numba.carray(pointer(addresses[k]), (4,), np.uint32)
        kind, size = words[1] >> np.uint32(29), np.int64(words[1] & np.uint32(0x1FFFFFFF))
        count = np.int64(words[2])
        begin = LABEL_BYTES + 4 * count
        if words[0] != np.uint32(MAGIC) or kind or size < begin or sizes[k] < PART_BYTES + size:
            return False
        found[k, 0] = PART_BYTES + (LABEL_BYTES if count else 4)
        found[k, 1] = max(count, 1)
        found[k, 2], found[k, 3] = PART_BYTES + begin, size - begin
    return True


@njit(nogil=True)
def copy_labels(addresses: np.ndarray, found: np.ndarray, targets: np.ndarray) -> None:
    """Copy the labels of records to addresses, uint64."""
    for k in range(len(addresses)):
        copy_bytes(targets[k], addresses[k] + np.uint64(found[k, 0]), 4 * found[k, 1])
