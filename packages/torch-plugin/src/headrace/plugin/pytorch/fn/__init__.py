"""Functions of PyTorch inside pipelines, under the module path that DALI gives them."""

from __future__ import annotations

from headrace.api.functions import function_of
from headrace.plugin.pytorch.function_operator import TorchFunction

torch_python_function = function_of(TorchFunction.schema, __name__)
torch_python_function.__name__ = torch_python_function.__qualname__ = "torch_python_function"

__all__ = ["torch_python_function"]


def __dir__() -> list[str]:
    return [*__all__]
