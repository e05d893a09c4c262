"""Floor 3: operators, each declared once.

A new operator is a new file. `penstock.operators.manifest`, which a tool writes, says which module
declares which operator, so that each is imported when it is first used. What is re-exported here
is what a declaration is written with, also outside of the library.
"""

from __future__ import annotations

from penstock.operators.argument_types import (
    BoolArg,
    FloatArg,
    FloatListArg,
    IntArg,
    IntListArg,
    StringArg,
)
from penstock.operators.operator import Operator, operator
from penstock.operators.schema import REQUIRED, Arg, Input, Spec

__all__ = [
    "REQUIRED",
    "Arg",
    "BoolArg",
    "FloatArg",
    "FloatListArg",
    "Input",
    "IntArg",
    "IntListArg",
    "Operator",
    "Spec",
    "StringArg",
    "operator",
]


def __dir__() -> list[str]:
    return [*__all__]
