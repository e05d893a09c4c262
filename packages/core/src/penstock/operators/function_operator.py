"""Operators declared by a plain function of arrays: one body for both devices."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from penstock.operators.operator import Operator, SampleContext
from penstock.operators.schema import Spec

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
    named = {
        p.name for p in parameters[1:] if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)
    }

    class FunctionOperator(Operator):
        def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
            return inputs[0] if infer is None else infer(*inputs)

        def cpu(self, c: SampleContext, *inputs: np.ndarray) -> Any:
            values = vars(c.args)
            arguments = values if takes_all else {k: values[k] for k in values if k in named}
            result = function(np, *inputs, **arguments)
            if isinstance(result, tuple):
                return tuple(np.asarray(r) for r in result)
            return np.asarray(result)

    FunctionOperator.__name__ = FunctionOperator.__qualname__ = function.__name__
    FunctionOperator.__module__ = function.__module__
    FunctionOperator.__doc__ = function.__doc__
    return FunctionOperator
