"""Floor 3: operators, each declared once.

Importing this package imports every module below it, and with that registers every built-in
operator: a new operator is a new file, and no list of files has to be kept. What is re-exported
here is what a declaration is written with, also outside of the library.
"""

from __future__ import annotations

import importlib
import pkgutil

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


for _module in pkgutil.walk_packages(__path__, prefix=__name__ + "."):
    importlib.import_module(_module.name)
