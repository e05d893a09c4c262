"""Floor 3: operators, each declared once.

A new operator is a new file in the folder of its family; what operators are declared and written
with is in `support`. `headrace.operators.support.manifest`, which a tool writes, says which module
declares which operator, so that each is imported when it is first used. What is re-exported here
is what a declaration is written with, also outside of the library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from headrace.operators.support.argument_types import (
    BoolArg,
    DataTypeArg,
    FloatArg,
    FloatListArg,
    IntArg,
    IntListArg,
    PathArg,
    PathListArg,
    StringArg,
    StringListArg,
)
from headrace.operators.support.operator import (
    BatchContext,
    BatchOperator,
    Operator,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec

if TYPE_CHECKING:
    from headrace.kernels.gpu.program import CudaKernel
    from headrace.operators.readers.base import Reader, reader
    from headrace.operators.readers.index import FileIndex, Index, RaggedColumn
    from headrace.operators.support.arguments import scalars

__all__ = [
    "REQUIRED",
    "Arg",
    "BatchContext",
    "BatchOperator",
    "BoolArg",
    "CudaKernel",
    "DataTypeArg",
    "FileIndex",
    "FloatArg",
    "FloatListArg",
    "Index",
    "Input",
    "IntArg",
    "IntListArg",
    "Operator",
    "PathArg",
    "PathListArg",
    "PlanContext",
    "Planned",
    "RaggedColumn",
    "Reader",
    "SampleContext",
    "SampleOperator",
    "Samples",
    "Spec",
    "StringArg",
    "StringListArg",
    "operator",
    "plan_batch",
    "reader",
    "scalars",
]

_WHERE = {
    "CudaKernel": "headrace.kernels.gpu.program",
    "FileIndex": "headrace.operators.readers.index",
    "Index": "headrace.operators.readers.index",
    "PlanContext": "headrace.operators.support.planning",
    "Planned": "headrace.operators.support.planning",
    "RaggedColumn": "headrace.operators.readers.index",
    "Reader": "headrace.operators.readers.base",
    "Samples": "headrace.operators.support.planning",
    "plan_batch": "headrace.operators.support.planning",
    "reader": "headrace.operators.readers.base",
    "scalars": "headrace.operators.support.arguments",
}
"""Names that are imported when they are asked for, and their modules."""


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return [*__all__]
