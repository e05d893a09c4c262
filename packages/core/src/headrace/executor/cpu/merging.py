"""Joining of branches: first the data known ahead of samples, then the samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.executor.guards import chosen
from headrace.operators.generic.merge import joined
from headrace.operators.support.planning import Samples
from headrace.tensors.rows import Rows

if TYPE_CHECKING:
    from headrace.executor.cpu.chunk import Chunk, Group
    from headrace.executor.cpu.program import Program
    from headrace.executor.guards import Guard
    from headrace.executor.iteration import Iteration
    from headrace.executor.step import Step
    from headrace.operators.support.contexts import SampleContext


def join_ahead(
    step: Step, chunk: Chunk, selected: dict[Guard, Sequence[int] | None]
) -> tuple[np.ndarray, ...] | None:
    """Join the known data of branches ahead of their samples."""
    parts: list[tuple[Samples | None, Sequence[int]]] = []
    for r, guard in step.branches:
        places = chosen(guard, chunk.columns, selected)
        if places is None:
            return None
        parts.append((chunk.columns[r], places))
    planned = joined(parts, len(chunk.indices))
    if planned is None:
        return None
    if planned.values is None:
        chunk.columns[step.outputs[0]] = Samples(shapes=planned.shapes[0])
        return None
    for k, (_, own) in enumerate(parts):
        chunk.merge_sources(step, k, own)
    places = selected[step.guard]
    return planned.values if not step.guard else tuple([v[places] for v in planned.values])


def merged(
    step: Step,
    context: SampleContext,
    group: Group,
    chunk: Chunk,
    program: Program,
    iteration: Iteration,
) -> tuple[Sequence[Any], list[int]]:
    """Merge the branches that samples of a group took; return the results and the failed
    samples.
    """
    positions, buffer = group.positions, context.buffers[0]
    output: list[Any] = [None] * len(positions)
    failed: list[int] = []
    place = {position: k for k, position in enumerate(positions)}
    for branch, (r, guard) in enumerate(step.branches):
        own = group.branch(guard).positions
        if not own:
            continue
        chunk.merge_sources(step, branch, own)
        if buffer is not None and r in program.rows:  # they are in its rows already
            rows = buffer.rows
            for position in own:
                output[place[position]] = rows[chunk.indices[position]]
            continue
        values = group.samples(r, own)
        if buffer is None and len(own) == len(positions):
            return [values], failed
        origin = None if buffer is None else _branch_of_all(r, guard, program, iteration)
        if buffer is not None and origin is not None and isinstance(values, Rows):
            indices = [chunk.indices[position] for position in own]
            if len(own) == len(positions) and buffer.share_all(indices, values, origin):
                return [values], failed
        for position, value in zip(own, values, strict=True):
            if buffer is None:
                output[place[position]] = value
                continue
            index = chunk.indices[position]
            try:
                if origin is not None and buffer.share(index, value, origin):
                    output[place[position]] = value
                    continue
                buffer.put(index, value)
                output[place[position]] = buffer.rows[index]
            except BaseException as error:  # of any kind: a thread waits for the batch
                chunk.fail(error, step, context, position)
                failed.append(place[position])
    return [output], failed


def _branch_of_all(register: int, guard: Guard, program: Program, iteration: Iteration) -> Any:
    """The batch of a branch if all samples of the batch take it; `None` if that is unknown.

    Then the merged batch may be the same memory; else it is to lie in one piece. What is known are
    the batches that were there before the stage.
    """
    if register not in program.reads:
        return None
    for r, wanted in guard:
        truth = iteration.buffers[r].dense if r in program.reads else None
        if truth is None or not ((truth != 0) == wanted).all():
            return None
    return iteration.buffers[register]
