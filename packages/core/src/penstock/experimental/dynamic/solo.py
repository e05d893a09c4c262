"""Applies one operator to data that is there, in the calling thread, with nothing around it."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.executor.cpu.arena import Arena
from penstock.executor.planning import Planner
from penstock.experimental.dynamic.slots import HostValue
from penstock.kernels.cpu.random import sample_uniforms
from penstock.operators.support.lazy_value import LazyValue
from penstock.operators.support.planning import Samples
from penstock.tensors.pool import HOST_POOL
from penstock.types import storage_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from penstock.executor.planning import SamplePlans
    from penstock.operators.support.schema import OpSchema, Spec

_SMALL_BYTES = 2048
"""Outputs up to here are not worth the way to the pool."""


class _Scratch(threading.local):
    """Scratch memory of a thread, and what it hands to operators."""

    def __init__(self) -> None:
        self.arena = Arena()
        self.idle: list[Lone] = []


SCRATCH = _Scratch()


class Lone:
    """The `SampleContext` of a sample that is alone: outputs have memory of their own."""

    __slots__ = (
        "_arena",
        "_handed",
        "args",
        "index",
        "iteration",
        "plans",
        "row",
        "seed",
        "source",
    )

    def __init__(self, arena: Arena) -> None:
        self._arena = arena
        self._handed: Any = None
        self.args: Any = None
        self.index = 0
        self.iteration = 0
        self.seed: Any = 0
        self.source = ""
        self.row: Any = None
        self.plans: SamplePlans | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the first output, as `plan` gave it."""
        assert self.plans is not None
        return self.plans.shapes[0][0]

    @property
    def out(self) -> np.ndarray:
        """Memory for the only output, of the shape that `plan` gave."""
        assert self.plans is not None
        return self.empty(self.plans.shapes[0][0], self.plans.dtypes[0])

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0) -> np.ndarray:
        """Memory for an output."""
        dtype = np.dtype(dtype)
        if math.prod(shape) * dtype.itemsize <= _SMALL_BYTES:
            found = np.empty(shape, dtype)
        else:
            found = HOST_POOL.empty(shape, dtype)
        if self._handed is None:
            self._handed = [found]
        else:
            self._handed.append(found)
        return found

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Scratch memory until the operator returns."""
        return self._arena.empty(shape, dtype)

    def uniforms(self, count: int) -> np.ndarray:
        """`count` float64 numbers in [0, 1) that depend on the seed only."""
        return sample_uniforms(self.seed, self.iteration, self.index, count)

    def located(self, error: Exception) -> Exception:
        """`error` itself: who calls knows where."""
        return error


class Solo:
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
        "_outputs",
        "_planner",
        "_specs",
        "_unplanned",
        "seconds",
    )

    def __init__(self, schema: OpSchema, op: Any, specs: tuple[Spec, ...]) -> None:
        self._cpu = op.cpu
        self._args = getattr(op, "op", op).args
        self._specs = specs
        self._outputs = len(specs)
        frame_args = getattr(op, "frame_args", ())
        self._converters = {
            arg.name: None if arg.name in frame_args else arg.type.sample
            for arg in schema.args.values()
        }
        self._dtypes = [storage_dtype(spec.dtype) for spec in specs]
        self._planner = None
        self._unplanned: frozenset[str] = frozenset()
        if getattr(op, "plan", None) is not None and op.needs_plan:
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
        if self._planner is not None:
            plans = self._planner.plan(
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
        scratch = SCRATCH
        context = scratch.idle.pop() if scratch.idle else Lone(scratch.arena)
        try:
            if plans is not None:
                context.plans, context.row = plans, plans.rows[0]
            if tensors:
                args = SimpleNamespace(**vars(self._args))
                for name, value, convert in tensors:
                    row = value.rows[0]
                    setattr(args, name, row if convert is None else convert(row))
                context.args = args
            else:
                context.args = self._args
            context.seed = seed
            first = inputs[0] if inputs else None
            sources = None if first is None else first.sources
            context.source = "" if sources is None else sources[0]
            if len(inputs) == 1:
                result = self._cpu(context, first.rows[0])  # type: ignore[union-attr]
            else:
                result = self._cpu(context, *[value.rows[0] for value in inputs])
            if type(result) is not tuple:
                if isinstance(result, LazyValue):
                    result = result.materialise(context)
                result = (result,)
            if len(result) != self._outputs:
                raise ValueError("another number of outputs than declared")
            handed = context._handed
            found = [
                self._value(k, value, handed, inputs, sources) for k, value in enumerate(result)
            ]
        finally:
            context._handed = None
            context.plans = None
            scratch.arena.reset()
            scratch.idle.append(context)
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
        self, number: int, value: Any, handed: Any, inputs: tuple[Any, ...], sources: Any
    ) -> HostValue:
        if value.dtype != self._dtypes[number]:
            raise ValueError("another element type than declared")
        spec = self._specs[number]
        if spec.ndim is None:
            spec = spec._replace(ndim=value.ndim)
        own = False
        external = False
        if handed is not None:
            for array in handed:
                if array is value:
                    own = True
                    break
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
