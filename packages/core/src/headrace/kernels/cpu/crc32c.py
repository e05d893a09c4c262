"""The checksum CRC-32C, by the processor's instruction where it has one."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.simd import call_llvm

_POLYNOMIAL = 0x82F63B78
_ALL = np.uint64(0xFFFFFFFF)
_BYTE = np.uint64(0xFF)
_INSTRUCTIONS = {"+sse4.2": "llvm.x86.sse42.crc32.64.64", "+crc": "llvm.aarch64.crc32cx"}
"""By the name that LLVM has for what a processor can: its function."""


def _make_tables() -> np.ndarray:
    """uint64 ``(8, 256)``: what a byte adds that has that many after it."""
    tables = np.empty((8, 256), np.uint64)
    rest = np.arange(256, dtype=np.uint64)
    for _ in range(8):
        rest = (rest >> np.uint64(1)) ^ ((rest & np.uint64(1)) * np.uint64(_POLYNOMIAL))
    tables[0] = rest
    for k in range(1, 8):
        tables[k] = tables[0][tables[k - 1] & _BYTE] ^ (tables[k - 1] >> np.uint64(8))
    return tables


_TABLES = _make_tables()


@intrinsic  # type: ignore[misc]
def eight_bytes(typing: Any, data: Any, at: Any) -> Any:
    """Eight bytes from a place on as an integer, uint64; the place is not checked."""

    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        memory = context.make_array(data)(context, builder, args[0]).data
        place = builder.bitcast(builder.gep(memory, [args[1]]), ir.IntType(64).as_pointer())
        return builder.load(place, align=1)

    return types.uint64(data, types.int64), generate


@njit(nogil=True)
def with_eight_by_table(rest: Any, data: Any) -> Any:
    """The remainder after eight more bytes."""
    data ^= rest
    rest = np.uint64(0)
    for k in range(8):
        rest ^= _TABLES[7 - k, (data >> np.uint64(8 * k)) & _BYTE]
    return rest


def _instruction() -> str:
    """LLVM's function for eight more bytes; empty where the code is for a processor without it."""
    if numba.config.DISABLE_JIT:
        return ""
    can = cpu_target.target_context.codegen().magic_tuple()[2].split(",")
    return next((name for feature, name in _INSTRUCTIONS.items() if feature in can), "")


@intrinsic  # type: ignore[misc]
def _with_eight(typing: Any, rest: Any, data: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        name, (rest, data) = _instruction(), args
        if "x86" in name:
            return call_llvm(builder, name, rest.type, [rest, data])
        short = ir.IntType(32)
        found = call_llvm(builder, name, short, [builder.trunc(rest, short), data])
        return builder.zext(found, rest.type)

    return types.uint64(types.uint64, types.uint64), generate


_more: Any = _with_eight if _instruction() else with_eight_by_table


@njit(nogil=True)
def crc32c(data: np.ndarray, start: int, stop: int) -> Any:
    """The checksum, uint64, of the bytes from `start` to `stop`."""
    rest = _ALL
    while start + 8 <= stop:
        rest = _more(rest, eight_bytes(data, start))
        start += 8
    while start < stop:
        rest = _TABLES[0, (rest ^ np.uint64(data[start])) & _BYTE] ^ (rest >> np.uint64(8))
        start += 1
    return rest ^ _ALL
