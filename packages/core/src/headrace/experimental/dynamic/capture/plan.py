"""The calls that two steps of a loop have in common, and their seeds in later steps."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.kernels.cpu.philox_state import SEED_WORDS, DrawSeed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType

    from headrace.experimental.dynamic.operations import ConfiguredOperator
    from headrace.experimental.dynamic.rng import RNG
    from headrace.experimental.dynamic.values import ValueReference

Origin = tuple[int, int]
"""Output of a call of a step, as (call, output); the call is -1 for what the step began with."""


@dataclass(slots=True, eq=False)
class RecordedCall:
    """One call in a step of a loop.

    Attributes
    ----------
    operation
        The operator and its constant arguments; there is one object for equal ones.
    inputs, tensors
        Where inputs and tensor arguments come from: an output of the same step, or data that was
        there before.
    outputs
        How many there are.
    code, instruction
        The place in the program.
    callers
        The places in the program that led there, innermost first.
    rng, place
        The generator that a random operator drew from, and how many words it had given before.
    """

    operation: ConfiguredOperator
    inputs: tuple[Origin | ValueReference, ...]
    tensors: tuple[tuple[str, Origin | ValueReference], ...]
    outputs: int
    code: CodeType
    instruction: int
    rng: RNG | None = None
    place: int = 0
    references: tuple[ValueReference, ...] = ()
    """The outputs, kept while the step is traced: what refers to them must not be mistaken."""
    callers: Sequence[tuple[CodeType, int]] = ()


@dataclass(slots=True, eq=False)
class Draws:
    """The words that one generator gives in each step.

    Attributes
    ----------
    shadow
        A copy of it that is ahead.
    period
        Number of words for each step.
    """

    rng: RNG
    shadow: RNG
    period: int


@dataclass(slots=True)
class LoopPlan:
    """The calls to be done ahead."""

    calls: list[RecordedCall]
    draws: list[Draws]
    offsets: list[tuple[int, int]]
    """For each call, the number of its `Draws`, or -1, and where its words begin in a step's."""
    wanted: set[Origin] = field(default_factory=set)
    """Outputs to be kept: what no other call reads, and what the program has looked at."""

    def seeds(self) -> list[Any]:
        """The seeds of all calls in the next step that has not been asked for."""
        words = [draws.shadow.take(draws.period) for draws in self.draws]
        return [
            0 if number < 0 else DrawSeed(words[number][first : first + SEED_WORDS])
            for number, first in self.offsets
        ]


def make_plan(first: list[RecordedCall], second: list[RecordedCall]) -> LoopPlan | None:
    """The calls that two steps have in common, in order; `None` if there are none."""
    banned: set[int] = set()
    while True:
        calls, places = _in_common(first, second, banned)
        draws, offsets, bad = _draws(calls, places)
        if not bad:
            break
        banned |= bad  # what does not draw in a regular way is not done ahead
    if not calls:
        return None
    read = {
        origin
        for call in calls
        for origin in (*call.inputs, *(r for _, r in call.tensors))
        if isinstance(origin, tuple)
    }
    leaves = {
        (number, k)
        for number, call in enumerate(calls)
        for k in range(call.outputs)
        if (number, k) not in read
    }
    return LoopPlan(calls, draws, offsets, leaves)


def _in_common(
    first: list[RecordedCall], second: list[RecordedCall], banned: set[int]
) -> tuple[list[RecordedCall], list[int]]:
    """The calls in common, and where the words of each began in its generator at first."""
    calls: list[RecordedCall] = []
    places: list[int] = []
    new_first: dict[int, int] = {-1: -1}
    new_second: dict[int, int] = {-1: -1}
    begin = 0
    for number, call in enumerate(second):
        if call.rng is not None and id(call.rng) in banned:
            continue
        translated = _translated(call, new_second)
        if translated is None:
            continue
        for other_number in range(begin, len(first)):
            other = first[other_number]
            if (
                other.operation is call.operation
                and other.rng is call.rng
                and other.outputs == call.outputs
                and _translated(other, new_first) == translated
            ):
                new_first[other_number] = new_second[number] = len(calls)
                inputs, tensors = translated
                calls.append(
                    RecordedCall(
                        call.operation,
                        inputs,
                        tensors,
                        call.outputs,
                        call.code,
                        call.instruction,
                        call.rng,
                        call.place,
                        callers=call.callers,
                    )
                )
                places.append(other.place)
                begin = other_number + 1
                break
    return calls, places


def _translated(call: RecordedCall, numbers: dict[int, int]) -> Any:
    """Inputs and tensor arguments by the new numbers of calls; `None` if one has none."""

    def new(origin: Origin | ValueReference) -> Any:
        if isinstance(origin, tuple):
            number = numbers.get(origin[0])
            return None if number is None else (number, origin[1])
        return origin

    inputs = tuple([new(r) for r in call.inputs])
    tensors = tuple([(name, new(r)) for name, r in call.tensors])
    if None in inputs or any(r is None for _, r in tensors):
        return None
    return inputs, tensors


def _draws(
    calls: list[RecordedCall], places: list[int]
) -> tuple[list[Draws], list[tuple[int, int]], set[int]]:
    """Draws from each generator in a step, and the generators that the two steps use
    differently.
    """
    draws: list[Draws] = []
    number_of: dict[int, int] = {}
    offsets: list[tuple[int, int]] = []
    bad: set[int] = set()
    for call, before in zip(calls, places, strict=True):
        rng = call.rng
        if rng is None:
            offsets.append((-1, 0))
            continue
        period = call.place - before
        if id(rng) not in number_of:
            number_of[id(rng)] = len(draws)
            draws.append(Draws(rng, rng.clone(), period))
        number = number_of[id(rng)]
        offset = call.place + period - rng.count
        offsets.append((number, offset))
        if draws[number].period != period or not 0 <= offset <= period - SEED_WORDS:
            bad.add(id(rng))
    return draws, offsets, bad
