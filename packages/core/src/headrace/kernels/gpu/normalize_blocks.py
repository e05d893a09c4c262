"""Data as ``(outer, reduced, inner)``, and how blocks of threads divide it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.gpu.records import THREADS
from headrace.kernels.gpu.shared import constant, record

ROW_THREADS = constant(__name__, "ROW_THREADS", 192)
_MOST_COLUMNS = 4
_LONG_ROW = 1024
"""Elements from which on a row is worth a block of threads."""
MOST_RUNS = 16
"""Runs of neighbouring axes that are reduced, or are not, in turn."""

SHAPE = record("""normalize_blocks:Shape {
    int64 outer, reduced, inner;
    int32 columns, column_tiles, lanes, chunk, chunks;
}""")
ROWS = record("""normalize_blocks:Rows {
    int64 outer;  // number of rows
    int64 size;  // elements of one: a multiple of the columns
    int32 chunk;  // elements that a block takes: another
    int32 chunks;
}""")


@dataclass(eq=False)
class Blocks:
    """Samples as ``(outer, reduced, inner)`` around the last neighbours among the reduced axes."""

    outer: np.ndarray
    """int64 ``(samples,)``, as the others."""
    reduced: np.ndarray
    inner: np.ndarray
    runs: tuple[tuple[np.ndarray, bool], ...]
    """Extents that make up `outer`, and whether they are reduced; empty where none are."""
    axes: tuple[int, int]
    """First of the axes of `reduced`, and the one after the last."""

    @cached_property
    def groups(self) -> np.ndarray:
        """Number of groups of neighbouring reduced elements of each sample."""
        return self.outer * self.inner

    @cached_property
    def columns(self) -> int:
        """The inner extent, where rows have a few columns and are long; else 0."""
        if not len(self.inner):
            return 0
        first = int(self.inner[0])
        few = 1 <= first <= _MOST_COLUMNS and bool((self.inner == first).all())
        return first if few and int(self.reduced.max()) * first >= _LONG_ROW else 0


def along(shapes: np.ndarray, axes: Sequence[int]) -> Blocks:
    """`shapes` of samples as blocks around `axes`."""
    ones = (shapes == 1).all(axis=0).tolist()
    end = shapes.shape[1]
    while end > 0 and (end - 1 not in axes or ones[end - 1]):
        end -= 1
    start = end
    while start > 0 and (start - 1 in axes or ones[start - 1]):
        start -= 1
    runs: list[tuple[np.ndarray, bool]] = []
    for axis in range(start):
        if ones[axis]:
            continue
        reduced = axis in axes
        if runs and runs[-1][1] == reduced:
            runs[-1] = runs[-1][0] * shapes[:, axis], reduced
        else:
            runs.append((shapes[:, axis], reduced))
    if len(runs) > MOST_RUNS:
        raise ShapeError(
            f"Axes that moments are taken along and axes that they are not take {len(runs)} turns "
            f"in data of {shapes.shape[1]} axes; {MOST_RUNS} are possible on the GPU. Bring "
            "them side by side with `fn.transpose`."
        )
    return Blocks(
        shapes[:, :start].prod(axis=1),
        shapes[:, start:end].prod(axis=1),
        shapes[:, end:].prod(axis=1),
        tuple(runs) if any(reduced for _, reduced in runs) else (),
        (start, end),
    )


def in_parts(blocks: Blocks, shape: np.ndarray, rows: int, rows_of_lane: int) -> np.ndarray:
    """Fill `shape`, of type `SHAPE`, for parts of so many rows; return numbers of blocks."""
    columns = np.clip(blocks.inner, 1, THREADS)
    lanes = np.minimum(_power_below(THREADS // columns), _power_above(blocks.reduced))
    chunk = np.maximum(rows, rows_of_lane * lanes)
    shape["outer"], shape["reduced"], shape["inner"] = blocks.outer, blocks.reduced, blocks.inner
    shape["columns"], shape["lanes"], shape["chunk"] = columns, lanes, chunk
    shape["column_tiles"] = tiles = -(-blocks.inner // columns)
    shape["chunks"] = chunks = np.maximum(-(-blocks.reduced // chunk), 1)
    parts: np.ndarray = blocks.outer * chunks * tiles
    return -(-parts // (THREADS // (lanes * columns)))


def in_rows(blocks: Blocks, rows: np.ndarray, vector: int, vectors: int) -> np.ndarray:
    """Fill `rows`, of type `ROWS`, for chunks of so many vectors a thread."""
    size = blocks.reduced * blocks.inner
    chunk = ROW_THREADS * vector * vectors
    rows["outer"], rows["size"], rows["chunk"] = blocks.outer, size, chunk
    rows["chunks"] = chunks = np.maximum(-(-size // chunk), 1)
    return blocks.outer * chunks


def _power_below(values: np.ndarray) -> np.ndarray:
    """The largest power of two that is not above each of `values`, which are positive."""
    return 1 << (np.frexp(values)[1].astype(np.int64) - 1)


def _power_above(values: np.ndarray) -> np.ndarray:
    """The smallest power of two that is not below each of `values`."""
    return 1 << np.frexp(np.clip(values - 1, 0, THREADS))[1].astype(np.int64)
