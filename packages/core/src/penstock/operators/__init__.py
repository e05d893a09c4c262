"""Floor 3: operators, each declared once.

A new operator is a new file in the folder of its family; what operators are declared and written
with is in `support`. `penstock.operators.support.manifest`, which a tool writes, says which module
declares which operator, so that each is imported when it is first used. What is re-exported here
is what a declaration is written with, also outside of the library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penstock.operators.support.argument_types import (
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
from penstock.operators.support.operator import (
    BatchContext,
    BatchOperator,
    Operator,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from penstock.operators.support.schema import REQUIRED, Arg, Input, Spec

if TYPE_CHECKING:
    from penstock.kernels.gpu.program import CudaKernel
    from penstock.operators.readers.base import Reader, reader
    from penstock.operators.readers.index import FileIndex, Index, RaggedColumn
    from penstock.operators.support.arguments import scalars

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
    "CudaKernel": "penstock.kernels.gpu.program",
    "FileIndex": "penstock.operators.readers.index",
    "Index": "penstock.operators.readers.index",
    "PlanContext": "penstock.operators.support.planning",
    "Planned": "penstock.operators.support.planning",
    "RaggedColumn": "penstock.operators.readers.index",
    "Reader": "penstock.operators.readers.base",
    "Samples": "penstock.operators.support.planning",
    "plan_batch": "penstock.operators.support.planning",
    "reader": "penstock.operators.readers.base",
    "scalars": "penstock.operators.support.arguments",
}
"""Names that are imported when they are asked for, and their modules."""


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return [*__all__]
