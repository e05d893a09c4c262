"""Draws of `philox` and `normal` for a few numbers, which hold the GIL.

One number a sample takes microseconds. To get the GIL back from a thread that has just taken it
takes far longer, and the thread that draws for a whole batch has other work to do.
"""

from __future__ import annotations

from typing import Any

from headrace.kernels.compilation import njit
from headrace.kernels.cpu import normal as normal_kernel
from headrace.kernels.cpu import philox


def _holding_gil(kernel: Any) -> Any:
    return njit()(kernel.py_func)


uniform = _holding_gil(philox.uniform)
index_int64 = _holding_gil(philox.index_int64)
bernoulli_uint8 = _holding_gil(philox.bernoulli_uint8)
normal = _holding_gil(normal_kernel.normal)
