"""Steps of a loop whose work is done ahead."""

from __future__ import annotations

import weakref
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.experimental.dynamic.calling import handle_of
from headrace.experimental.dynamic.invocations import DONE, Invocation
from headrace.experimental.dynamic.modes import EvalMode
from headrace.experimental.dynamic.values import ValueReference

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headrace.experimental.dynamic.capture.plan import LoopPlan, Origin
    from headrace.experimental.dynamic.evaluators import Evaluator


class _Site(NamedTuple):
    """The line of the program that a call was made on, as calls keep it."""

    f_code: CodeType
    f_lasti: int
    f_back: None = None


class _Holder:
    """Stands in for the program's handle, so that a value is kept until the program asks for it."""

    __slots__ = ("__weakref__",)


class LoopStep:
    """The calls of one step, done ahead."""

    def __init__(
        self, plan: LoopPlan, root: tuple[ValueReference, ...], size: int, evaluator: Evaluator
    ) -> None:
        self._plan = plan
        self.root = root
        self._size = size
        self._evaluator = evaluator
        self.seeds = plan.seeds()
        self._holder = _Holder()
        self.kept = frozenset(plan.wanted)
        self._outputs: dict[Origin, ValueReference] = {
            (-1, k): reference for k, reference in enumerate(root)
        }
        self.invocations: list[Invocation] = []
        for number in range(len(plan.calls)):
            self.invocations.append(self._invocation(number, self._outputs))
        for origin in self.kept:
            self._outputs[origin].handle = weakref.ref(self._holder)
        evaluator.submit_all(self.invocations)
        self.position = 0
        """Number of the next call that is expected."""
        self._origins: dict[int, Origin] = {
            id(reference): (-1, k) for k, reference in enumerate(root)
        }
        self._handed: list[ValueReference] = []
        """Values that were handed out, kept so that no other object gets their `id`."""

    def _invocation(self, number: int, outputs: dict[Origin, ValueReference]) -> Invocation:
        call = self._plan.calls[number]
        inputs = tuple([outputs[r] if isinstance(r, tuple) else r for r in call.inputs])
        tensors = tuple(
            [(name, outputs[r] if isinstance(r, tuple) else r) for name, r in call.tensors]
        )
        bound = call.operation.bind(
            tuple([reference.spec for reference in inputs]),
            tuple([(name, reference.spec) for name, reference in tensors]),
        )
        invocation = Invocation(
            bound,
            inputs,
            tensors,
            self._size,
            self.seeds[number],
            self._evaluator,
            _Site(call.code, call.instruction),  # type: ignore[arg-type]
        )
        invocation.callers = call.callers
        invocation.mode = EvalMode.eager
        for k, reference in enumerate(invocation.references):
            outputs[number, k] = reference
        return invocation

    def finds(
        self,
        number: int,
        references: Iterable[ValueReference],
        tensors: Iterable[tuple[str, ValueReference]],
    ) -> bool:
        """True if a call has the inputs and arguments of call `number` of the plan."""
        call = self._plan.calls[number]
        known = self._origins
        wanted = call.inputs
        position = 0
        for reference in references:
            if position == len(wanted):
                return False
            expected = wanted[position]
            if reference is not expected and known.get(id(reference)) != expected:
                return False
            position += 1
        if position != len(wanted):
            return False
        given = tuple(tensors)
        return len(given) == len(call.tensors) and all(
            name == expected_name
            and (reference is expected or known.get(id(reference)) == expected)
            for (name, reference), (expected_name, expected) in zip(
                given, call.tensors, strict=True
            )
        )

    def results(self, number: int) -> Any:
        """Results of call `number` for the program."""
        found = []
        for k, reference in enumerate(self.invocations[number].references):
            handed = reference
            if (number, k) not in self.kept:
                handed = ValueReference(reference.spec, self._size, None, None, reference.device)
                handed.owner = _OnDemand(self, number, k, handed)
            self._origins[id(handed)] = (number, k)
            self._handed.append(handed)
            found.append(handle_of(handed))
        return found[0] if len(found) == 1 else tuple(found)

    def knows(self, reference: ValueReference) -> bool:
        """True if the step began with a value, or handed it out."""
        return id(reference) in self._origins

    def leave(self) -> None:
        """Release what was handed out: the program has begun another step."""
        self._handed.clear()
        self._origins.clear()

    def finish(self, number: int) -> None:
        """Return when call `number` is done."""
        invocation = self.invocations[number]
        if invocation.state < DONE:
            self._evaluator.finish(invocation)
        if invocation.error is not None:
            raise invocation.error

    def value(self, number: int, k: int) -> Any:
        """Compute an output that was not kept, as the recorded steps did not read it."""
        self._plan.wanted.add((number, k))
        invocation = self.invocations[number]
        invocation.ensure()
        value = invocation.references[k].value
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
            origins = (*call.inputs, *(r for _, r in call.tensors))
            waiting += [r[0] for r in origins if isinstance(r, tuple)]
        outputs: dict[Origin, ValueReference] = {
            (-1, i): reference for i, reference in enumerate(self.root)
        }
        invocations = [self._invocation(found, outputs) for found in sorted(needed)]
        reference = outputs[number, k]
        holder = _Holder()
        reference.handle = weakref.ref(holder)
        self._evaluator.run_all(invocations)
        return reference.get()


class _OnDemand:
    """Computes the value of an output that was not kept, once it is asked for."""

    __slots__ = ("_k", "_number", "_reference", "_step")

    def __init__(self, step: LoopStep, number: int, k: int, reference: ValueReference) -> None:
        self._step = step
        self._number = number
        self._k = k
        self._reference = weakref.ref(reference)

    def ensure(self) -> None:
        """Return when the value is there."""
        reference = self._reference()
        if reference is None or reference.value is not None:
            return
        reference.value = self._step.value(self._number, self._k)
        reference.owner = None
