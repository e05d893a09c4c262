"""Calls of operators whose work is still to be done."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any, Protocol

from headrace.errors import OperatorError, located
from headrace.experimental.dynamic.failures import described, raised_at
from headrace.experimental.dynamic.modes import EvalMode
from headrace.experimental.dynamic.values import ValueReference
from headrace.graph.user_line import leaves_program

if TYPE_CHECKING:
    from headrace.experimental.dynamic.operations import BoundOperator

_MOST_CALLERS = 6
"""So many callers of the function that called an operator are kept."""

NEW, QUEUED, RUNNING, DONE, FAILED = range(5)


class Finisher(Protocol):
    """Methods of an `Evaluator` that an invocation uses."""

    device_id: int | None

    def finish(self, invocation: Invocation) -> None:
        """Return when a call is done, one way or the other."""


class Invocation:
    """One call of an operator.

    Attributes
    ----------
    bound
        What is done.
    inputs
        Where the inputs come from.
    tensors
        Where arguments come from that are given as tensors, by name, in the order of names.
    size
        Number of samples; `None` for a single tensor.
    seed
        What random numbers depend on.
    evaluator
        Who does the work.
    references
        Where the outputs go.
    state
        `NEW`, `QUEUED`, `RUNNING`, `DONE` or `FAILED`.
    error
        What went wrong, if something did.
    """

    __slots__ = (
        "__weakref__",
        "bound",
        "callers",
        "code",
        "error",
        "evaluator",
        "inputs",
        "instruction",
        "latch",
        "mode",
        "references",
        "seed",
        "size",
        "state",
        "tensors",
    )

    def __init__(
        self,
        bound: BoundOperator,
        inputs: tuple[ValueReference, ...],
        tensors: tuple[tuple[str, ValueReference], ...],
        size: int | None,
        seed: int,
        evaluator: Finisher,
        frame: FrameType,
    ) -> None:
        self.bound = bound
        self.inputs = inputs
        self.tensors = tensors
        self.size = size
        self.seed = seed
        self.evaluator = evaluator
        self.state = NEW
        self.error: BaseException | None = None
        self.latch: threading.Lock | None = None
        self.code: CodeType = frame.f_code
        self.instruction = frame.f_lasti
        self.callers = callers_of(frame)
        self.mode: Any = None
        for reference in inputs:
            reference.uses.append(None)
        for _, reference in tensors:
            reference.uses.append(None)
        device: int | str = "cpu"
        if bound.operation.device != "cpu" and bound.operation.schema.copies_to != "cpu":
            device = evaluator.device_id or 0
        self.references = tuple(
            [ValueReference(spec, size, None, self, device) for spec in bound.specs]
        )

    def ensure(self) -> None:
        """Return when the work is done."""
        if self.state < DONE:
            self.evaluator.finish(self)
        if self.error is not None:
            raise self._surfaced(self.error) from self.error

    def _surfaced(self, error: BaseException) -> BaseException:
        """Make the exception raised where a result is read: of the class of `error`, which caused
        it.
        """
        if self.mode is EvalMode.deferred:
            when = "An error happened during deferred evaluation"
        else:
            when = "An error happened during asynchronous execution"
        what = f"{when} of `{self.bound.operation.shown}`"
        return raised_at(error, what, described(self.code, self.instruction))

    def located_here(self, error: BaseException) -> BaseException:
        """`error` of the operator, told of the user's line that called it.

        Programs are shared by all calls of one kind, so that what comes out of them cannot know.
        """
        if not isinstance(error, OperatorError):
            return error
        shown, stack = self.bound.operation.shown, self.user_stack
        where = replace(error.where, operator=shown, user_stack=stack)
        reason, place, _ = str(error).rpartition(f"\n  {error.where.describe()}")
        cause = None if error.__cause__ is error else error.__cause__
        found: OperatorError
        if place:
            found = type(error)(f"{reason}\n  {where.describe()}")
            found.where = where
        else:
            found = located(error if cause is None else cause, where)
        found.__cause__ = cause
        return found.with_traceback(error.__traceback__)

    def sources(self) -> list[ValueReference]:
        """Every reference that is read: inputs, then arguments."""
        return [*self.inputs, *(reference for _, reference in self.tensors)]

    @property
    def user_stack(self) -> tuple[str, ...]:
        """The user's calls that led here, innermost first, each as ``file:line in function``."""
        found = [described(self.code, self.instruction)]
        inner = self.code.co_filename
        for code, instruction in self.callers:
            if leaves_program(code.co_filename, inner):
                break
            found.append(described(code, instruction))
            inner = code.co_filename
        return tuple(found)


def callers_of(frame: FrameType) -> Sequence[tuple[CodeType, int]]:
    """Call sites of the function of `frame`, innermost first: code and instruction.

    Line numbers are computed on demand.
    """
    found: list[tuple[CodeType, int]] = []
    code = frame.f_code
    while code.co_name != "<module>" and len(found) < _MOST_CALLERS:
        outside = frame.f_back
        if outside is None:
            break
        frame = outside
        code = frame.f_code
        found.append((code, frame.f_lasti))
    return found
