"""Windows that reach beyond the data: what lies outside is a constant, or made from the inside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.kernels.cpu import pad_loops
from headrace.kernels.cpu.rows import read_only
from headrace.tensors.rows import Rows

Move = Callable[[np.ndarray, np.ndarray], None]
"""Fills its second argument with its first, converting the type where needed."""


def pad_window(
    source: np.ndarray,
    anchor: Sequence[int],
    out: np.ndarray,
    *,
    policy: str,
    fill: np.ndarray | None = None,
    move: Move | None = None,
) -> None:
    """Fill `out` with the window of `source` that starts at `anchor`."""
    move = move or _copy
    first = [min(max(-a, 0), size) for a, size in zip(anchor, out.shape, strict=True)]
    last = [
        max(min(extent - a, size), f)
        for a, extent, size, f in zip(anchor, source.shape, out.shape, first, strict=True)
    ]
    if policy == "constant":
        _fill_around(out, first, last, fill)
        _move_inside(source, anchor, out, first, last, move)
        return
    outside = [
        _repeated(a, extent, f, e, size, policy)
        for a, extent, f, e, size in zip(anchor, source.shape, first, last, out.shape, strict=True)
    ]
    if None in outside:
        _gather(source, anchor, out, policy, move)
        return
    _move_inside(source, anchor, out, first, last, move)
    for axis, pair in enumerate(outside):
        # Axes before this one are complete already, those after it follow.
        box: list[Any] = [slice(None)] * axis
        rest = [slice(f, e) for f, e in zip(first[axis + 1 :], last[axis + 1 :], strict=True)]
        for to, taken in pair or ():
            out[(*box, to, *rest)] = out[(*box, taken, *rest)]


def pad_signals(sources: Rows, anchors: np.ndarray, out: Rows, fill: np.ndarray) -> None:
    """The same for several signals, with a constant outside of them.

    `anchors`: int64 ``(signals,)``.
    """
    assert out.flat is not None
    pad_loops.pad_signals(
        sources.addresses, sources.sizes, anchors, out.flat, out.begins, out.sizes, read_only(fill)
    )


def _copy(source: np.ndarray, out: np.ndarray) -> None:
    np.copyto(out, source)


def _move_inside(
    source: np.ndarray,
    anchor: Sequence[int],
    out: np.ndarray,
    first: Sequence[int],
    last: Sequence[int],
    move: Move,
) -> None:
    """Copy what lies inside of the data."""
    target = out[tuple([slice(f, e) for f, e in zip(first, last, strict=True)])]
    if target.size == 0:
        return
    taken = source[
        tuple([slice(a + f, a + e) for a, f, e in zip(anchor, first, last, strict=True)])
    ]
    if move is _copy or target.flags.c_contiguous:
        move(taken, target)
    else:
        converted = np.empty(taken.shape, out.dtype)
        move(taken, converted)
        np.copyto(target, converted)


def _fill_around(
    out: np.ndarray, first: Sequence[int], last: Sequence[int], fill: np.ndarray | None
) -> None:
    """Fill everything but the box from `first` to `last`, each element once."""
    fill = np.broadcast_to(fill, out.shape)  # type: ignore[arg-type]
    box: list[slice] = []
    for f, e, size in zip(first, last, out.shape, strict=True):
        for outside in (slice(0, f), slice(e, size)):
            if outside.start < outside.stop:
                region = (*box, outside)
                out[region] = fill[region]
        box.append(slice(f, e))


def _repeated(
    anchor: int, extent: int, first: int, last: int, size: int, policy: str
) -> list[tuple[slice, np.ndarray]] | None:
    """Spans along an axis where `out` repeats itself: positions outside and the positions inside
    that they copy.

    ``None`` where a model lies in the data but not in the window.
    """
    pairs = []
    for begin, end in ((0, first), (last, size)):
        if begin == end:
            continue
        models = source_positions(anchor + begin, end - begin, extent, policy) - anchor
        if models.min() < first or models.max() >= last:
            return None
        pairs.append((slice(begin, end), models))
    return pairs


def _gather(
    source: np.ndarray, anchor: Sequence[int], out: np.ndarray, policy: str, move: Move
) -> None:
    """Pick all elements by their coordinates, one axis after the other."""
    for axis, (a, size, extent) in enumerate(zip(anchor, out.shape, source.shape, strict=True)):
        source = source.take(source_positions(a, size, extent, policy), axis)
    move(source, out)


def source_positions(anchor: int, size: int, extent: int, policy: str) -> np.ndarray:
    """Coordinates in the data of `size` positions from `anchor` on, along an axis."""
    at = np.arange(anchor, anchor + size)
    if policy == "edge" or extent == 1:
        return np.clip(at, 0, extent - 1)
    if policy == "wrap":
        return at % extent
    if policy == "reflect_1001":
        at = at % (2 * extent)
        return np.minimum(at, 2 * extent - 1 - at)
    if policy == "reflect_101":
        period = 2 * (extent - 1)
        at = at % period
        return np.minimum(at, period - at)
    raise ValueError(f"unknown policy {policy!r}")
