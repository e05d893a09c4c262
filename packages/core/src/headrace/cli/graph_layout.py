"""Places the boxes of a graph in rows, so that edges go down and cross seldom."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field

_SWEEPS = 8
_SHIFTS = 12


@dataclass(eq=False)
class Box:
    """Something with a place: a node of the graph, or a bend of a long edge (of no width)."""

    width: float = 0.0
    row: int = 0
    x: float = 0.0
    """Of its middle."""
    above: list[Box] = field(default_factory=list)
    below: list[Box] = field(default_factory=list)


@dataclass
class Layout:
    """Positions of boxes.

    Attributes
    ----------
    boxes
        One for each node, in their order.
    rows
        All boxes, bends too, of each row from left to right.
    paths
        For each edge its boxes from top to bottom.
    width
        Of all.
    """

    boxes: list[Box]
    rows: list[list[Box]]
    paths: list[list[Box]]
    width: float


def layout(
    widths: Sequence[float],
    edges: Sequence[tuple[int, int]],
    bands: Sequence[int],
    gap: float,
) -> Layout:
    """Place nodes in rows."""
    boxes = [Box(width) for width in widths]
    _find_rows(boxes, edges, bands)
    rows: list[list[Box]] = [[] for _ in range(max((b.row for b in boxes), default=-1) + 1)]
    for box in boxes:
        rows[box.row].append(box)
    paths = []
    for begin, end in edges:
        path = [boxes[begin]]
        for number in range(boxes[begin].row + 1, boxes[end].row):
            bend = Box(row=number)
            rows[number].append(bend)
            path.append(bend)
        path.append(boxes[end])
        for upper, lower in itertools.pairwise(path):
            upper.below.append(lower)
            lower.above.append(upper)
        paths.append(path)
    _order(rows)
    _shift(rows, gap)
    left = min((b.x - b.width / 2 for row in rows for b in row), default=0.0)
    right = max((b.x + b.width / 2 for row in rows for b in row), default=0.0)
    for box in itertools.chain.from_iterable(rows):
        box.x -= left
    return Layout(boxes, rows, paths, right - left)


def _find_rows(boxes: list[Box], edges: Sequence[tuple[int, int]], bands: Sequence[int]) -> None:
    """The row of each box: below all that it reads, and below the bands before its own."""
    readers: dict[int, list[int]] = {}
    for begin, end in edges:
        readers.setdefault(end, []).append(begin)
    first = 0
    for band in sorted(set(bands)):
        last = first
        for k, box in enumerate(boxes):
            if bands[k] == band:
                rows = (boxes[b].row + 1 for b in readers.get(k, ()))
                box.row = max(first, *rows, 0)
                last = max(last, box.row + 1)
        first = last


def _order(rows: list[list[Box]]) -> None:
    """Bring the boxes of each row into an order in which few edges cross."""
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        place = {id(box): k for row in rows for k, box in enumerate(row)}
        for row in rows if down else reversed(rows):
            keys = {}
            for k, box in enumerate(row):
                others = [place[id(o)] for o in (box.above if down else box.below)]
                keys[id(box)] = sum(others) / len(others) if others else float(k)
            row.sort(key=lambda box, keys=keys: keys[id(box)])  # type: ignore[misc]
            for k, box in enumerate(row):
                place[id(box)] = k


def _shift(rows: list[list[Box]], gap: float) -> None:
    """Move boxes towards those that they are connected with, and keep them apart."""
    for row in rows:
        x = 0.0
        for box in row:
            box.x = x + box.width / 2
            x += box.width + gap
    for _ in range(_SHIFTS):
        for row in rows:
            wanted = []
            for box in row:
                others = [*box.above, *box.below]
                wanted.append(sum(o.x for o in others) / len(others) if others else box.x)
            _spread(row, wanted, gap)


def _spread(row: list[Box], wanted: list[float], gap: float) -> None:
    """Put the boxes of a row as near to where they want to be as their neighbours allow: groups of
    boxes that touch are moved as one.
    """
    groups: list[tuple[float, int]] = []
    """Sum of what the members want of the left edge of the group, and how many they are."""
    offset = 0.0
    offsets = []
    for box, x in zip(row, wanted, strict=True):
        offsets.append(offset + box.width / 2)
        groups.append((x - offsets[-1], 1))
        offset += box.width + gap
        while len(groups) > 1 and groups[-2][0] / groups[-2][1] > groups[-1][0] / groups[-1][1]:
            total, count = groups.pop()
            groups[-1] = groups[-1][0] + total, groups[-1][1] + count
    places = [total / count for total, count in groups for _ in range(count)]
    for box, own, place in zip(row, offsets, places, strict=True):
        box.x = place + own
