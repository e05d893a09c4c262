"""Operators declared by a plain function of arrays: one body for both devices."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.errors import DataTypeError, ShapeError
from penstock.operators.operator import Operator, SampleContext
from penstock.operators.schema import Spec
from penstock.types import storage_dtype

Infer = Callable[..., "Spec | tuple[Spec, ...]"]


def operator_class(function: Callable[..., Any], infer: Infer | None) -> type[Operator]:
    """An operator whose `cpu` calls ``function(xp, *inputs, **arguments)``.

    Parameters
    ----------
    function
        Takes the array module (NumPy here), the inputs of one sample and those of the operator's
        arguments that it names.
    infer
        Takes a `Spec` for each input and returns those of the outputs; the output is like the
        first input when not given.
    """
    parameters = list(inspect.signature(function).parameters.values())
    takes_all = any(p.kind is p.VAR_KEYWORD for p in parameters)
    named = {p.name for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)}

    class FunctionOperator(Operator):
        def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
            specs = inputs[0] if infer is None else infer(*inputs)
            self._specs = (specs,) if isinstance(specs, Spec) else tuple(specs)
            return specs

        def cpu(self, c: SampleContext, *inputs: np.ndarray) -> Any:
            values = vars(c.args)
            arguments = values if takes_all else {k: values[k] for k in values if k in named}
            result = function(np, *inputs, **arguments)
            results = result if isinstance(result, tuple) else (result,)
            if len(results) != len(self._specs):
                raise ShapeError(
                    f"`{function.__name__}` returned {len(results)} outputs where its declaration "
                    f"says {len(self._specs)}; say with `infer=` what each of them is."
                )
            return tuple(map(_checked, results, self._specs))

    FunctionOperator.__name__ = FunctionOperator.__qualname__ = function.__name__
    FunctionOperator.__module__ = function.__module__
    FunctionOperator.__doc__ = function.__doc__
    return FunctionOperator


def _checked(output: Any, spec: Spec) -> np.ndarray:
    """An output of a function as an array, if it is what the declaration says."""
    if output is None:
        raise DataTypeError("The function returned None; return its output.")
    array = np.asarray(output)
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
