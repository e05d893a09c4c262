"""An expression made ready to run on arrays: what is called, on what, into which memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from headrace.kernels.cpu.arithmetic import TRANSCENDENTAL, allocates, array_function
from headrace.kernels.cpu.broadcast import common_shape, run_tiled
from headrace.operators.support.arithmetic.scalars import ScalarFunction, compile_scalar, constant
from headrace.operators.support.arithmetic.shapes import not_broadcastable
from headrace.operators.support.arithmetic.types import operand_types

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.operators.support.arithmetic.expression import TypedExpression


_OUT = 0
# 512 KiB of float32: with one more of the kind it still fits into a core's own cache.
_TILE = 1 << 17
_TILE_OF_ALLOCATING = 1 << 14
_FEW = 1 << 13
"""So few elements that the set-up of a loop is what takes time."""


class Instruction(NamedTuple):
    """One call over a tile. Everything is found by number among the tile's registers."""

    function: Callable[..., Any] | None
    """``function(*operands, out=...)``; `None` brings the operand to the type of `memory`."""
    operands: tuple[int, ...]
    memory: int
    """Destination of the result."""
    result: int
    """Register that later steps read the result from."""


class ResultMemory(Protocol):
    """Provider of memory for results and scratch: a `SampleContext`, or an object with the same
    methods.
    """

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Memory for the output."""
        ...

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Memory for the time of one sample."""
        ...


class ArrayProgram:
    """Runs an expression that has axes, over tiles small enough to stay in the cache.

    * Parts without axes are computed once a sample, with Python numbers.
    * Parts known to have fewer axes than the result are computed once a sample, beforehand.
    * The rest is computed tile by tile. A result overwrites the memory of its first operand
      wherever types allow, so that a chain of operations needs no memory but the output.
    """

    def __init__(self, root: TypedExpression) -> None:
        self.dtype = root.dtype
        self._ndim = root.ndim
        self._steps: list[Instruction] = []
        self._scratch: list[tuple[int, np.dtype]] = []
        self._operands: list[tuple[int, int | ArrayProgram, np.dtype]] = []
        self._scalars: list[tuple[int, ScalarFunction, np.dtype]] = []
        self._initial: list[Any] = [None]
        self._unused: list[tuple[int, np.dtype]] = []
        self._forward = False
        self._is_quiet = True
        self._compile(root, _OUT)
        small = any(s.function is not None and allocates(s.function) for s in self._steps)
        self._tile = _TILE_OF_ALLOCATING if small else _TILE
        read = all(isinstance(source, int) for _, source, _ in self._operands)
        self._single = self._steps[0] if len(self._steps) == 1 and read else None
        """The only step, where it needs nothing converted or computed beforehand."""

    @property
    def is_quiet(self) -> bool:
        """True if NumPy has nothing to warn of: all numbers are integers."""
        return self._is_quiet

    @property
    def is_exact(self) -> bool:
        """True if results have the same bits for any memory layout of the operands."""
        return not self._forward

    def run(self, c: ResultMemory, inputs: Sequence[np.ndarray], *, leaves: bool) -> np.ndarray:
        """Compute one sample, into the operator's output if the result `leaves`, else scratch."""
        if self._single is not None:
            done = self._run_single(self._single, c, inputs, leaves=leaves)
            if done is not None:
                return done
        arrays = [
            inputs[source] if isinstance(source, int) else source.run(c, inputs, leaves=False)
            for _, source, _ in self._operands
        ]
        if self._forward:
            # The same numbers give the same result, however they lie in memory.
            arrays = [x if min(x.strides, default=0) >= 0 else x.copy("C") for x in arrays]
        shape = arrays[0].shape
        if any(x.shape != shape for x in arrays):
            try:
                shape = common_shape([x.shape for x in arrays])
            except ValueError:
                raise not_broadcastable([x.shape for x in arrays]) from None
        out = c.empty(shape, self.dtype) if leaves else c.temp(shape, self.dtype)
        # What is smaller than the output is read again and again: convert it once.
        for i, (_, _, dtype) in enumerate(self._operands):
            x = arrays[i]
            if x.size < out.size and x.dtype != dtype:
                arrays[i] = x.astype(dtype)
        registers = list(self._initial)
        for register, compute, dtype in self._scalars:
            registers[register] = dtype.type(compute(inputs))
        size = min(out.size, self._tile)
        scratch = [(r, c.temp((size,), dtype)) for r, dtype in self._scratch]
        numbers = [register for register, _, _ in self._operands]
        steps = self._steps

        def run_tile(tile: np.ndarray, operands: list[np.ndarray]) -> None:
            registers[_OUT] = tile
            for register, whole in scratch:
                registers[register] = whole[: tile.size].reshape(tile.shape)
            for register, operand in zip(numbers, operands, strict=True):
                registers[register] = operand
            for function, sources, memory, result in steps:
                if function is not None:
                    function(*[registers[s] for s in sources], out=registers[memory])
                    continue
                source, target = registers[sources[0]], registers[memory]
                if source.dtype == target.dtype:
                    registers[result] = source
                else:
                    np.copyto(target, source, casting="unsafe")
                    registers[result] = target

        if 0 < out.size <= _FEW and self.is_exact:  # NumPy's own loop takes less than better ones
            run_tile(out, arrays)
        else:
            run_tiled(run_tile, out, arrays, self._tile)
        return out

    def run_once(self, inputs: Sequence[np.ndarray], out: np.ndarray) -> bool:
        """Fill `out` by one call, whatever its size, where the expression is one operation."""
        step = self._single
        if step is None or step.function is None or allocates(step.function):
            return False
        if self._forward or self._scalars:
            return False
        registers = list(self._initial)
        for register, source, _ in self._operands:
            registers[register] = inputs[source]  # type: ignore[index]
        step.function(*[registers[s] for s in step.operands], out=out)
        return True

    def _run_single(
        self, step: Instruction, c: ResultMemory, inputs: Sequence[np.ndarray], *, leaves: bool
    ) -> np.ndarray | None:
        """Compute one sample by one call; `None` unless operands are of one shape, and small."""
        registers = list(self._initial)
        shape: tuple[int, ...] | None = None
        for register, source, _ in self._operands:
            x = inputs[source]  # type: ignore[index]
            if shape is None:
                shape = x.shape
                if not 0 < x.size <= self._tile:
                    return None
            if x.shape != shape or not x.flags.c_contiguous:
                return None
            registers[register] = x
        assert shape is not None
        for register, compute, dtype in self._scalars:
            registers[register] = dtype.type(compute(inputs))
        out = c.empty(shape, self.dtype) if leaves else c.temp(shape, self.dtype)
        assert step.function is not None
        step.function(*[registers[s] for s in step.operands], out=out)
        return out

    def _compile(self, node: TypedExpression, memory: int) -> None:
        """Emit the steps that compute operation `node` into register `memory`."""
        types = operand_types(node)
        self._is_quiet &= all(dtype.kind in "biu" for dtype in (node.dtype, *types))
        sources: list[int] = []
        constants: list[Any] = []
        lent: list[tuple[int, np.dtype]] = []
        memory_is_free = True
        for operand, dtype in zip(node.operands, types, strict=True):
            constants.append(constant(operand, dtype))
            if operand.is_scalar:
                sources.append(self._scalar(operand, dtype))
                continue
            read = self._operand(operand, dtype) if self._is_read(operand) else None
            if read is not None and operand.dtype == dtype:
                sources.append(read)
                continue
            if memory_is_free and dtype == node.dtype:
                own = memory
                memory_is_free = False
            else:
                own = self._lend(dtype)
                lent.append((own, dtype))
            if read is not None:
                sources.append(self._convert(read, own))
            elif operand.dtype == dtype:
                self._compile(operand, own)
                sources.append(own)
            else:
                narrow = self._lend(operand.dtype)
                self._compile(operand, narrow)
                self._unused.append((narrow, operand.dtype))
                sources.append(self._convert(narrow, own))
        self._unused.extend(lent)
        self._forward |= node.kind in TRANSCENDENTAL
        first = node.operands[0].dtype
        natural = first.kind in "bu" and (
            first.itemsize < types[0].itemsize or types[0].kind == "u"
        )
        function = array_function(node.kind, types[0], constants, natural=natural)
        self._steps.append(Instruction(function, tuple(sources), memory, memory))

    def _is_read(self, operand: TypedExpression) -> bool:
        """True if `operand` is there before the first tile."""
        if operand.kind == "input":
            return True
        return operand.ndim is not None and self._ndim is not None and operand.ndim < self._ndim

    def _register(self, value: Any = None) -> int:
        self._initial.append(value)
        return len(self._initial) - 1

    def _scalar(self, node: TypedExpression, dtype: np.dtype) -> int:
        compute = compile_scalar(node, dtype)
        if node.is_constant:
            return self._register(dtype.type(compute([])))
        register = self._register()
        self._scalars.append((register, compute, dtype))
        return register

    def _operand(self, node: TypedExpression, dtype: np.dtype) -> int:
        register = self._register()
        source = node.value if node.kind == "input" else ArrayProgram(node)
        self._operands.append((register, source, dtype))
        return register

    def _convert(self, source: int, memory: int) -> int:
        result = self._register()
        self._steps.append(Instruction(None, (source,), memory, result))
        return result

    def _lend(self, dtype: np.dtype) -> int:
        for entry in self._unused:
            if entry[1] == dtype:
                self._unused.remove(entry)
                return entry[0]
        register = self._register()
        self._scratch.append((register, dtype))
        return register
