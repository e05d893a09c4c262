"""Selection of the functions to rewrite: the user's own, not those of libraries."""

from __future__ import annotations

import inspect
import os
import sysconfig
from types import FunctionType, ModuleType

from headrace.autograph import tracing
from headrace.tracebacks import own_folders

MARK = "_headrace_do_not_convert"
"""The attribute of functions that users want left alone."""

_INSTALLED = "-packages"
"""Common suffix of the folders that packages are installed in: ``site-packages`` and so on."""
_LEFT_ALONE = (
    inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
    # What iterates over a generator is Python's own code, outside of any branch.
)
_STANDARD = tuple({os.path.join(sysconfig.get_path(name), "") for name in ("stdlib", "platstdlib")})
_mentions: dict[int, bool] = {}


def is_selected(function: FunctionType) -> bool:
    """Return True if conditions in `function` may be on data.

    A function of an installed package is selected where its package is that of the definition, or
    where its module uses Headrace.
    """
    code = function.__code__
    if code.co_flags & _LEFT_ALONE or getattr(function, MARK, False):
        return False
    file = code.co_filename
    own = own_folders()
    if file.startswith(own):
        return file.startswith(tuple(os.path.join(f, "auto_aug", "") for f in own))
    if _INSTALLED in file:
        package = (function.__module__ or "").partition(".")[0]
        return package == tracing.package() or _uses_headrace(function)
    return not file.startswith((*_STANDARD, "<frozen "))


def _uses_headrace(function: FunctionType) -> bool:
    scope = function.__globals__
    found = _mentions.get(id(scope))
    if found is None:
        found = any(_is_headrace(value) for value in list(scope.values()))
        if "__name__" in scope:  # a module, which stays
            _mentions[id(scope)] = found
    return found


def _is_headrace(value: object) -> bool:
    name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", None)
    return isinstance(name, str) and name.partition(".")[0] == "headrace"
