"""The draws of `philox` and `normal` for a few numbers: they keep the interpreter.

One number a sample takes microseconds. To get the interpreter back from a thread that has just
taken it takes far longer, and the thread that draws for a whole batch has other work to do.
"""

from __future__ import annotations

from typing import Any

from headrace.kernels.compilation import njit
from headrace.kernels.cpu import normal as normal_kernel
from headrace.kernels.cpu import philox


def _keeping_the_interpreter(kernel: Any) -> Any:
    return njit()(kernel.py_func)


uniform = _keeping_the_interpreter(philox.uniform)
index_int64 = _keeping_the_interpreter(philox.index_int64)
bernoulli_uint8 = _keeping_the_interpreter(philox.bernoulli_uint8)
normal = _keeping_the_interpreter(normal_kernel.normal)
