"""Functions compiled by Numba as operators, under the module path that DALI gives them."""

from __future__ import annotations

from headrace.api.classes import class_of
from headrace.plugin.numba import fn, function_operator

NumbaFunction = class_of(function_operator.NumbaFunction.schema, __name__)

__all__ = ["NumbaFunction", "fn"]


def __dir__() -> list[str]:
    return [*__all__]
