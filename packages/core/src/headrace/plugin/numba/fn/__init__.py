"""The function that adds a function compiled by Numba to a pipeline."""

from __future__ import annotations

from headrace.api.functions import function_of
from headrace.plugin.numba.function_operator import NumbaFunction

numba_function = function_of(NumbaFunction.schema, __name__)
numba_function.__name__ = numba_function.__qualname__ = "numba_function"

from headrace.plugin.numba.fn import experimental  # noqa: E402 - it has the function from here

__all__ = ["experimental", "numba_function"]


def __dir__() -> list[str]:
    return [*__all__]
