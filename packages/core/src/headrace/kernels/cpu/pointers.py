"""Arrays at addresses, for compiled loops over several samples."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_borrowed
from numba.extending import intrinsic
from numba.np.arrayobj import populate_array


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


@intrinsic  # type: ignore[misc]
def call_at(typing: Any, address: Any, arguments: Any) -> Any:
    """Call the C function at an address with a tuple of 64-bit numbers; it returns an ``int``.

    Where a parameter is shorter, the function looks at the lower bits, by all 64-bit conventions.
    """
    count = arguments.count

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        function, packed = args
        parts = cgutils.unpack_tuple(builder, packed, count)
        kind = ir.FunctionType(ir.IntType(32), [ir.IntType(64)] * count)
        return builder.call(builder.inttoptr(function, kind.as_pointer()), parts)

    return types.int32(address, arguments), generate


@intrinsic  # type: ignore[misc]
def channels_last(typing: Any, planes: Any) -> Any:
    """``planes.transpose(1, 2, 0)``, of which Numba's own takes two seconds to compile."""
    view = types.Array(planes.dtype, 3, "A")

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        source = context.make_array(planes)(context, builder, args[0])
        turned = context.make_array(view)(context, builder)
        shape, strides = (
            cgutils.unpack_tuple(builder, numbers) for numbers in (source.shape, source.strides)
        )
        populate_array(
            turned,
            data=source.data,
            shape=[shape[axis] for axis in (1, 2, 0)],
            strides=[strides[axis] for axis in (1, 2, 0)],
            itemsize=source.itemsize,
            meminfo=source.meminfo,
            parent=source.parent,
        )
        return impl_ret_borrowed(context, builder, view, turned._getvalue())

    return view(planes), generate
