"""Finalizers that call a ufunc, or look at `np.errstate`, fail: on Python 3.11 they could crash.

There a garbage collection may run them while `np.errstate` is being left. NumPy would then keep a
pointer to the state that is thrown away, and every later ufunc would read freed memory.
"""

from __future__ import annotations

import builtins
import contextvars
import functools
import weakref
from collections.abc import Callable
from typing import Any

from numpy._core import umath

_BROKEN = contextvars.Context()
"""A context in which NumPy finds no error state, and says so."""
_BROKEN.run(umath._extobj_contextvar.set, None)

_WATCHED = ("headrace", "tests")


def watched(function: Callable[..., Any]) -> Callable[..., Any]:
    """`function`, run where ufuncs raise `ValueError`.

    To enter and leave a context invalidates what NumPy has remembered of it: this guard itself
    does no harm.
    """

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        return _BROKEN.copy().run(function, *args, **kwargs)

    return run


class _WatchedFinalize(weakref.finalize):
    """`weakref.finalize` whose functions are watched."""

    def __init__(self, obj: Any, func: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
        module = getattr(func, "__module__", None) or type(getattr(func, "__self__", "")).__module__
        is_ours = module.partition(".")[0] in _WATCHED
        super().__init__(obj, watched(func) if is_ours else func, *args, **kwargs)


def watch_finalizers() -> None:
    """Watch every `__del__` of classes made from now on, and every `weakref.finalize`.

    What a finalizer raises Python passes on as unraisable, and pytest makes that an error.
    """
    build = builtins.__build_class__

    def build_watched(function: Any, name: str, *bases: Any, **kwargs: Any) -> Any:
        made = build(function, name, *bases, **kwargs)
        own = made.__dict__.get("__del__") if isinstance(made, type) else None
        if own is not None and made.__module__.partition(".")[0] in _WATCHED:
            made.__del__ = watched(own)
        return made

    builtins.__build_class__ = build_watched
    weakref.finalize = _WatchedFinalize  # type: ignore[misc]
