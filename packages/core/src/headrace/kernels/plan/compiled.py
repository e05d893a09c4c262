"""Loops over samples on the host, compiled: geometry, and what describes batches to kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from numba.extending import typeof_impl

from headrace.kernels.compilation import njit
from headrace.tensors.gpu.traced import HasRaw, UntrackedError

_Function = TypeVar("_Function", bound=Callable[..., Any])


@typeof_impl.register(HasRaw)
def _refuse(value: HasRaw, context: Any) -> Any:
    raise UntrackedError("a compiled function whose calls are not noted takes a tracked array")


def compiled(function: _Function) -> _Function:
    """`function`, compiled at its first call and kept on disk.

    Unlike the loops over pixels below ``kernels/cpu``, these do not let go of the interpreter: they
    take a few microseconds, and getting it back from a thread that has just taken it far more.
    Floating point is that of NumPy: nothing is contracted, and divisions by zero are no errors.
    """
    return njit(error_model="numpy")(function)
