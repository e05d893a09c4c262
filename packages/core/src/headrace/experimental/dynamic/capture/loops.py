"""Loops that note what they do and do it ahead."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any, Protocol

from headrace.errors import MisusedArgumentError, UsageError
from headrace.experimental.dynamic import calling
from headrace.experimental.dynamic.capture.plan import LoopPlan, Origin, RecordedCall, make_plan
from headrace.experimental.dynamic.capture.steps import LoopStep
from headrace.experimental.dynamic.contexts import EvalContext, chosen
from headrace.experimental.dynamic.failures import line_of, user_frame
from headrace.experimental.dynamic.invocations import callers_of
from headrace.experimental.dynamic.modes import THREAD, EvalMode
from headrace.graph.user_line import stack_level
from headrace.kernels.cpu.philox_state import DrawSeed

if TYPE_CHECKING:
    from headrace.experimental.dynamic.operations import ConfiguredOperator
    from headrace.experimental.dynamic.values import ValueReference

_AHEAD = 2
"""Steps that are under way beside the one the program is in."""


class LoopSource(Protocol):
    """Iterable of a captured loop: it gives the data that each step begins with."""

    def __next__(self) -> Any:
        """The outputs for the next step."""

    def peek(self, ahead: int) -> tuple[ValueReference, ...] | None:
        """The outputs of a step to come; `None` if it is not known, or will not come."""

    def unbind(self) -> None:
        """Allow other uses than captured loops again: nothing could be captured."""

    def leave(self) -> None:
        """Note that the program has left its loop, which had begun, before the end, or will do so,
        as there was an error.
        """


class Loop:
    """The iterator that the program gets.

    While a loop is open, another one over the same data is the same loop: it goes on with it.
    """

    __slots__ = ("__weakref__", "_is_open", "_recorder", "_root")

    def __init__(self, root: LoopSource, recorder: Recorder) -> None:
        self._root = root
        self._recorder = recorder
        self._is_open = True
        recorder.handles += 1

    def __iter__(self) -> Loop:
        return self

    def __next__(self) -> Any:
        if not self._is_open:
            raise StopIteration
        return self._recorder.next_step(self._root)

    def close(self) -> None:
        """End the loop."""
        if self._is_open:
            self._is_open = False
            self._recorder.release()

    def __del__(self) -> None:
        if hasattr(self, "_is_open"):
            self.close()


class LoopOwner(Protocol):
    """A reader or a source, over which there is one captured loop at a time."""

    _loop: weakref.ref[Recorder] | None


def open_loop(owner: LoopOwner, root: LoopSource, size: int, ctx: EvalContext | None) -> Loop:
    """The loop over the data of `owner` that is open, or another one."""
    recorder = None if owner._loop is None else owner._loop()
    if recorder is None or recorder.has_ended or recorder.size != size:
        recorder = Recorder(owner, root, size, ctx)
        owner._loop = weakref.ref(recorder)
    return Loop(root, recorder)


class Recorder:
    """Records the calls of a loop, and answers those that were done ahead."""

    def __init__(
        self, owner: LoopOwner, root: LoopSource, size: int, ctx: EvalContext | None
    ) -> None:
        self._owner = owner
        self._root = root
        self.size = size
        self._context = ctx
        self.is_active = False
        self.has_ended = False
        self.handles = 0
        """Number of the program's iterators over the loop."""
        self._has_begun = False
        self._has_given_up = False
        self._traced: list[list[RecordedCall]] = []
        self._calls: list[RecordedCall] | None = None
        """The calls of this step, while it is traced."""
        self._origins: dict[int, Origin] = {}
        self._plan: LoopPlan | None = None
        self._steps: deque[LoopStep] = deque()
        self._step: LoopStep | None = None

    # -- steps -----------------------------------------------------------------------------------

    @property
    def captures(self) -> bool:
        """True in a step of a loop that is captured, or may be."""
        return self.is_active and not self._has_given_up

    def next_step(self, root: LoopSource) -> Any:
        """End a step and begin the next one, with what `root` gives."""
        if self.has_ended:
            raise StopIteration
        self._root = root
        other = THREAD.capture
        if other is not None and other is not self and other.is_active:
            if other._owner is self._owner:
                raise MisusedArgumentError(
                    f"Cannot change `batch_size` from {other.size} to {self.size}: a captured loop "
                    "over the same data is open. Leave that one first."
                )
            raise UsageError(
                "Only one loop can be captured at a time: this one is inside of another. Leave "
                "`capture=True` away in one of them."
            )
        chosen(self._context)
        self._has_begun = True
        THREAD.capture = None  # nothing that happens here belongs to the loop
        try:
            self._end_step()
            outputs = next(root)
        except StopIteration:
            self.stop()
            raise
        except BaseException:
            self.is_active = False  # the next step may be better
            root.leave()
            raise
        self._begin_step(outputs)
        self.is_active = True
        THREAD.capture = self
        return outputs

    def release(self) -> None:
        """Note that one of the program's iterators is gone; end the loop with the last one."""
        self.handles -= 1
        if self.handles == 0 and not self.has_ended:
            self.stop()
            if self._has_begun:
                self._root.leave()

    def stop(self) -> None:
        """End the loop, if it has not ended."""
        self.has_ended = True
        self.is_active = False
        self._steps.clear()
        if self._step is not None:
            self._step.leave()
        self._step = self._calls = self._plan = None
        self._traced.clear()
        self._origins.clear()
        if THREAD.capture is self:
            THREAD.capture = None

    def _end_step(self) -> None:
        if self._step is not None:
            self._step.leave()
            self._step = None
        calls = self._calls
        if calls is None:
            return
        self._calls = None
        if self._traced and not calls:
            return  # a step without calls says nothing of those with some
        self._traced.append(calls)
        if not calls:
            self._give_up()
        elif len(self._traced) == 2:
            self._plan = make_plan(*self._traced)
            self._traced.clear()
            if self._plan is None:
                self._give_up()

    def _give_up(self) -> None:
        warnings.warn(
            "`capture`=True was given, but no operators were captured: the steps of the loop have "
            "no calls in common on the batch that a step begins with, with arguments that are the "
            "same in each. The loop goes on without.",
            UserWarning,
            stacklevel=stack_level(),
        )
        self._traced = [[], []]
        self._has_given_up = True
        self._root.unbind()

    def _begin_step(self, outputs: Any) -> None:
        handles = outputs if isinstance(outputs, tuple) else (outputs,)
        root = tuple([handle._reference for handle in handles])
        if self._plan is None:
            if len(self._traced) < 2:
                self._calls = []
                self._origins = {id(reference): (-1, k) for k, reference in enumerate(root)}
            return
        while self._steps and self._step is None:  # those before belong to steps that failed
            step = self._steps.popleft()
            if step.root == root:
                self._step = step
        self._prepare(root)

    def _prepare(self, root: tuple[ValueReference, ...]) -> None:
        """Submit steps: the one that begins now, unless that is done already, and the next ones."""
        plan = self._plan
        assert plan is not None
        context = chosen(self._context)
        evaluator = context._evaluator
        try:
            if self._step is None and not self._steps:
                self._step = LoopStep(plan, root, self.size, evaluator)
            while len(self._steps) < _AHEAD:
                references = self._root.peek(len(self._steps))
                if references is None:
                    break
                self._steps.append(LoopStep(plan, references, self.size, evaluator))
        except Exception:  # data of another type: the calls say themselves what is wrong
            self._steps.clear()
            self._plan = None
            self._traced.clear()
            self._calls = []
            self._origins = {id(reference): (-1, k) for k, reference in enumerate(root)}

    # -- calls -----------------------------------------------------------------------------------

    def invoke(
        self,
        operation: ConfiguredOperator,
        references: tuple[ValueReference, ...],
        tensors: tuple[tuple[str, ValueReference], ...],
        size: int | None,
        seed: Any,
    ) -> Any:
        """Do a call, or return the results if it was done ahead. It replaces `calling.invoke`."""
        if not self.is_active:
            THREAD.capture = None
            return calling.invoke(operation, references, tensors, size, seed)
        if self._step is not None and size == self.size:
            found = self._found(self._step, operation, references, tensors, seed)
            if found is not None:
                return found
        THREAD.capture = None
        try:
            results = calling.invoke(operation, references, tensors, size, seed)
        finally:
            THREAD.capture = self
        if self._calls is not None and size == self.size:
            self._note(self._calls, operation, references, tensors, seed, results)
        return results

    def _found(
        self,
        step: LoopStep,
        operation: ConfiguredOperator,
        references: tuple[ValueReference, ...],
        tensors: tuple[tuple[str, ValueReference], ...],
        seed: Any,
    ) -> Any:
        """The results of a call that was done ahead; `None` if it was not."""
        assert self._plan is not None
        calls = self._plan.calls
        for number in range(step.position, len(calls)):
            call = calls[number]
            if call.operation is not operation or not step.finds(number, references, tensors):
                continue
            expected = step.seeds[number]
            if call.rng is not None and (seed.rng is not call.rng or seed.state != expected.state):
                if seed.rng is not call.rng:
                    continue
                raise UsageError(
                    f"`{operation.shown}`, called at {_place(call)}, got other random numbers than "
                    "expected, because its generator was used unexpectedly: in a captured loop "
                    "every step takes as many words of it as the one before, and nothing else uses "
                    "or sets it meanwhile."
                )
            step.position = number + 1
            mode = THREAD.mode
            if mode is EvalMode.sync_cpu or mode is EvalMode.sync_full:
                step.finish(number)
            return step.results(number)
        return None

    def _note(
        self,
        calls: list[RecordedCall],
        operation: ConfiguredOperator,
        references: tuple[ValueReference, ...],
        tensors: tuple[tuple[str, ValueReference], ...],
        seed: Any,
        results: Any,
    ) -> None:
        """Record a call of this step, if later steps can do it ahead."""
        inputs = [self._origin(reference) for reference in references]
        arguments = [(name, self._origin(reference)) for name, reference in tensors]
        if None in inputs or any(origin is None for _, origin in arguments):
            return
        rng = seed.rng if type(seed) is DrawSeed else None
        own = any(isinstance(r, tuple) for r in (*inputs, *(r for _, r in arguments)))
        if rng is None and not own:
            return  # it is the same in every step, and not ours to keep
        outputs = () if results is None else results if isinstance(results, tuple) else (results,)
        made = tuple([output._reference for output in outputs])
        frame = user_frame(sys._getframe(1))
        for k, reference in enumerate(made):
            self._origins[id(reference)] = (len(calls), k)
        calls.append(
            RecordedCall(
                operation,
                tuple(inputs),  # type: ignore[arg-type]
                tuple(arguments),  # type: ignore[arg-type]
                len(made),
                frame.f_code,
                frame.f_lasti,
                rng,
                seed.place if rng is not None else 0,
                made,
                callers_of(frame),
            )
        )

    def _origin(self, reference: ValueReference) -> Origin | ValueReference | None:
        """Origin of a value: this step, or before the loop; `None` if that is ambiguous."""
        found = self._origins.get(id(reference))
        if found is not None:
            return found
        value = reference.value
        if value is None or value.external or reference.size not in (None, self.size):
            return None
        return reference

    def knows(self, reference: ValueReference) -> bool:
        """True if a value is of the step that the loop is in: what it begins with, or made of it by
        calls that are captured, or noted to be.
        """
        if self._step is not None:
            return self._step.knows(reference)
        return self._calls is not None and id(reference) in self._origins


class _OfThisStep(type):
    def __instancecheck__(cls, value: object) -> bool:
        reference = getattr(value, "_reference", None)
        loop = THREAD.capture
        return reference is not None and loop is not None and bool(loop.knows(reference))


class CapturedBatch(metaclass=_OfThisStep):
    """Class of batches of the step that a captured loop is in: ``isinstance`` tells, as in DALI."""


def _place(call: RecordedCall) -> str:
    return f"{call.code.co_filename}:{line_of(call.code, call.instruction)}"
