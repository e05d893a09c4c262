"""Documentation of the parameters that iterators and decorators share."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, TypeVar

_T = TypeVar("_T", bound=Callable[..., Any])
_REFERENCES = re.compile(r"^([\w, ]+)\n    See `(\w+)`\.\n", re.MULTILINE)


def with_parameters_of(source: Callable[..., Any]) -> Callable[[_T], _T]:
    """Put what `source` says of its parameters where a docstring just refers to it.

    Tools that show a docstring, as `help` does, show no other beside it. Nor do programs that look
    at arguments follow wrappers: a function that is one has the signature of what it wraps.
    """

    def decorate(documented: _T) -> _T:
        def entries(found: re.Match[str]) -> str:
            if found[2] != source.__name__:
                return found[0]
            return "".join(_entry(source, name) for name in found[1].split(", "))

        if documented.__doc__:  # there are none with ``python -OO``
            documented.__doc__ = _REFERENCES.sub(entries, _cleaned(documented))
        if hasattr(documented, "__wrapped__"):
            documented.__signature__ = inspect.signature(documented)  # type: ignore[attr-defined]
        return documented

    return decorate


def _entry(source: Callable[..., Any], name: str) -> str:
    found = re.search(rf"^{name}\n(?:    .*\n)+", _cleaned(source), re.MULTILINE)
    return found[0] if found else f"{name}\n    See `{source.__name__}`.\n"


def _cleaned(documented: Callable[..., Any]) -> str:
    """A docstring without the indentation that it has in the source; since Python 3.13 the compiler
    removes it.
    """
    return inspect.cleandoc(documented.__doc__ or "") + "\n"
