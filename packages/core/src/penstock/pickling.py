"""Pickling of functions that a new process could not import: lambdas, local functions, notebooks'.

Python pickles functions by their names, which says nothing to a process that was started anew
where the function is not at the top of a module. Such functions travel as their code here,
together with what they refer to.
"""

from __future__ import annotations

import importlib
import io
import marshal
import pickle
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from penstock.errors import ArgumentTypeError, ArgumentValueError

_F = TypeVar("_F", bound=Callable[..., Any])


def pickle_by_value(fun: _F) -> _F:
    """Mark a function, so that sources that refer to it take its code along to worker processes.

    For functions at the top of a module that the workers cannot import. Lambdas, local functions
    and those of notebooks need no mark.

    Raises
    ------
    ArgumentTypeError
        If `fun` is no Python function.
    """
    if not isinstance(fun, types.FunctionType):
        raise ArgumentTypeError(
            f"Only functions can be pickled by value, got a {type(fun).__name__}."
        )
    fun._penstock_pickle_by_value = True  # type: ignore[attr-defined]
    return fun


class Pickler:
    """How sources are packed for processes that are started anew, and unpacked there.

    Parameters
    ----------
    given
        A module or object with `dumps` and `loads`; or a sequence of it, keyword arguments for
        `dumps` and keyword arguments for `loads`, of which the latter may be left out. Functions
        are taken along by value, with cloudpickle for what that does not suffice for, when None.

    Raises
    ------
    ArgumentValueError
        If `given` is something else.
    """

    def __init__(self, given: Any = None) -> None:
        parts = list(given) if isinstance(given, (tuple, list)) else [given]
        module, for_dumps, for_loads, *more = parts + [None] * (3 - len(parts))
        usable = hasattr(module, "dumps") and hasattr(module, "loads")
        if more or (given is not None and not usable):
            raise ArgumentValueError(
                f"`py_callback_pickler` is {given!r}; it must be a module or an object with the "
                "functions `dumps` and `loads`, or a tuple of it and keyword arguments for each."
            )
        self._dumps = dumps if given is None else module.dumps
        self._loads = pickle.loads if given is None else module.loads
        self._for_dumps = dict(for_dumps or {})
        self._for_loads = dict(for_loads or {})

    def dumps(self, value: Any) -> bytes:
        """`value` as bytes."""
        packed: bytes = self._dumps(value, **self._for_dumps)
        return packed

    @property
    def loads(self) -> tuple[Callable[..., Any], dict[str, Any]]:
        """The function that turns the bytes back, and its keyword arguments."""
        return self._loads, self._for_loads


def dumps(value: Any) -> bytes:
    """`value` as bytes, functions by value where they have to be.

    Raises
    ------
    ArgumentTypeError
        If it cannot be pickled, even by cloudpickle where that is installed.
    """
    buffer = io.BytesIO()
    try:
        _ByValue(buffer, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    except Exception as error:
        try:
            import cloudpickle  # type: ignore[import-untyped]
        except ImportError:
            raise ArgumentTypeError(_advice(value, error)) from error
        try:
            return cloudpickle.dumps(value)  # type: ignore[no-any-return]
        except Exception as again:
            raise ArgumentTypeError(_advice(value, again)) from again
    return buffer.getvalue()


def _advice(value: Any, error: Exception) -> str:
    return (
        f"The `source` {value!r} of a parallel external source cannot be pickled, which it has to "
        f"be for workers that are started anew: {error}. Move what it refers to to the top of a "
        'module, install penstock[workers] (cloudpickle), use py_start_method="fork", or '
        'parallel="threads".'
    )


class _ByValue(pickle.Pickler):
    """Pickles functions by value where a new process could not import them, and modules by name."""

    def reducer_override(self, value: Any) -> Any:
        """How to pickle `value`, or `NotImplemented` for Python's own way."""
        if isinstance(value, types.ModuleType):
            return importlib.import_module, (value.__name__,)
        if isinstance(value, types.FunctionType) and not _can_be_imported(value):
            return _reduced(value)
        if isinstance(value, types.CellType):
            try:
                return types.CellType, (), value.cell_contents, None, None, _fill_cell
            except ValueError:  # it is empty
                return types.CellType, ()
        return NotImplemented


def _can_be_imported(function: types.FunctionType) -> bool:
    if getattr(function, "_penstock_pickle_by_value", False):
        return False
    module = sys.modules.get(function.__module__ or "")
    if module is None or not _is_importable(module):
        return False
    found: Any = module
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


def _is_importable(module: types.ModuleType) -> bool:
    """Whether a new process finds `module`; that of a notebook or of ``python -c`` it does not."""
    return module.__name__ != "__main__" or hasattr(module, "__file__")


def _reduced(function: types.FunctionType) -> tuple[Any, ...]:
    code = function.__code__
    known = function.__globals__
    needed = {name: known[name] for name in _names(code) if name in known}
    state = {
        "globals": needed,
        "attributes": {k: v for k, v in function.__dict__.items() if k != "__wrapped__"},
        "defaults": function.__defaults__,
        "kwdefaults": function.__kwdefaults__,
        "qualname": function.__qualname__,
        "doc": function.__doc__,
    }
    made_of = (marshal.dumps(code), function.__name__, function.__module__, function.__closure__)
    # What it refers to may refer to it: the state comes when the function is there already.
    return _make, made_of, state, None, None, _complete


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _make(
    code: bytes, name: str, module: str | None, closure: tuple[types.CellType, ...] | None
) -> types.FunctionType:
    known = {"__builtins__": __builtins__, "__name__": module}
    return types.FunctionType(marshal.loads(code), known, name, None, closure)


def _complete(function: types.FunctionType, state: dict[str, Any]) -> None:
    function.__globals__.update(state["globals"])
    function.__dict__.update(state["attributes"])
    function.__defaults__ = state["defaults"]
    function.__kwdefaults__ = state["kwdefaults"]
    function.__qualname__ = state["qualname"]
    function.__doc__ = state["doc"]


def _fill_cell(cell: types.CellType, value: Any) -> None:
    cell.cell_contents = value
