"""Operators of dynamic mode as classes, by the names of DALI's own module for them.

Dynamic mode is functions, and classes for readers. What is here is for programs that reach for
DALI's classes: an operator keeps what is the same in all calls, and calling it calls the function.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from functools import reduce
from typing import Any, cast

from headrace.api.modules import OperatorNamespace
from headrace.experimental.dynamic.functions import is_offered
from headrace.experimental.dynamic.operator_classes import Operator as Operator
from headrace.experimental.dynamic.reader import Reader as Reader
from headrace.operators.support import registry
from headrace.operators.support.listed import Listed
from headrace.operators.support.schema import OpSchema
from headrace.operators.support.signature import class_name
from headrace.tracebacks import public

_ROOT = "headrace.experimental.dynamic"


def _function_of(schema: OpSchema | Listed) -> Any:
    return reduce(getattr, schema.name.split("."), importlib.import_module(_ROOT))


def _class_of(schema: OpSchema, module: str) -> type[Operator]:
    return cast("type[Operator]", _function_of(schema)._op_class)


def _has_class(schema: OpSchema | Listed) -> bool:
    return is_offered(schema) or (schema.dynamic and schema.module == "random")


class _ClassNamespace(OperatorNamespace):
    """The operators that dynamic mode has functions for."""

    def _offered(self) -> Iterable[OpSchema | Listed]:
        return (s for s in registry.listed() if _has_class(s))


_namespace = _ClassNamespace(_class_of, class_name)


def _all_of(kind: str) -> list[Any]:
    """All functions, or all classes but those of readers."""
    shown = [s for s in registry.listed() if _has_class(s) and not s.hidden]
    if kind == "functions":
        return [_function_of(s) for s in shown]
    here = importlib.import_module(__name__)
    return [
        reduce(getattr, [*filter(None, s.module.split(".")), class_name(s)], here) for s in shown
    ]


@public
def __getattr__(name: str) -> Any:
    if name in ("_all_functions", "_all_ops"):
        return _all_of("functions" if name == "_all_functions" else "classes")
    return _namespace.lookup(__name__, name)


def __dir__() -> list[str]:
    return _namespace.names(__name__)


_namespace.install(__name__)
