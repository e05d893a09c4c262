"""Operators as classes: arguments may be given to the constructor or to the call.

Classes are made from the operators' declarations, one for each function in `headrace.fn`.

`_DataNode`, `_dlpack_to_array`, `_dlpack_from_array` and `_op_name` have the names by which
programs know them.
"""

from __future__ import annotations

from typing import Any

from headrace.api import classes
from headrace.api.class_lists import cpu_ops as cpu_ops
from headrace.api.class_lists import gpu_ops as gpu_ops
from headrace.api.class_lists import mixed_ops as mixed_ops
from headrace.api.class_lists import register_cpu_op as register_cpu_op
from headrace.api.class_lists import register_gpu_op as register_gpu_op
from headrace.api.class_lists import reload as Reload  # noqa: F401, N812 - DALI's name
from headrace.api.classes import Compose as Compose
from headrace.api.classes import python_op_factory as python_op_factory
from headrace.graph.data_node import DataNode as _DataNode  # noqa: F401
from headrace.operators.support.schema_view import function_name as _op_name  # noqa: F401
from headrace.tensors.interop import from_dlpack as _dlpack_to_array  # noqa: F401
from headrace.tensors.interop import to_dlpack as _dlpack_from_array  # noqa: F401
from headrace.tracebacks import public

__path__: list[str] = []  # sub-modules are made on demand, not found on disk


@public
def __getattr__(name: str) -> Any:
    return classes.lookup(__name__, name)


def __dir__() -> list[str]:
    return classes.names(__name__)


classes.install(__name__)
