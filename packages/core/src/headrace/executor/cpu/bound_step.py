"""A step that takes samples one by one, with all that is the same for samples of a chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import HeadraceError
from headrace.executor.step import check_count
from headrace.operators.support.lazy_value import computed

if TYPE_CHECKING:
    from headrace.executor.cpu.batch import BatchBuffer
    from headrace.executor.step import Step
    from headrace.operators.support.contexts import SampleContext


class BoundStep:
    """A step with the samples that it reads and the batches that its results go to."""

    __slots__ = (
        "_args",
        "_buffer",
        "_computes",
        "_function",
        "_input",
        "_inputs",
        "_is_single",
        "_materialise",
        "_origin",
        "_producers",
        "_values",
        "context",
        "step",
    )

    def __init__(
        self,
        step: Step,
        context: SampleContext,
        producers: Iterable[SampleContext],
        inputs: Sequence[Sequence[Any]],
        values: Iterable[Sequence[Any]],
        origin: BatchBuffer | None,
        *,
        materialise_views: bool,
    ) -> None:
        self.step, self.context = step, context
        self._function: Callable[..., Any] = step.function
        self._producers = producers
        self._inputs = inputs
        self._input = inputs[0] if len(inputs) == 1 else None
        self._values = [
            (name, samples, convert)
            for (name, _, convert), samples in zip(step.sample_args, values, strict=True)
        ]
        self._args = context.args
        self._origin = origin
        self._is_single = len(step.outputs) == 1
        self._buffer: BatchBuffer | None = context.buffers[0] if self._is_single else None
        self._computes = step.materialises
        self._materialise = materialise_views

    def results(self, k: int, position: int, place: int) -> Sequence[Any]:
        """Run the step on one sample; return its results, one for each output."""
        context = self.context
        context.position, context.place = position, place
        for producer in self._producers:
            producer.position = position
        for name, values, convert in self._values:
            setattr(self._args, name, converted(name, convert, values[k]))
        if self._input is not None:
            result = self._function(context, self._input[k])
        else:
            result = self._function(context, *[samples[k] for samples in self._inputs])
        if self._computes:
            result = computed(result, context)
        if not self._is_single or type(result) is tuple:
            return stored(self.step, context, result, materialise_views=self._materialise)
        buffer = self._buffer
        if buffer is not None:
            index, origin = context.indices[position], self._origin
            if buffer.rows[index] is not result and (
                origin is None or not buffer.share(index, result, origin)
            ):
                buffer.put(index, result)
        elif self._materialise and isinstance(result, np.ndarray) and result.ndim:
            result = np.ascontiguousarray(result)
        return (result,)


def stored(
    step: Step, context: SampleContext, result: Any, *, materialise_views: bool
) -> Sequence[Any]:
    """Store the results of a step for one sample in its output batches; return them output by
    output.
    """
    results = result if isinstance(result, tuple) else (result,)
    check_count(step, results)
    found = []
    for value, buffer in zip(results, context.buffers, strict=True):
        if buffer is not None:
            buffer.put(context.index, value)
        elif materialise_views and isinstance(value, np.ndarray) and value.ndim:
            value = np.ascontiguousarray(value)
        found.append(value)
    return found


def converted(name: str, convert: Callable[[np.ndarray], Any], value: Any) -> Any:
    """A sample of argument `name` as an operator takes it."""
    try:
        return convert(value)
    except (TypeError, ValueError) as error:
        kind = type(error) if isinstance(error, HeadraceError) else ValueError
        raise kind(f"Argument `{name}`: {error}") from error


def lazy_producers(
    step: Step, made: dict[int, tuple[Step, SampleContext]]
) -> tuple[SampleContext, ...]:
    """Return the contexts of the steps that made the lazy values which a step reads."""
    found = []
    while step.inputs and step.inputs[0] in made:
        step, context = made[step.inputs[0]]
        if not step.is_lazy:
            break
        found.append(context)
    return tuple(found)
