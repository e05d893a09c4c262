"""Steps of a loop whose work is done ahead."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.experimental.dynamic.calling import holder_of
from penstock.experimental.dynamic.invocations import DONE, Invocation
from penstock.experimental.dynamic.modes import EvalMode
from penstock.experimental.dynamic.values import ValueReference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.experimental.dynamic.capture.plan import Plan, Reference
    from penstock.experimental.dynamic.evaluators import Evaluator


class _Site(NamedTuple):
    """As much of a frame as a call keeps."""

    f_code: CodeType
    f_lasti: int
    f_back: None = None


class _Wish:
    """Stands for a user who may ask for a value."""

    __slots__ = ("__weakref__",)


class Step:
    """The calls of one step, done ahead.

    Parameters
    ----------
    plan
        What they are.
    root
        What the step begins with.
    size
        Number of samples.
    evaluator
        Who does the work.
    """

    def __init__(
        self, plan: Plan, root: tuple[ValueReference, ...], size: int, evaluator: Evaluator
    ) -> None:
        self._plan = plan
        self.root = root
        self._size = size
        self._evaluator = evaluator
        self.seeds = plan.seeds()
        self._wish = _Wish()
        self.kept = frozenset(plan.wanted)
        self._outputs: dict[Reference, ValueReference] = {
            (-1, k): slot for k, slot in enumerate(root)
        }
        self.invocations: list[Invocation] = []
        for number in range(len(plan.calls)):
            self.invocations.append(self._invocation(number, self._outputs))
        for reference in self.kept:
            self._outputs[reference].holder = weakref.ref(self._wish)
        evaluator.submit_all(self.invocations)
        self.position = 0
        """Number of the next call that is expected."""
        self._references: dict[int, Reference] = {id(slot): (-1, k) for k, slot in enumerate(root)}
        self._handed: list[ValueReference] = []
        """What was handed out, so that no other object is mistaken for it."""

    def _invocation(self, number: int, outputs: dict[Reference, ValueReference]) -> Invocation:
        call = self._plan.calls[number]
        inputs = tuple([outputs[r] if isinstance(r, tuple) else r for r in call.inputs])
        tensors = tuple(
            [(name, outputs[r] if isinstance(r, tuple) else r) for name, r in call.tensors]
        )
        form = call.operation.form(
            tuple([slot.spec for slot in inputs]),
            tuple([(name, slot.spec) for name, slot in tensors]),
        )
        invocation = Invocation(
            form,
            inputs,
            tensors,
            self._size,
            self.seeds[number],
            self._evaluator,
            _Site(call.code, call.instruction),  # type: ignore[arg-type]
        )
        invocation.callers = call.callers
        invocation.mode = EvalMode.eager
        for k, slot in enumerate(invocation.slots):
            outputs[number, k] = slot
        return invocation

    def finds(
        self,
        number: int,
        slots: Iterable[ValueReference],
        tensors: Iterable[tuple[str, ValueReference]],
    ) -> bool:
        """Whether a call reads what call `number` of the plan does."""
        call = self._plan.calls[number]
        known = self._references
        wanted = call.inputs
        position = 0
        for slot in slots:
            if position == len(wanted):
                return False
            expected = wanted[position]
            if slot is not expected and known.get(id(slot)) != expected:
                return False
            position += 1
        if position != len(wanted):
            return False
        given = tuple(tensors)
        return len(given) == len(call.tensors) and all(
            name == expected_name and (slot is expected or known.get(id(slot)) == expected)
            for (name, slot), (expected_name, expected) in zip(given, call.tensors, strict=True)
        )

    def results(self, number: int) -> Any:
        """What the program gets for call `number`."""
        found = []
        for k, slot in enumerate(self.invocations[number].slots):
            handed = slot
            if (number, k) not in self.kept:
                handed = ValueReference(slot.spec, self._size, None, None, slot.device)
                handed.owner = _Late(self, number, k, handed)
            self._references[id(handed)] = (number, k)
            self._handed.append(handed)
            found.append(holder_of(handed))
        return found[0] if len(found) == 1 else tuple(found)

    def leave(self) -> None:
        """Let go of what was handed out: the program is in another step."""
        self._handed.clear()
        self._references.clear()

    def finish(self, number: int) -> None:
        """Return when call `number` is done.

        Raises
        ------
        Exception
            What went wrong.
        """
        invocation = self.invocations[number]
        if invocation.state < DONE:
            self._evaluator.finish(invocation)
        if invocation.error is not None:
            raise invocation.error

    def value(self, number: int, k: int) -> Any:
        """An output that was not to be kept, but is asked for."""
        self._plan.wanted.add((number, k))
        invocation = self.invocations[number]
        invocation.ensure()
        value = invocation.slots[k].value
        return self._again(number, k) if value is None else value

    def _again(self, number: int, k: int) -> Any:
        """Do the calls once more that an output depends on."""
        needed: set[int] = set()
        waiting = [number]
        while waiting:
            found = waiting.pop()
            if found < 0 or found in needed:
                continue
            needed.add(found)
            call = self._plan.calls[found]
            references = (*call.inputs, *(r for _, r in call.tensors))
            waiting += [r[0] for r in references if isinstance(r, tuple)]
        outputs: dict[Reference, ValueReference] = {
            (-1, i): slot for i, slot in enumerate(self.root)
        }
        invocations = [self._invocation(found, outputs) for found in sorted(needed)]
        slot = outputs[number, k]
        wish = _Wish()
        slot.holder = weakref.ref(wish)
        self._evaluator.run_all(invocations)
        return slot.get()


class _Late:
    """Makes the value of an output that was not kept, if somebody asks for it."""

    __slots__ = ("_k", "_number", "_slot", "_step")

    def __init__(self, step: Step, number: int, k: int, slot: ValueReference) -> None:
        self._step = step
        self._number = number
        self._k = k
        self._slot = weakref.ref(slot)

    def ensure(self) -> None:
        """Return when the value is there."""
        slot = self._slot()
        if slot is None or slot.value is not None:
            return
        slot.value = self._step.value(self._number, self._k)
        slot.owner = None
