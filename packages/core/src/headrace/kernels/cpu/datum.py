"""Messages of the type ``Datum``, of Caffe: an image and its label."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.protobuf import LENGTH, VARINT, read_field, read_varint

CHANNELS, HEIGHT, WIDTH, DATA, LABEL, ENCODED = 1, 2, 3, 4, 5, 7
"""Numbers of the fields."""


@njit(nogil=True)
def find_data(addresses: np.ndarray, sizes: np.ndarray, found: np.ndarray) -> bool:
    """Find images and labels of messages at addresses; False if one is damaged, or not encoded.

    `found`: int64 ``(messages, 4)``: where the image begins and ends; the number of labels, and the
    last of them.
    """
    found[:] = 0
    for k in range(len(addresses)):
        data = numba.carray(pointer(addresses[k]), (sizes[k],), np.uint8)
        at, stop, encoded = np.int64(0), sizes[k], np.int64(1)
        while at < stop:
            number, kind, begin, at = read_field(data, at, stop)
            if number == 0:
                return False
            if kind == LENGTH and number == DATA:
                found[k, 0], found[k, 1] = begin, at
            elif kind == VARINT and number == LABEL:
                found[k, 2] = 1
                found[k, 3] = read_varint(data, begin, at)[0]
            elif kind == VARINT and number == ENCODED:
                encoded = read_varint(data, begin, at)[0]
        if encoded == 0:
            return False
    return True
