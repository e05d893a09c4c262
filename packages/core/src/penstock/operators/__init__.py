"""Floor 3: operators, each declared once.

A new operator is a new file. `penstock.operators.manifest`, which a tool writes, says which module
declares which operator, so that each is imported when it is first used. What is re-exported here
is what a declaration is written with, also outside of the library.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from penstock.operators.argument_types import (
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
from penstock.operators.operator import BatchContext, Operator, SampleContext, operator
from penstock.operators.schema import REQUIRED, Arg, Input, Spec

if TYPE_CHECKING:
    from penstock.kernels.gpu.program import CudaKernel
    from penstock.operators.batch_arguments import scalars
    from penstock.operators.planning import PlanContext, Planned, Samples, plan_batch
    from penstock.operators.readers.base import Reader, reader

__all__ = [
    "REQUIRED",
    "Arg",
    "BatchContext",
    "BoolArg",
    "CudaKernel",
    "DataTypeArg",
    "FloatArg",
    "FloatListArg",
    "Input",
    "IntArg",
    "IntListArg",
    "Operator",
    "PathArg",
    "PathListArg",
    "PlanContext",
    "Planned",
    "Reader",
    "SampleContext",
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
    "PlanContext": "penstock.operators.planning",
    "Planned": "penstock.operators.planning",
    "Reader": "penstock.operators.readers.base",
    "Samples": "penstock.operators.planning",
    "plan_batch": "penstock.operators.planning",
    "reader": "penstock.operators.readers.base",
    "scalars": "penstock.operators.batch_arguments",
}
"""Names that are imported when they are asked for, and their modules."""


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return [*__all__]
