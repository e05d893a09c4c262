"""Calls of operators whose work is still to be done."""

from __future__ import annotations

import threading
from types import CodeType, FrameType
from typing import TYPE_CHECKING, Any

from penstock.experimental.dynamic.slots import Slot

if TYPE_CHECKING:
    from penstock.experimental.dynamic.evaluators import Evaluator
    from penstock.experimental.dynamic.operations import Form

NEW, QUEUED, RUNNING, DONE, FAILED = range(5)


class Invocation:
    """One call of an operator.

    Attributes
    ----------
    form
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
    slots
        Where the outputs go.
    state
        `NEW`, `QUEUED`, `RUNNING`, `DONE` or `FAILED`.
    error
        What went wrong, if something did.
    """

    __slots__ = (
        "__weakref__",
        "code",
        "error",
        "evaluator",
        "form",
        "inputs",
        "instruction",
        "latch",
        "mode",
        "seed",
        "size",
        "slots",
        "state",
        "tensors",
    )

    def __init__(
        self,
        form: Form,
        inputs: tuple[Slot, ...],
        tensors: tuple[tuple[str, Slot], ...],
        size: int | None,
        seed: int,
        evaluator: Evaluator,
        frame: FrameType,
    ) -> None:
        self.form = form
        self.inputs = inputs
        self.tensors = tensors
        self.size = size
        self.seed = seed
        self.evaluator = evaluator
        self.state = NEW
        self.error: BaseException | None = None
        self.latch: threading.Lock | None = None
        # Which line it is, is found out if somebody asks.
        self.code: CodeType = frame.f_code
        self.instruction = frame.f_lasti
        self.mode: Any = None
        for slot in inputs:
            slot.uses.append(None)
        for _, slot in tensors:
            slot.uses.append(None)
        device: int | str = "cpu"
        if form.operation.device != "cpu" and form.operation.schema.name != "_copy_to_cpu":
            device = evaluator.device_id or 0
        self.slots = tuple([Slot(spec, size, None, self, device) for spec in form.specs])

    def ensure(self) -> None:
        """Return when the work is done.

        Raises
        ------
        Exception
            What went wrong.
        """
        if self.state < DONE:
            self.evaluator.finish(self)
        if self.error is not None:
            from penstock.experimental.dynamic.failures import surfaced

            raise surfaced(self) from self.error

    def sources(self) -> list[Slot]:
        """Every slot that is read: inputs, then arguments."""
        return [*self.inputs, *(slot for _, slot in self.tensors)]

    @property
    def line(self) -> int:
        """Number of the line that made the call."""
        from penstock.experimental.dynamic.failures import line_of

        return line_of(self.code, self.instruction)

    @property
    def user_line(self) -> str:
        """``file:line in function`` that made the call."""
        return f"{self.code.co_filename}:{self.line} in {self.code.co_name}"
