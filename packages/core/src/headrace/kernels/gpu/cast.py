"""Conversions of element types with DALI's saturation and rounding."""

from __future__ import annotations

from functools import cache

import numpy as np

from headrace.kernels.gpu.pointwise_terms import Call, Term, source
from headrace.kernels.gpu.program import C_TYPES


@cache
def cast_to(data: np.dtype, target: np.dtype) -> Term:
    """`source` 0 converted to `target` by the rules of `cast`."""
    return Call(f"cast_to<{C_TYPES[target]}>", (source(0, data),), target)
