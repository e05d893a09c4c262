"""Numbers that several threads of compiled code change at once."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

from headrace.kernels.compilation import njit


@intrinsic  # type: ignore[misc]
def fetch_add(typing: Any, address: Any, value: Any) -> Any:
    """Add to the 64-bit number at an address, which other threads may do at once; what it was."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        place = builder.inttoptr(args[0], ir.IntType(64).as_pointer())
        return builder.atomic_rmw("add", place, args[1], "seq_cst")

    return types.int64(types.int64, types.int64), generate


@njit(nogil=True)
def next_of(taken: Any) -> int:
    """The first of the numbers 0, 1, ... that no thread has taken; `taken`, int64 ``(1,)``, counts
    them.
    """
    return fetch_add(taken.ctypes.data, 1)  # type: ignore[no-any-return]
