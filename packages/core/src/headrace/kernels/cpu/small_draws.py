"""Draws of `philox_draws` for a few numbers, which hold the GIL.

One number a sample takes microseconds. To get the GIL back from a thread that has just taken it
takes far longer, and the thread that draws for a whole batch has other work to do.
"""

from __future__ import annotations

from typing import Any

from headrace.kernels.compilation import njit
from headrace.kernels.cpu import philox_draws


def _holding_gil(kernel: Any) -> Any:
    return njit()(kernel.py_func)


uniform = _holding_gil(philox_draws.uniform)
index = _holding_gil(philox_draws.index)
bernoulli = _holding_gil(philox_draws.bernoulli)
below = _holding_gil(philox_draws.below)
normal = _holding_gil(philox_draws.normal)
permutation = _holding_gil(philox_draws.permutation)
