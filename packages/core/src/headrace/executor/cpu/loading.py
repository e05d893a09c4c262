"""Loads the samples of a chunk that a reader has drawn."""

from __future__ import annotations

from collections.abc import Container
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.executor.cpu.bound_step import stored
from headrace.executor.loader import Loaded
from headrace.executor.source_names import SourceNames
from headrace.operators.support.planning import Samples

if TYPE_CHECKING:
    from headrace.executor.cpu.arena import Arena
    from headrace.executor.cpu.chunk import Chunk
    from headrace.executor.iteration import Iteration
    from headrace.executor.loader import Loader
    from headrace.executor.step import Step
    from headrace.operators.support.contexts import SampleContext


def load(
    step: Step,
    context: SampleContext,
    chunk: Chunk,
    iteration: Iteration,
    arena: Arena,
    *,
    outputs: Container[int],
    materialise_views: bool,
) -> None:
    """Load the entries that a reader drew for a chunk; samples that cannot be read leave the
    chunk.
    """
    loader: Loader = step.op
    indices, buffers = chunk.indices, context.buffers
    entries = iteration.entries[id(step.node)][indices]
    leaving = next((b for b in buffers[: loader.pieces] if b is not None), None)
    empty = arena.empty if leaving is None else leaving.empty
    try:
        loaded = loader.load(entries, empty)
    except Exception:  # whatever it is, `fetch` meets it again and knows the sample
        nothing: list[Any] = [[] for _ in buffers]
        loaded = Loaded(list(range(len(indices))), nothing, SourceNames(0))
    missing = loaded.missing
    if missing:
        indices = [index for k, index in enumerate(indices) if k not in missing]
    for k, (r, buffer, column) in enumerate(
        zip(step.outputs, buffers, loaded.columns, strict=True)
    ):
        dense = isinstance(column, np.ndarray)
        chunk.columns[r] = Samples(values=column) if dense else Samples(column)
        if buffer is not None and indices:
            # A user may write to an output.
            if k < loader.pieces and not dense and not (loader.index.lends and r in outputs):
                buffer.adopt_rows(indices, column)
            else:
                buffer.put_rows(indices, column)
    chunk.sources[step.origin] = loaded.sources
    if loader.index.own_sources:
        there = np.delete(entries, missing) if missing else entries
        for k, r in enumerate(step.outputs[1 : loader.pieces], 1):
            chunk.sources[r] = loader.sources(there, k)
    if missing:
        _fetch(step, context, chunk, missing, entries, materialise_views=materialise_views)


def _fetch(
    step: Step,
    context: SampleContext,
    chunk: Chunk,
    missing: list[int],
    entries: np.ndarray,
    *,
    materialise_views: bool,
) -> None:
    """Load those samples of a chunk one by one that could not be loaded together."""
    columns, sources = [], list(chunk.sources[step.origin])
    chunk.sources[step.origin] = sources
    for r in step.outputs:
        known = chunk.columns[r]
        assert known is not None
        columns.append(list(known.rows) if len(missing) < len(entries) else [])
    for k in missing:  # in ascending order, so that each gets to its place
        for column in columns:
            column.insert(k, None)
        sources.insert(k, "")
    context.indices, context.sources = chunk.indices, sources
    failed = set()
    for k in missing:
        context.position, entry = k, int(entries[k])
        try:
            sources[k] = step.op.index.source(entry)
            found = step.function(context, entry)
            values = stored(step, context, found, materialise_views=materialise_views)
        except BaseException as error:  # of any kind: a thread waits for the batch
            chunk.fail(error, step, context, k)
            failed.add(k)
        else:
            for column, value in zip(columns, values, strict=True):
                column[k] = value
    for r, column in zip(step.outputs, columns, strict=True):
        chunk.columns[r] = Samples(column)
    if failed:
        chunk.keep([k for k in range(len(chunk.indices)) if k not in failed])
