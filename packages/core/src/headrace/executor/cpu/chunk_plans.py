"""Plans of the samples of a chunk, made together before the samples go through the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import located
from headrace.executor.guards import spread
from headrace.executor.source_names import some_of
from headrace.operators.support.planning import SAMPLE_ERRORS, NotPlannedError, Samples

if TYPE_CHECKING:
    from headrace.executor.cpu.chunk import Chunk
    from headrace.executor.planning import SamplePlans
    from headrace.executor.step import Step
    from headrace.operators.support.contexts import SampleContext


def plans_of(
    step: Step,
    context: SampleContext,
    chunk: Chunk,
    places: Sequence[int] | None,
    *,
    is_strict: bool,
) -> SamplePlans | None:
    """The plans of a chunk, or of its samples at `places`, for a step; `None` where they have
    to be made later.
    """
    columns = chunk.columns
    inputs: list[Any] = [columns[r] for r in step.inputs]
    tensors: dict[str, Any] = {n: (columns[r], convert) for n, r, convert in step.planned_args}
    if None in inputs or not all(s is not None and s.are_there for s, _ in tensors.values()):
        return None
    indices, sources = chunk.indices, context.sources
    if places is not None:
        inputs = [each.taken(places) for each in inputs]
        tensors = {n: (each.taken(places), convert) for n, (each, convert) in tensors.items()}
        indices = [indices[k] for k in places]
        sources = None if sources is None else some_of(sources, places)
    try:
        return make_plans(step, context, inputs, tensors, indices, sources)
    except SAMPLE_ERRORS as error:
        # One of them is bad: each is planned alone, and that one says so. Or none has a plan.
        if is_strict and not isinstance(error, NotPlannedError):
            raise
        return None
    except Exception as error:
        raise located(error, step.node.where()) from error


def make_plans(
    step: Step,
    context: SampleContext,
    inputs: Sequence[Samples],
    tensors: dict[str, Any],
    indices: Sequence[int],
    sources: Sequence[str] | None,
) -> SamplePlans:
    """The plans of some samples for a step."""
    planner = step.planner
    assert planner is not None
    return planner.plan(
        inputs,
        tensors,
        indices,
        seed=context.seed,
        iteration=context.iteration,
        sources=sources,
    )


def keep_values(
    step: Step,
    context: SampleContext,
    values: tuple[np.ndarray, ...],
    chunk: Chunk,
    places: Sequence[int] | None,
) -> None:
    """Make planned values, all or those at `places`, the outputs of a step."""
    indices = chunk.indices if places is None else [chunk.indices[k] for k in places]
    for r, buffer, each in zip(step.outputs, context.buffers, values, strict=True):
        if buffer is not None:
            buffer.put_rows(indices, each)
        if places is not None:
            each = spread(each, places, len(chunk.indices))
        chunk.columns[r] = Samples(values=each)
