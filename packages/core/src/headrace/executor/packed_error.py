"""Errors on their way from a worker process to the parent."""

from __future__ import annotations

import functools
import io
import pickle
import traceback
from collections.abc import Iterator
from types import FunctionType
from typing import Any, NamedTuple

from headrace._code_pickler import code_pickler
from headrace.errors import ErrorLocation, OperatorError, operator_error
from headrace.tracebacks import WorkerTraceback, is_expected, user_part

_ANYWHERE = ("builtins", "headrace.errors")
"""Modules whose classes the parent has for certain."""


class _Link(NamedTuple):
    """One error of a chain of causes."""

    packed: bytes
    """The pickled error, or its closest base that can be pickled."""
    plain: bytes
    """Replacement for a parent that cannot unpickle it."""
    is_expected: bool
    """True if the library raised it on purpose, so that its traceback tells a user nothing."""
    has_cause: bool
    """True if the next link is its cause; otherwise that is its context."""
    hides_context: bool


class PackedError(NamedTuple):
    """An error, with all that it came of."""

    links: list[_Link]
    text: str
    """The traceback, if it tells anything."""

    @classmethod
    def of(cls, error: BaseException) -> PackedError:
        """Prepare `error` for the journey."""
        links: list[_Link] = []
        text = ""
        current: BaseException | None = error
        seen: set[int] = set()
        while current is not None and id(current) not in seen:
            seen.add(id(current))
            expected = is_expected(current)
            if current.__traceback__ is not None and not expected and not text:
                text = _traceback(current)
            cause, hides_context = current.__cause__, current.__suppress_context__
            links.append(_Link(*_packed(current), expected, cause is not None, hides_context))
            current = cause or (None if hides_context else current.__context__)
        return cls(links, text)

    def unpacked(self) -> BaseException:
        """The error, to be raised in the parent."""
        links = self.links
        if self.text:  # below the last one
            links = [*links[:-1], links[-1]._replace(has_cause=True)]
        below: BaseException | None = WorkerTraceback(self.text) if self.text else None
        for link in reversed(links):
            try:
                error: BaseException = pickle.loads(link.packed)
            except Exception:  # of a module that only the worker can import
                error = pickle.loads(link.plain)
            if link.is_expected:
                _raise_here([error])
            if link.has_cause:
                error.__cause__ = below
            else:
                error.__context__ = below
                error.__suppress_context__ = link.hides_context
            below = error
        assert below is not None
        return below


def _raise_here(errors: list[BaseException]) -> None:
    """Give an error a traceback that lies all within the library, as it had one in the worker."""
    try:
        raise errors.pop()
    except BaseException:
        return


def _traceback(error: BaseException) -> str:
    try:
        return "".join(traceback.format_exception(type(error), error, user_part(error)))
    except Exception:  # an error that cannot be printed is an error still
        return type(error).__name__


def _packed(error: BaseException) -> tuple[bytes, bytes]:
    """`error` pickled, or what is most like it; and what stands for it where that is unknown."""
    packed = _pickled(error, error)
    for stand_in in _stand_ins(error):
        is_plain = stand_in.kind.__module__ in _ANYWHERE and not stand_in.is_whole
        if packed is None or is_plain:
            data = _pickled(stand_in, error)
            packed = packed or data
            if is_plain and data is not None:
                assert packed is not None
                return packed, data
    raise AssertionError("a `BaseException` can always be pickled")


def _pickled(value: Any, error: BaseException) -> bytes | None:
    """`value`, pickled, if that makes an error with the text and the notes of `error`."""
    try:
        data = _dumps(value)
        found = pickle.loads(data)
        if value is error and type(found) is not type(error):
            return None
        alike = _text(error) in _text(found) and set(_notes(error)) <= set(_notes(found))
    except Exception:  # of its own making
        return None
    return data if alike else None


class _StandIn(NamedTuple):
    """An error to be made without its constructor, which may take other things than `args`."""

    kind: type[BaseException]
    args: tuple[Any, ...]
    state: dict[str, Any]
    notes: list[str]
    where: ErrorLocation | None
    is_whole: bool = False
    """True if it has all attributes of the error."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, tuple(self)[:-1]


def _made(
    kind: type[BaseException],
    args: tuple[Any, ...],
    state: dict[str, Any],
    notes: list[str],
    where: ErrorLocation | None,
) -> BaseException:
    if where is None:
        error = kind.__new__(kind, *args)
        error.__dict__.update(state)
    else:
        error = operator_error(kind, *args)
        error.where = where
    for note in notes:
        error.add_note(note)
    return error


def _stand_ins(error: BaseException) -> Iterator[_StandIn]:
    """Errors that can be taken for `error`, the best first; one of them can be made anywhere."""
    where = error.where if isinstance(error, OperatorError) else None
    kind = vars(type(error)).get("_located_kind", type(error))
    text, notes = _text(error), _notes(error)
    if where is None:
        state = {name: value for name, value in vars(error).items() if name != "__notes__"}
        yield _StandIn(kind, error.args, state, notes, None, is_whole=True)
        lost = "The worker process could not pass on its attributes."
        yield _StandIn(kind, (text,), {}, [*notes, lost], None)
    for base in kind.__mro__:
        if not issubclass(base, BaseException) or base.__name__.startswith("_"):
            continue
        said, why = text, []
        if base is not kind:
            why = [f"{_name(kind)} could not be passed on; `{base.__name__}` stands for it."]
            if where is None:
                said = f"{kind.__name__}: {text}".removesuffix(": ")
        yield _StandIn(base, (said,), {}, notes + why, where)


def _name(kind: type) -> str:
    return f"The class `{kind.__module__}.{kind.__qualname__}` of the worker process"


def _notes(error: BaseException) -> list[str]:
    return list(getattr(error, "__notes__", ()))


def _text(error: BaseException) -> str:
    try:
        return str(error.args[0] if isinstance(error, KeyError) and error.args else error)
    except Exception:  # what cannot say what it is
        return ""


def _dumps(value: Any) -> bytes:
    """`value`, pickled; classes that cannot be imported by value.

    A class that has come from the parent by value is there, when it returns, the one it was.
    """
    stream = io.BytesIO()
    _pickler()(stream).dump(value)
    return stream.getvalue()


@functools.cache
def _pickler() -> type[pickle.Pickler]:
    calls_the_class: Any = BaseException.__reduce__

    class ErrorPickler(code_pickler()):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            """Return how to pickle `value`, or `NotImplemented` for the default."""
            kind = type(value)
            if (
                isinstance(value, BaseException)
                # which calls the class with `args`, and that may take other things
                and kind.__reduce__ is calls_the_class
                and isinstance(kind.__init__, FunctionType)
            ):
                return next(_stand_ins(value)).__reduce__()
            return super().reducer_override(value)

    return ErrorPickler
