"""Makes rewritten functions: they have the user's file name, lines, variables and closure."""

from __future__ import annotations
import __future__

import ast
import copy
import functools
import sys
import threading
from collections.abc import Callable, Iterable
from types import CellType, CodeType, FunctionType, MethodType
from typing import Any

from headrace.autograph import tracing
from headrace.autograph.selection import is_selected
from headrace.autograph.source import Definition, FunctionSource, find_source
from headrace.autograph.transformer import rewrite
from headrace.graph.rewritten import HELPER, is_rewritten

_FUTURE = functools.reduce(
    int.__or__, (getattr(__future__, n).compiler_flag for n in __future__.all_feature_names)
)
"""Flags of code for imports from ``__future__``."""
_lock = threading.Lock()
_codes: dict[tuple[CodeType, str], CodeType | None] = {}
"""Rewritten code by the user's and its file; `None` where its source is not known."""


def call(function: Any) -> Any:
    """Return the function to call in place of `function`, so that its conditions may be on data."""
    if tracing.current() is None:
        return function
    return _converted(function)


def _converted(function: Any) -> Any:
    if isinstance(function, FunctionType):
        return convert(function) if is_selected(function) else function
    if isinstance(function, MethodType):
        inner = _converted(function.__func__)
        return function if inner is function.__func__ else MethodType(inner, function.__self__)
    if isinstance(function, functools.partial):
        inner = _converted(function.func)
        if inner is function.func:
            return function
        return functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, type):
        return _CALLING.get(function, function)
    if function is functools.reduce:
        return _reduce
    classes = type(function).__mro__
    method = next((vars(c)["__call__"] for c in classes if "__call__" in vars(c)), None)
    if isinstance(method, FunctionType) and is_selected(method):
        return MethodType(convert(method), function)
    return function


def convert(function: FunctionType) -> FunctionType:
    """`function`, rewritten; itself where that is not possible or has been done."""
    code = function.__code__
    if is_rewritten(function):
        return function
    key = (code, code.co_filename)
    with _lock:
        if key not in _codes:
            source = find_source(code)
            _codes[key] = None if source is None else _rewritten(source, code)
        new_code = _codes[key]
    if new_code is None:
        return function
    from headrace.autograph import runtime

    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    cells[HELPER] = CellType(runtime)
    closure = tuple(cells[name] for name in new_code.co_freevars)
    new = FunctionType(
        new_code, function.__globals__, function.__name__, function.__defaults__, closure
    )
    new.__kwdefaults__ = function.__kwdefaults__
    new.__annotations__ = function.__annotations__
    new.__dict__.update(function.__dict__)
    new.__doc__ = function.__doc__
    new.__module__ = function.__module__
    new.__qualname__ = function.__qualname__
    return new


def _rewritten(source: FunctionSource, code: CodeType) -> CodeType:
    node = copy.deepcopy(source.node)
    _strip(node)
    rewrite(node)
    # Variables of enclosing functions are those of a function around it; the closure of the user's
    # function takes their place.
    arguments = [ast.arg(name) for name in (*code.co_freevars, HELPER)]
    statement: ast.stmt = node if isinstance(node, ast.FunctionDef) else ast.Expr(node)
    ast.copy_location(statement, node)
    if source.class_name is not None:  # for private names
        statement = ast.ClassDef(source.class_name, [], [], [statement], [])
    block = [statement]
    name = getattr(statement, "name", None)
    if name is not None and name not in code.co_freevars:
        # It must not become a variable of the function around it.
        block.insert(0, ast.Global([name]))
    factory = ast.FunctionDef(
        f"{HELPER}_factory", ast.arguments([], arguments, None, [], [], None, []), block, []
    )
    if sys.version_info >= (3, 12):
        for definition in (factory, statement, node):
            definition.type_params = []
    ast.copy_location(factory, node)
    module = ast.fix_missing_locations(ast.Module([factory], []))
    flags = code.co_flags & _FUTURE
    found = compile(module, code.co_filename, "exec", flags, dont_inherit=True)
    for _ in range(2 if source.class_name is None else 3):
        found = next(c for c in found.co_consts if isinstance(c, CodeType))
    return _named_as(found, found.co_qualname, code.co_qualname)


def _strip(node: Definition) -> None:
    """Remove decorators, defaults and annotations, which the user's function object has."""
    node.args.defaults = [ast.Constant(None) for _ in node.args.defaults]
    node.args.kw_defaults = [d and ast.Constant(None) for d in node.args.kw_defaults]
    if isinstance(node, ast.FunctionDef):
        node.decorator_list = []
        node.returns = None
        a = node.args
        for arg in (*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg):
            if arg is not None:
                arg.annotation = None


def _named_as(code: CodeType, old: str, new: str) -> CodeType:
    """`code`, and the code within, with qualified names that begin with `new` in place of `old`."""
    constants = tuple(
        _named_as(c, old, new) if isinstance(c, CodeType) else c for c in code.co_consts
    )
    name = new + code.co_qualname.removeprefix(old)
    return code.replace(co_consts=constants, co_qualname=name)


def _map(function: Callable[..., Any], *iterables: Iterable[Any], **options: Any) -> Any:
    return map(call(function), *iterables, **options)


def _filter(function: Callable[..., Any] | None, iterable: Iterable[Any]) -> Any:
    return filter(call(function), iterable)


def _reduce(function: Callable[..., Any], *arguments: Any) -> Any:
    return functools.reduce(call(function), *arguments)


_CALLING: dict[Any, Any] = {map: _map, filter: _filter}
"""Python's own classes that call a function, with what calls the rewritten one."""
