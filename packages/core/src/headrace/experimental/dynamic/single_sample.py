"""Applies one operator to data that is there, in the calling thread, with nothing around it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import DataTypeError
from headrace.executor.cpu.arena import Arena
from headrace.executor.planning import Planner
from headrace.experimental.dynamic.values import HostValue
from headrace.operators.support.contexts import SampleContext
from headrace.operators.support.lazy_value import computed
from headrace.operators.support.operator import BatchOperator, run_chunk_of_one
from headrace.operators.support.planning import PlanContext, Samples, TensorArguments
from headrace.tensors.pool import HOST_POOL
from headrace.tensors.rows import Rows
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.graph.nodes import OpNode
    from headrace.operators.support.schema import Spec

_SMALL_BYTES = 16384
"""Outputs up to here are not worth the way to the pool, which takes longer than the system takes
for new pages.
"""
_ONLY = (0,)
_NO_TENSORS: TensorArguments = {}


class _Scratch(threading.local):
    """Scratch memory of a thread."""

    def __init__(self) -> None:
        self.arena = Arena()


SCRATCH = _Scratch()


class _Context(SampleContext):
    """The context of a single sample: each output is an array of its own.

    Attributes
    ----------
    dtypes
        Element type of each output.
    handed
        Memory that the operator has asked for, by output.
    """

    __slots__ = ("dtypes", "handed")
    dtypes: list[np.dtype]
    handed: list[np.ndarray | None]

    @property
    def out(self) -> np.ndarray:
        plans = self.plans
        assert plans is not None
        return self._memory(plans.shapes[0][0], 0)

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0) -> np.ndarray:
        if dtype is not self.dtypes[output] and np.dtype(dtype) != self.dtypes[output]:
            raise DataTypeError("another element type than declared")
        return self._memory(shape, output)

    def empty_rows(
        self, indices: Sequence[int], shapes: np.ndarray, dtype: DTypeLike, output: int
    ) -> Rows:
        return Rows.of_row(self.empty(tuple(shapes[0].tolist()), dtype, output), shapes)

    def _memory(self, shape: tuple[int, ...], output: int) -> np.ndarray:
        dtype = self.dtypes[output]
        if not shape or math.prod(shape) * dtype.itemsize <= _SMALL_BYTES:
            found = np.empty(shape, dtype)
        else:
            found = HOST_POOL.empty(shape, dtype)
        self.handed[output] = found
        return found


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
        "_reduce",
        "_remembers",
        "_specs",
        "_unplanned",
        "seconds",
    )

    def __init__(self, node: OpNode, op: Any, specs: tuple[Spec, ...]) -> None:
        self._node = node
        self._reduce = op.reduce if isinstance(op, BatchOperator) else None
        """Function of a batch operator that examines its batch, which here is a single sample."""
        self._cpu = op.cpu if self._reduce is None else op.apply
        if self._reduce is not None and op.chunked:
            self._cpu = partial(run_chunk_of_one, op.apply)
        self._args = op.args
        self._specs = specs
        self._only = specs[0] if len(specs) == 1 and specs[0].ndim is not None else None
        """Spec of the only output, if its rank is known."""
        self._converters = {
            name: None if name in op.frame_args else node.schema.args[name].type.sample
            for name in op.tensor_args
        }
        self._dtypes = [storage_dtype(spec.dtype) for spec in specs]
        self._unplanned = tuple(op.tensor_args)
        """Arguments given as tensors that `cpu` looks at."""
        self._planner = None
        self._remembers = False
        if op.plan is not None and op.needs_plan:
            self._unplanned = tuple([n for n in op.tensor_args if n in op.unplanned])
            constant = len(self._unplanned) == len(op.tensor_args)
            self._planner = Planner(op, self._args, specs, constant=constant)
            self._remembers = self._planner.remembers and self._reduce is None
        self.seconds = 1.0

    def run(
        self,
        inputs: Sequence[Any],
        tensors: TensorArguments = _NO_TENSORS,
        seed: Any = 0,
    ) -> list[HostValue]:
        """The outputs for the only sample of each input."""
        start = time.perf_counter()
        first = inputs[0] if inputs else None
        sources = None if first is None else first.sources
        reduced: tuple[np.ndarray, ...] = ()
        if self._reduce is not None:
            found = self._reduce(
                PlanContext(self._args, tensors, _ONLY, seed),
                *[Rows(list(value.rows)) for value in inputs],
            )
            reduced = tuple(map(np.asarray, found if isinstance(found, tuple) else (found,)))
        plans = None
        planner = self._planner
        if planner is not None:
            if self._remembers and len(inputs) == 1:
                plans = planner.of_shape(inputs[0].rows[0].shape)
            else:
                samples = [Samples(value.rows) for value in inputs]
                samples += [Samples([array]) for array in reduced]
                plans = planner.of_sample(samples, tensors, seed)
            values = plans.values
            if values is not None:
                return [
                    HostValue([each[0, ...]], spec, sources)
                    for each, spec in zip(values, self._specs, strict=True)
                ]
        arena = SCRATCH.arena
        args = self._args
        if self._unplanned:
            args = SimpleNamespace(**vars(args))
            for name in self._unplanned:
                value, convert = tensors[name]
                row = value.rows[0]
                setattr(args, name, row if convert is None else convert(row))
        context = _Context(self._node, args, arena, seed, (), _ONLY, sources, plans)
        context.dtypes = self._dtypes
        context.handed = [None] * len(self._dtypes)
        try:
            if len(inputs) == 1 and not reduced:
                result = self._cpu(context, first.rows[0])  # type: ignore[union-attr]
            else:
                result = self._cpu(context, *[value.rows[0] for value in inputs], *reduced)
            if type(result) is not tuple:
                only = self._only
                if only is not None and result is not None and result is context.handed[0]:
                    # Its type has been checked, and it owns its memory alone.
                    return [HostValue([context.handed[0]], only, sources)]
            result = computed(result, context)
            if type(result) is not tuple:
                result = (result,)
            return [
                self._value(k, value, own is value, inputs, sources)
                for k, (value, own) in enumerate(zip(result, context.handed, strict=True))
            ]
        finally:
            arena.reset()
            self.seconds += (time.perf_counter() - start - self.seconds) / 4

    def run_with(
        self, references: Sequence[Any], tensors: Sequence[tuple[str, Any]], seed: Any
    ) -> list[HostValue]:
        """The outputs where arguments are given as tensors; see `run`."""
        converters = self._converters
        return self.run(
            [reference.value for reference in references],
            {name: (reference.value, converters[name]) for name, reference in tensors},
            seed,
        )

    def _value(
        self, number: int, value: Any, own: bool, inputs: Sequence[Any], sources: Any
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
