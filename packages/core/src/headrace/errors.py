"""Every exception Headrace raises, each also the builtin a user would expect.

Operator errors carry where they happened: the operator, the argument, the sample and the file
it came from, and the user's own line that created the operator.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

__path__: list[str] = []
"""Makes `from headrace.errors import` of a misspelt name tell one that is alike."""


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A question to end a message with, led by a space; empty where nothing known is alike."""
    import difflib

    # Of names that differ in case only, the one that is written like `name`.
    alike = {
        k.lower(): k for k in sorted(known, key=lambda k: k[:1].isupper() == name[:1].isupper())
    }
    best = difflib.get_close_matches(name.lower(), alike, n=1, cutoff=0.6)
    return f' Did you mean "{alike[best[0]]}"?' if best else ""


def did_you_mean_file(path: str) -> str:
    """As `did_you_mean`, of the first part of a path that is not there."""
    if not path or os.path.exists(path):
        return ""
    folder, name = os.path.split(os.path.abspath(path))
    while folder != os.path.dirname(folder) and not os.path.isdir(folder):
        folder, name = os.path.split(folder)
    try:
        with os.scandir(folder) as entries:  # the first of folders with very many files
            return did_you_mean(name, [e.name for e in itertools.islice(entries, 2000)])
    except OSError:
        return ""


class HeadraceError(Exception):
    """Base of every error the library raises on purpose."""


class SuspectDataWarning(UserWarning):
    """Data and arguments that go together, but hardly as they are meant."""


class UsageError(HeadraceError, RuntimeError):
    """The library was called in a way it does not support (wrong order, wrong state)."""


class ArgumentValueError(HeadraceError, ValueError):
    """An argument has a value that is not allowed."""


class ArgumentTypeError(HeadraceError, TypeError):
    """An argument has a type that is not allowed."""


class UnknownNameError(HeadraceError, KeyError):
    """A name (operator, argument, input) does not exist."""

    def __str__(self) -> str:
        # KeyError prints the repr of its argument, which makes sentences unreadable.
        return str(self.args[0]) if self.args else ""


class NoReaderError(UnknownNameError, RuntimeError):
    """There is no reader of that name."""


class CheckpointNotFoundError(HeadraceError, FileNotFoundError):
    """There is no checkpoint where one was to be loaded from."""


class ConversionError(ArgumentTypeError, ArgumentValueError):
    """A value cannot be made into what an argument takes."""


class SampleArgumentError(ConversionError, UsageError):
    """Several numbers were given for an argument that takes one for each sample."""


class ArgumentChoiceError(ArgumentValueError, UsageError):
    """An argument has a value that is none of the few it may have."""


class MisusedArgumentError(ArgumentValueError, UsageError):
    """An argument cannot be used here: together with others, or a second time."""


class MissingArgumentError(UsageError, ArgumentTypeError):
    """An argument is missing that an operator does not work without."""


class CheckpointError(ArgumentValueError, UsageError):
    """A checkpoint cannot be used: damaged, of another version, or of another pipeline."""


class NoCheckpointsError(ArgumentValueError, AttributeError):
    """An iterator over pipelines without checkpoints has no method that saves or loads them."""


class SerializationError(ArgumentValueError, UsageError):
    """A pipeline cannot be serialized, or what it was serialized to cannot be read."""


class UnknownArgumentError(UnknownNameError, ArgumentValueError):
    """There is no argument, or key of an argument, of that name."""


class UnknownOperatorError(HeadraceError, AttributeError):
    """There is no operator of that name."""


class NoOutputsError(UsageError, NotImplementedError):
    """A pipeline has nothing to return."""


class ConditionalExitError(ArgumentTypeError, UsageError):
    """`break`, `continue` or `return` leaves a branch whose condition is data."""


class DivergentBranchesError(ConversionError, UsageError):
    """Branches whose condition is data make different things, which cannot be merged."""


class OutOfRangeError(HeadraceError, IndexError):
    """An index lies outside of what it indexes."""


class NotFedError(OutOfRangeError, UsageError):
    """A source that is fed, or the video of an input of videos, has no data left."""


class SampleIndexError(OutOfRangeError, RuntimeError):
    """A batch has no sample of that number."""


class NumberOverflowError(ArgumentValueError, OverflowError):
    """A number does not fit into the type it is to have."""


class NotYetSupportedError(HeadraceError, NotImplementedError):
    """A feature that is declared but cannot be honoured by this version."""


class MissingModuleError(HeadraceError, ModuleNotFoundError):
    """A module of DALI's that is not there, and what to use or to install instead."""


class ModuleNotReleasedError(MissingModuleError, NotYetSupportedError):
    """A module that DALI has and this version has not yet."""


class OperatorNotReleasedError(NotYetSupportedError, AttributeError):
    """An operator that DALI has and this version has not yet."""


class PrivateNameError(HeadraceError, AttributeError):
    """Something that is private in DALI has no counterpart."""


class MissingDependencyError(HeadraceError, ImportError):
    """An optional library is needed; the message names the extra to install."""


class LibraryNotInstalledError(MissingDependencyError, ModuleNotFoundError):
    """An optional library is not installed."""


class PluginNotInstalledError(MissingModuleError, MissingDependencyError):
    """A plugin that is a distribution of its own; the message names it."""


class NoTorchError(MissingDependencyError, RuntimeError):
    """PyTorch is not installed."""


class GpuNotAvailableError(MissingDependencyError, UsageError):
    """There is no GPU that can be used; the message says what is missing."""


class BadSampleError(HeadraceError, RuntimeError):
    """The data of one sample cannot be read or decoded."""


class BadSamplesError(HeadraceError, RuntimeError):
    """Samples of a batch that an operator which works on whole batches could not make.

    Attributes
    ----------
    failures
        Errors by position in the batch, with their places and causes.
    """

    def __init__(self, failures: dict[int, BaseException]) -> None:
        self.failures = failures
        first = failures[min(failures)]
        others = len(failures) - 1
        more = f" ({others} more samples of the batch failed, too.)" if others else ""
        super().__init__(f"{first}{more}")


class NoGoodSampleError(HeadraceError, RuntimeError):
    """Every sample that was tried turned out bad, so there is nothing to make a batch of."""


class SourceWorkerError(HeadraceError, RuntimeError):
    """A worker of a parallel source died, hung, or raised what cannot be passed on."""


class WorkerProcessError(HeadraceError, RuntimeError):
    """A worker process of a pipeline has ended in the middle of its work."""


class LayoutError(ArgumentValueError, RuntimeError):
    """Data has a layout that an operator does not take, or a layout does not fit the data."""


class DataTypeError(ArgumentTypeError, RuntimeError):
    """Data has an element type that an operator does not take."""


class ShapeError(ArgumentValueError, RuntimeError):
    """Data has a shape that an operator does not take."""


class InputTypeError(DataTypeError, ArgumentValueError):
    """An input of an operator has an element type that it does not take."""


class DestinationTypeError(DataTypeError, AssertionError):
    """Memory that data is to be copied to has another element type."""


class DestinationShapeError(ShapeError, AssertionError):
    """Memory that data is to be copied to has another shape."""


class IteratorArgumentError(ArgumentValueError, AssertionError):
    """Arguments of an iterator do not go together, or not with its pipelines."""


class UnknownLengthError(HeadraceError, TypeError):
    """The number of batches of an epoch is unknown."""


class TooManyIndicesError(ShapeError, OutOfRangeError):
    """There are more indices than axes."""


class ExportError(HeadraceError, BufferError):
    """Data cannot be handed to another library in the way it asks for."""


class EndOfData(HeadraceError, StopIteration):  # noqa: N818 - it is a StopIteration by contract
    """A source has no more data in this epoch."""


def created_at(user_stack: tuple[str, ...]) -> str:
    """``created at`` the innermost of the user's calls, and a line for each that led there."""
    return "\n    called from ".join((f"created at {user_stack[0]}", *user_stack[1:]))


@dataclass(frozen=True, slots=True)
class ErrorLocation:
    """The place an operator error belongs to; unknown parts are ``None``."""

    operator: str
    name: str | None = None
    user_stack: tuple[str, ...] = ()
    """The user's calls that created it, innermost first, each as ``file:line in function``."""
    sample: int | None = None
    source: str | None = None
    raised: str | None = None
    """The line of the user's function that the error came from, as ``file:line in function``."""

    @property
    def user_line(self) -> str | None:
        """The user's line that created the operator."""
        return self.user_stack[0] if self.user_stack else None

    def describe(self) -> str:
        """One paragraph that says where, for the end of an error message."""
        parts = [f"in operator `{self.operator}`"]
        if self.name:
            parts.append(f'named "{self.name}"')
        if self.raised:
            parts.append(f"raised at {self.raised}")
        if self.sample is not None:
            parts.append(f"at sample {self.sample} of the batch")
        if self.source:
            parts.append(f'read from "{self.source}"')
        text = ", ".join(parts)
        return f"{text}, {created_at(self.user_stack)}" if self.user_stack else text


class OperatorError(HeadraceError, RuntimeError):
    """An operator failed; `where` says which, on what sample, created by which user line."""

    where: ErrorLocation = ErrorLocation("unknown")

    def __str__(self) -> str:
        # The classes it is mixed with print other things: KeyError the repr, NumPy's MemoryError
        # attributes that only its own constructor sets.
        return str(self.args[0]) if self.args else ""

    def __reduce__(self) -> tuple[Any, ...]:
        kind = vars(type(self)).get("_located_kind")
        if kind is None:
            found: tuple[Any, ...] = super().__reduce__()  # type: ignore[assignment]
            return found
        # Its class is made when it is first needed, and has no name to be imported by.
        return operator_error, (kind, str(self)), vars(self)


_located_classes: dict[type[BaseException], type[OperatorError]] = {}


def located(error: BaseException, where: ErrorLocation) -> OperatorError:
    """Wrap `error` so that it says where it happened and is still an instance of its own class.

    The returned error, whose cause is `error`, is to be raised. One that says where it happened is
    returned as it is.
    """
    if isinstance(error, OperatorError):
        return error
    kind = type(error)
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        # Taken for its own class, it would end the epoch, the thread or the program unnoticed.
        kind = RuntimeError
    cls = _located_class(kind)
    text = error.args[0] if isinstance(error, KeyError) and error.args else error
    try:
        message = str(text)
    except Exception:  # what cannot say what it is must not hide where it happened
        message = ""
    if not message or not issubclass(cls, type(error)):
        message = f"{type(error).__name__}: {message}".removesuffix(": ")
    if isinstance(error, HeadraceError) and where.operator.startswith("ndd."):
        message = message.replace("`fn.", "`ndd.")  # as the program calls it
    wrapped = cls(f"{message}\n  {where.describe()}")
    wrapped.where = where
    wrapped.__cause__ = error
    return wrapped


def operator_error(kind: type[BaseException], message: str) -> OperatorError:
    """An error with this message that is an `OperatorError` and of class `kind`, if that allows."""
    return _located_class(kind)(message)


def _located_class(kind: type[BaseException]) -> type[OperatorError]:
    """The class of errors that are of class `kind` and say where they happened."""
    cls = _located_classes.get(kind)
    if cls is None:
        content = {"__module__": kind.__module__, "_located_kind": kind}
        try:
            cls = type(kind.__name__, (OperatorError, kind), content)
            cls("probe")
        except Exception:  # exceptions with layouts or constructors of their own
            base = next((b for b in _BUILTIN_BASES if issubclass(kind, b)), RuntimeError)
            cls = OperatorError if base is RuntimeError else _located_class(base)
        _located_classes[kind] = cls
    return cls


_BUILTIN_BASES = (KeyError, IndexError, ValueError, TypeError, NotImplementedError, MemoryError)


def __dir__() -> list[str]:
    found = {name: value for name, value in globals().items() if not name.startswith("_")}
    return [n for n, v in found.items() if isinstance(v, type) and issubclass(v, HeadraceError)]
