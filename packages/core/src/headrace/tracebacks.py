"""Tracebacks with the user's frames only, without those of the library between them.

Public functions and methods are marked with `public`. Where an error leaves one of them, the frames
of the library are taken out of its traceback, and causes that say nothing new are left out.
``HEADRACE_FULL_TRACEBACK=1`` keeps all. Errors that the library does not raise on purpose are never
touched: they are mistakes in the library, and a report of one needs every frame.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterable
from types import FrameType, FunctionType, TracebackType
from typing import Any, TypeVar, cast

from headrace.config import FULL_TRACEBACK
from headrace.errors import HeadraceError, OperatorError, did_you_mean

_F = TypeVar("_F", bound=Callable[..., Any])
_C = TypeVar("_C", bound=type)

_SPECIAL = (
    *("__init__", "__call__", "__exit__", "__iter__", "__next__", "__getitem__", "__len__"),
    *("__contains__", "__bool__", "__int__", "__float__", "__index__", "__array__", "__dlpack__"),
    *("__repr__", "_repr_html_"),
)
"""Special methods that users call, beside those of arithmetic, which `public` is applied to."""
_EXPECTED = (HeadraceError, MemoryError, OSError)
"""Errors that the library's operators may raise."""


class WorkerTraceback(Exception):  # noqa: N818 - it is shown as the cause of an error
    """Traceback of an error in a worker, as text: the frames themselves stay there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        return f"\n\n{self.text.rstrip()}\n"


@functools.cache
def own_folders() -> tuple[str, ...]:
    """Return the folders of the library: its core and its plugins, which may lie elsewhere."""
    folders = sys.modules["headrace"].__path__
    return tuple({os.path.join(f(path), "") for path in folders for f in (str, os.path.realpath)})


def stack_level() -> int:
    """The `stacklevel` with which a warning, given by the caller, points at the user's line."""
    frame, level = sys._getframe(1), 1
    while frame is not None and _is_own(frame):
        frame, level = frame.f_back, level + 1  # type: ignore[assignment]
    return level


_given: dict[Any, Any] = {}
"""Warnings that `warn_at` has given."""


def warn_at(line: str, text: str, category: type[Warning] = UserWarning) -> None:
    """Warn as if the user's `line`, ``file:line in function``, did; at the caller's if that is not
    known.
    """
    file, _, number = line.partition(" in ")[0].rpartition(":")
    if file and number.isdecimal():
        warnings.warn_explicit(text, category, file, int(number), registry=_given)
    else:
        warnings.warn(text, category, stacklevel=stack_level())


def _is_own(frame: FrameType) -> bool:
    """Return True if a call is the library's own, or one that `dataclasses` wrote for it."""
    name = frame.f_code.co_filename
    if name == "<string>":
        return str(frame.f_globals.get("__name__")).startswith("headrace.")
    return name.startswith(own_folders())


def public(function: _F) -> _F:
    """Mark a function that users call: errors that leave it show no frames of the library."""

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except StopIteration as error:
            if not _shows_all():
                error.__traceback__ = _without_engine(error.__traceback__)
            raise
        except Exception as error:
            if kwargs and type(error) is TypeError:
                _add_suggestion(error, function, kwargs)
            hide_engine(error)
            raise  # without a value, which would put this frame into the traceback

    # What `function` itself wraps is what users look for in it: their own function.
    call.__wrapped__ = getattr(function, "__wrapped__", function)
    return cast("_F", call)


def _add_suggestion(error: TypeError, function: Callable[..., Any], given: Iterable[str]) -> None:
    """Note which argument may have been meant, where Python has refused one of that name."""
    trace = error.__traceback__
    if trace is None or trace.tb_next is not None or "Did you mean" in str(error):
        return  # raised in the function, or Python has said so
    known = inspect.signature(function).parameters
    for name in given:
        question = "" if name in known else did_you_mean(name, known)
        if question:
            error.add_note(question.strip())


def public_methods(cls: _C) -> _C:
    """Mark all public methods and properties that a class itself defines."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name not in _SPECIAL:
            continue
        if isinstance(member, FunctionType):
            made = public(member)
            if name == "__init__":  # whose arguments programs look at without following wrappers
                made.__signature__ = inspect.signature(member)  # type: ignore[attr-defined]
            setattr(cls, name, made)
        elif isinstance(member, property) and member.fget is not None:
            setattr(cls, name, member.getter(public(member.fget)))
    return cls


def hide_engine(error: BaseException) -> None:
    """Take the library's frames out of the traceback of `error` and of what caused it.

    To be called where a public function handles `error`, which it then raises again by a bare
    ``raise``: Python adds no frame there.
    """
    if _shows_all():
        return
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        if not _is_deliberate(current):
            return
        current.__traceback__ = _without_engine(current.__traceback__)
        below = current.__cause__
        if below is None and not current.__suppress_context__:
            below = current.__context__
        shown = below
        while shown is not None and _says_nothing_new(shown, current):
            shown = shown.__cause__
        if shown is not below:
            # What is left out stays within reach of programs, as the context that is not shown.
            current.__context__ = below
            current.__cause__ = shown
        current = shown


def raised_at(error: BaseException) -> str:
    """The line that `error` came from in a function of the user's which the library has called.

    It is the innermost line in the file of that function, as ``file:line in function``: what it
    calls of other libraries says less. Empty where the function was not even entered.
    """
    trace = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    found = trace
    while trace is not None:
        assert found is not None
        if trace.tb_frame.f_code.co_filename == found.tb_frame.f_code.co_filename:
            found = trace
        trace = trace.tb_next
    if found is None:
        return ""
    code = found.tb_frame.f_code
    return f"{code.co_filename}:{found.tb_lineno} in {code.co_name}"


def user_part(error: BaseException) -> TracebackType | None:
    """The traceback without the frames of the library that called the user's function."""
    trace = error.__traceback__
    while trace is not None and _is_ours(trace):
        trace = trace.tb_next
    return trace or error.__traceback__


def is_expected(error: BaseException) -> bool:
    """Return True if the library raised `error` on purpose: its frames tell a user nothing."""
    return isinstance(error, _EXPECTED) and _is_all_ours(error.__traceback__)


def _shows_all() -> bool:
    try:
        return FULL_TRACEBACK.value() == "1"
    except HeadraceError:  # in the middle of another error, a wrong value must not hide that
        return True


def _is_deliberate(error: BaseException) -> bool:
    """Return True if the library raised `error` on purpose, or passed it on from the user's own
    code.
    """
    if isinstance(error, HeadraceError):
        return True
    if isinstance(error.__cause__, WorkerTraceback):
        return True
    last = error.__traceback__
    if last is None or last.tb_next is None:
        return True  # arguments that Python itself has refused
    while last.tb_next is not None:
        last = last.tb_next
    return not _is_ours(last)


def _says_nothing_new(cause: BaseException, error: BaseException) -> bool:
    """Return True if `error` says everything that its cause says."""
    if not isinstance(error, HeadraceError) or not _is_all_ours(cause.__traceback__):
        return False
    if isinstance(error, OperatorError) and not isinstance(cause, _EXPECTED):
        return False  # a mistake in the operator, which its frames tell about
    text = str(cause.args[0]) if isinstance(cause, KeyError) and cause.args else str(cause)
    shown = str(error)
    return bool(text) and (text in shown or text.replace("`fn.", "`ndd.") in shown)


def _is_all_ours(trace: TracebackType | None) -> bool:
    if trace is None:
        return False
    while trace is not None:
        if not _is_ours(trace):
            return False
        trace = trace.tb_next
    return True


def _without_engine(trace: TracebackType | None) -> TracebackType | None:
    kept = []
    while trace is not None:
        if not _is_ours(trace):
            kept.append(trace)
        trace = trace.tb_next
    found: TracebackType | None = None
    for entry in reversed(kept):
        found = TracebackType(found, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    return found


def _is_ours(entry: TracebackType) -> bool:
    return entry.tb_frame.f_code.co_filename.startswith(own_folders())
