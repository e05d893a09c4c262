"""Numbers replaced by the values that a table has for them."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.lookup import UNSIGNED
from headrace.kernels.gpu.device_constant import DeviceConstant
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_EACH = constant(__name__, "EACH", 8, "uint32")
"""Elements that a thread makes."""
_NUMBERS = record("lookup:Numbers { uint32 first_block; uint64 source, out; int64 size; }")


class LookupTable:
    """A table that is uploaded once; see `headrace.kernels.cpu.lookup.look_up`."""

    def __init__(self, table: np.ndarray) -> None:
        self._table = DeviceConstant(table)
        self._last = len(table) - 1

    def run(self, queue: Queue, source: DeviceBatch, out: DeviceBatch) -> None:
        """Fill `out`, of the table's type, with what it has for `source`."""
        records = np.empty(len(out), _NUMBERS)
        records["source"], records["out"] = source.pointers, out.pointers
        records["size"] = sizes = source.sizes()
        types = [np.dtype(UNSIGNED[batch.dtype.itemsize]) for batch in (source, out)]
        launch_records(
            queue,
            kernel("lookup.cu", "look_up", *types),
            records,
            quotient_up(sizes, THREADS * _EACH),
            np.uint64(self._table.address(queue)),
            np.uint32(self._last),
        )
