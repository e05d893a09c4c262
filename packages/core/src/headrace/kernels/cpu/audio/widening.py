"""Numbers of one type as what they are in another one's range."""

from __future__ import annotations

import numpy as np


def scale_between(source: np.dtype, target: np.dtype) -> tuple[np.float32, np.float32]:
    """Factor and summand that prepare numbers of type `source` for `target`, in float32.

    The largest number of either type is 1. Silence is 0 in signed types, and the middle of the
    range in unsigned ones: 0.5.
    """
    largest = 1 if source.kind == "f" else np.iinfo(source).max
    factor, summand = 1 / largest, 0.0
    if (source.kind == "u") != (target.kind == "u"):
        to_unsigned = target.kind == "u"
        factor, summand = (factor / 2, 0.5) if to_unsigned else (factor * 2, -1.0)
    return np.float32(factor), np.float32(summand)


def widen(source: np.ndarray, target: np.dtype, out: np.ndarray) -> None:
    """Fill the float32 `out` with `source`, prepared for `target`: see `scale_between`."""
    factor, summand = scale_between(source.dtype, target)
    np.multiply(source, factor, out=out, dtype=np.float32, casting="unsafe")
    if summand:
        out += summand
