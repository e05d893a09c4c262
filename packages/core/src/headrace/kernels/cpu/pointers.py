"""Arrays at addresses, for compiled loops over several samples."""

from __future__ import annotations

from typing import Any

from numba.core import types
from numba.extending import intrinsic


@intrinsic  # type: ignore[misc]
def pointer(typing: Any, address: Any) -> Any:
    """An address as a pointer; ``numba.carray(pointer(address), size, dtype)`` is an array."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.voidptr(types.uint64), generate


@intrinsic  # type: ignore[misc]
def elements(typing: Any, address: Any, like: Any) -> Any:
    """The same to elements of the type that array `like` has."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.inttoptr(args[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(types.uint64, like), generate  # type: ignore[attr-defined]
