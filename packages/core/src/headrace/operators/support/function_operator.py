"""Operators declared by a plain function of arrays: one body for both devices."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentTypeError, DataTypeError, ShapeError
from headrace.operators.support.schema import Spec, as_specs
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from headrace.operators.support.operator import (
        BatchContext,
        Operator,
        SampleContext,
        SampleOperator,
    )
    from headrace.tensors.gpu.batch import DeviceBatch
    from headrace.tensors.gpu.queue import Queue

Infer = Callable[..., "Spec | tuple[Spec, ...]"]


def operator_class(
    base: type[SampleOperator], function: Callable[..., Any], infer: Infer | None
) -> type[Operator]:
    """An operator that calls ``function(xp, *inputs, **arguments)`` for each sample."""
    parameters = list(inspect.signature(function).parameters.values())
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = {p.name for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}

    class FunctionOperator(base):  # type: ignore[misc, valid-type]
        def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
            self._specs = as_specs(inputs[0] if infer is None else infer(*inputs))
            return self._specs

        def cpu(self, c: SampleContext, *inputs: np.ndarray) -> Any:
            return self._outputs(np, inputs, vars(c.args))

        def gpu(self, c: BatchContext, *inputs: Any) -> Any:
            runtime = c.queue.runtime
            constants = vars(c.args)
            each = {name: c.values(name) for name in self.tensor_args}
            made: list[tuple[Any, ...]] = []
            # CuPy's work goes to the stream of all other operators, so nothing has to wait.
            with runtime.using(c.queue.stream):
                for i in range(c.size):
                    values = {**constants, **{name: v[i] for name, v in each.items()}}
                    try:
                        sample = [_sample(batch, i) for batch in inputs]
                        made.append(self._outputs(runtime.xp, sample, values))
                    except Exception as error:
                        raise c.located(error, i) from error
                return tuple(_batch(c.queue, arrays) for arrays in zip(*made, strict=True))

        def _outputs(self, xp: Any, inputs: Sequence[Any], values: dict[str, Any]) -> Any:
            arguments = values if takes_all else {k: values[k] for k in values if k in named}
            result = function(xp, *inputs, **arguments)
            results = result if isinstance(result, tuple) else (result,)
            if len(results) != len(self._specs):
                raise ShapeError(
                    f"`{function.__name__}` returned {len(results)} outputs where its declaration "
                    f"says {len(self._specs)}; say with `infer=` what each of them is."
                )
            return tuple(_checked(xp, *pair) for pair in zip(results, self._specs, strict=True))

    FunctionOperator.__name__ = FunctionOperator.__qualname__ = function.__name__
    FunctionOperator.__module__ = function.__module__
    FunctionOperator.__doc__ = function.__doc__
    return FunctionOperator


def check_parameters(
    function: Callable[..., Any],
    name: str,
    inputs: Sequence[Any],
    arguments: Sequence[str],
    traits: Mapping[str, Any],
) -> None:
    """Check that a function can be called as `operator_class` says."""
    parameters = list(inspect.signature(function).parameters.values())
    kinds = inspect.Parameter
    positional = [
        p for p in parameters if p.kind in (kinds.POSITIONAL_ONLY, kinds.POSITIONAL_OR_KEYWORD)
    ]
    if any(p.kind is kinds.VAR_POSITIONAL for p in parameters):
        return
    count = len(inputs)
    form = f"`{function.__name__}(xp{''.join(f', {i.name}' for i in inputs)}, ...)`"
    wrong = ""
    if not positional or not (positional[0].name == "xp" or positional[0].name[0] == "_"):
        first = f"`{positional[0].name}`" if positional else "no parameter"
        wrong = f"its first parameter must be `xp`, the array module, but is {first}"
    elif not traits.get("variadic") and len(positional) < 1 + count:
        wrong = f"{count} inputs are declared, and it takes {len(positional) - 1} after `xp`"
    elif not traits.get("variadic"):
        others = [p for p in parameters if p not in positional[: 1 + count]]
        unknown = [
            p.name
            for p in others
            if p.default is p.empty and p.kind is not kinds.VAR_KEYWORD and p.name not in arguments
        ]
        if unknown:
            wrong = f"`{unknown[0]}` is neither one of its {count} inputs nor an argument (`args=`)"
    if wrong:
        raise ArgumentTypeError(
            f"The function `{function.__name__}` of operator `{name}` cannot be called as {form}: "
            f"{wrong}."
        )


def _checked(xp: Any, output: Any, spec: Spec) -> Any:
    """An output of a function as an array of `xp`, if it is what the declaration says."""
    if output is None:
        raise DataTypeError("The function returned None; return its output.")
    array = xp.asarray(output)
    if array.dtype != storage_dtype(spec.dtype):
        raise DataTypeError(
            f"The operator made elements of type {array.dtype} where its declaration says "
            f"{storage_dtype(spec.dtype)}; tell the type with `infer=`, or convert the output."
        )
    if spec.ndim is not None and array.ndim != spec.ndim:
        raise ShapeError(
            f"The operator made an output of shape {array.shape} where its declaration says "
            f"{spec.ndim} dimensions; tell their number with `infer=`, or reshape the output."
        )
    return array


def _sample(batch: Any, index: int) -> Any:
    """Sample `index` of a batch on the device, or of one on the host, as an array."""
    rows = getattr(batch, "rows", None)
    return batch.array(index) if rows is None else rows[index]


def _batch(queue: Queue, arrays: tuple[Any, ...]) -> DeviceBatch:
    """The batch that arrays of the device make up: new ones, or views of inputs.

    They are kept until nothing reads them any more, and with them, of a view, its input.
    """
    from headrace.tensors.gpu.batch import DeviceBatch
    from headrace.tensors.gpu.foreign_memory import ForeignMemory

    ranks = {array.ndim for array in arrays}
    if len(ranks) > 1:
        raise ShapeError(
            f"The operator made samples of {' and '.join(map(str, sorted(ranks)))} dimensions in "
            "one batch; their number must be the same."
        )
    xp = queue.runtime.xp
    packed = [a if a.flags.c_contiguous else xp.ascontiguousarray(a) for a in arrays]
    owner = ForeignMemory(queue.runtime, packed)
    owner.record_stream(queue.stream)
    shapes = np.array([a.shape for a in packed], np.int64).reshape(len(packed), packed[0].ndim)
    pointers = np.array([address_of(a) for a in packed], np.uint64)
    return DeviceBatch(queue.runtime, (owner,), pointers, shapes, packed[0].dtype)


def address_of(array: Any) -> int:
    """Address of the first element of an array of the array module."""
    interface = getattr(array, "__cuda_array_interface__", None) or array.__array_interface__
    address: int = interface["data"][0]
    return address
