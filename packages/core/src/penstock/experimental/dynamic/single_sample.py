"""Applies one operator to data that is there, in the calling thread, with nothing around it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import DataTypeError
from penstock.executor.cpu.arena import Arena
from penstock.executor.planning import Planner
from penstock.experimental.dynamic.values import HostValue
from penstock.operators.support.contexts import OutputRow, SampleContext
from penstock.operators.support.lazy_value import LazyValue
from penstock.operators.support.planning import Samples
from penstock.tensors.pool import HOST_POOL
from penstock.types import storage_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from penstock.graph.nodes import OpNode
    from penstock.operators.support.schema import Spec

_SMALL_BYTES = 2048
"""Outputs up to here are not worth the way to the pool."""


class _Scratch(threading.local):
    """Scratch memory of a thread."""

    def __init__(self) -> None:
        self.arena = Arena()


SCRATCH = _Scratch()


class _Row(OutputRow):
    """Memory of an output, which the user's `Tensor` will have."""

    __slots__ = ("_dtype", "handed")

    def __init__(self, dtype: np.dtype) -> None:
        self._dtype = dtype
        self.handed: np.ndarray | None = None

    def check(self, shape: Sequence[int], dtype: DTypeLike) -> None:
        """Check what an operator asks for."""
        if dtype is not self._dtype and np.dtype(dtype) != self._dtype:
            raise DataTypeError("another element type than declared")

    def row(self, index: int, shape: tuple[int, ...]) -> np.ndarray:
        """Memory for the sample."""
        if not shape or math.prod(shape) * self._dtype.itemsize <= _SMALL_BYTES:
            self.handed = np.empty(shape, self._dtype)
        else:
            self.handed = HOST_POOL.empty(shape, self._dtype)
        return self.handed

    def adopt_row(self, index: int, value: np.ndarray) -> None:
        """Take `value`, that nobody else writes to, for the sample."""
        self.handed = value


class SingleSampleRunner:
    """An operator on data of known types, ready to be applied to a single sample.

    Attributes
    ----------
    seconds
        About how long it takes.
    """

    __slots__ = (
        "_args",
        "_converters",
        "_cpu",
        "_dtypes",
        "_node",
        "_only",
        "_planner",
        "_specs",
        "_unplanned",
        "seconds",
    )

    def __init__(self, node: OpNode, op: Any, specs: tuple[Spec, ...]) -> None:
        self._node = node
        self._cpu = op.cpu
        self._args = op.args
        self._specs = specs
        self._only = specs[0] if len(specs) == 1 and specs[0].ndim is not None else None
        """What the only output is, where its rank is known."""
        frame_args = op.frame_args
        self._converters = {
            arg.name: None if arg.name in frame_args else arg.type.sample
            for arg in node.schema.args.values()
        }
        self._dtypes = [storage_dtype(spec.dtype) for spec in specs]
        self._planner = None
        self._unplanned: frozenset[str] = frozenset()
        if op.plan is not None and op.needs_plan:
            constant = op.tensor_args.keys() <= set(op.unplanned)
            self._planner = Planner(op, self._args, specs, constant=constant)
            self._unplanned = frozenset(op.unplanned)
        self.seconds = 1.0

    def run(
        self,
        inputs: tuple[Any, ...],
        tensors: tuple[tuple[str, Any, Any], ...],
        seed: Any,
    ) -> list[HostValue]:
        """The outputs for the only sample of each input.

        Parameters
        ----------
        inputs
            The values of the inputs.
        tensors
            Arguments given as tensors: name, value, converter.
        seed
            What random numbers depend on.

        Raises
        ------
        Exception
            Whatever the operator raises, as it is.
        """
        start = time.perf_counter()
        plans = None
        planner = self._planner
        if planner is not None:
            if planner.remembers and len(inputs) == 1:
                plans = planner.of_shape(inputs[0].rows[0].shape)
            else:
                plans = planner.plan(
                    [Samples(value.rows) for value in inputs],
                    {name: (value, convert) for name, value, convert in tensors},
                    (0,),
                    seed=seed,
                )
            if plans.values is not None:
                sources = inputs[0].sources if inputs else None
                return [
                    HostValue([each[0, ...]], spec, sources)
                    for each, spec in zip(plans.values, self._specs, strict=True)
                ]
            tensors = tuple([t for t in tensors if t[0] in self._unplanned])
        arena = SCRATCH.arena
        args = self._args
        if tensors:
            args = SimpleNamespace(**vars(args))
            for name, value, convert in tensors:
                row = value.rows[0]
                setattr(args, name, row if convert is None else convert(row))
        rows = [_Row(dtype) for dtype in self._dtypes]
        first = inputs[0] if inputs else None
        sources = None if first is None else first.sources
        context = SampleContext(self._node, args, arena, seed, rows, (0,), sources, plans)
        try:
            if len(inputs) == 1:
                result = self._cpu(context, first.rows[0])  # type: ignore[union-attr]
            else:
                result = self._cpu(context, *[value.rows[0] for value in inputs])
            if type(result) is not tuple:
                only = self._only
                if only is not None and result is not None and result is rows[0].handed:
                    # Its type has been checked, and nobody else has its memory.
                    own: Any = result
                    return [HostValue([own], only, sources)]
                if isinstance(result, LazyValue):
                    result = result.materialise(context)
                result = (result,)
            found = [
                self._value(k, value, row.handed is value, inputs, sources)
                for k, (value, row) in enumerate(zip(result, rows, strict=True))
            ]
        finally:
            arena.reset()
            self.seconds += (time.perf_counter() - start - self.seconds) / 4
        return found

    def run_with(
        self, slots: Sequence[Any], tensors: Sequence[tuple[str, Any]], seed: Any
    ) -> list[HostValue]:
        """The outputs where arguments are given as tensors; see `run`."""
        converters = self._converters
        return self.run(
            tuple([slot.value for slot in slots]),
            tuple([(name, slot.value, converters[name]) for name, slot in tensors]),
            seed,
        )

    def _value(
        self, number: int, value: Any, own: bool, inputs: tuple[Any, ...], sources: Any
    ) -> HostValue:
        if value.dtype != self._dtypes[number]:
            raise DataTypeError("another element type than declared")
        spec = self._specs[number]
        if spec.ndim is None:
            spec = spec._replace(ndim=value.ndim)
        external = False
        if not own:
            base = value.base
            for source in inputs:
                row = source.rows[0]
                if value is row or (base is not None and (base is row or base is row.base)):
                    own = value.flags.c_contiguous
                    external = own and source.external
                    break
        if not own:
            value = HOST_POOL.copy_of(value)
        return HostValue([value], spec, sources, external=external)
