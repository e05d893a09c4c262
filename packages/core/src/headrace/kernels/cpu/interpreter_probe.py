"""A nap without the interpreter that tells when it ended: how long others keep the interpreter."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from headrace.kernels.compilation import njit

_MONOTONIC = 1  # CLOCK_MONOTONIC, of Linux
# What they are at run time is not what Numba's annotations say.
_clock: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))
_sleep: Any = types.ExternalFunction("usleep", types.int32(types.uint32))


@njit(nogil=True)
def nap(microseconds: int, clock: np.ndarray) -> int:
    """Sleep, and return when that ended, in nanoseconds of `time.perf_counter_ns`.

    The caller gets on when it has the interpreter again: what it reads from the clock then is later
    by the time that it took to get it.

    `clock`: int64 ``(2,)``: memory for what the system's clock says.
    """
    _sleep(np.uint32(microseconds))
    _clock(_MONOTONIC, clock.ctypes.data)
    return clock[0] * 1_000_000_000 + clock[1]
