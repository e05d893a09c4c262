"""Annotations in COCO's format as columns: a compiled scan takes only the fields that are used.

Files that are not as they should be are left to `coco_annotations`, which takes more time and
memory, understands more (whole numbers with a fraction of 0), and says what is wrong.
"""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.cpu import coco_json
from headrace.kernels.cpu.packed_names import PackedNames
from headrace.operators.readers.coco_saved import CocoEntries
from headrace.operators.readers.index import RaggedColumn
from headrace.operators.readers.kept_index import kept_arrays
from headrace.operators.readers.storage import is_remote, read_file

if TYPE_CHECKING:
    from collections.abc import Callable

SMALLEST_BYTES = 4 << 20
"""Files of less are left to `coco_annotations`: the scan would have to be compiled first."""
_PORTION = 1 << 14
"""Elements of a list that are read at once."""
_SPREAD = 16
"""Ids that a table of places may have for each image."""
_OUTLINES = ("polygons", "sizes", "vertices")
_INT32 = np.iinfo(np.int32)
_NO_ID = 1 << 40
"""Behind all ids."""


class CocoTable(NamedTuple):
    """Images in the order of their ids, and objects in the order of images and of the file."""

    ids: np.ndarray
    names: PackedNames
    extents: np.ndarray
    """Width and height of each image, int64 ``(images, 2)``; 0 where they are not given."""
    owners: np.ndarray
    """For each object, the number of its image."""
    kinds: np.ndarray
    boxes: np.ndarray
    """float32 ``(objects, 4)``."""
    crowds: np.ndarray
    polygons: tuple[np.ndarray, np.ndarray, np.ndarray]
    """Number of polygons of each object; of vertices of each polygon; vertices, ``(all, 2)``."""
    categories: dict[int, int]


def read_table(path: str, *, polygons: bool) -> CocoTable | None:
    """Read the file; `None` if it is left to `coco_annotations`."""

    def find() -> dict[str, np.ndarray] | None:
        found = _decoded(path, polygons=polygons)
        if found is None:
            return None
        arrays = {k: v for k, v in found._asdict().items() if isinstance(v, np.ndarray)}
        outlines = dict(zip(_OUTLINES, found.polygons, strict=True))
        categories = np.array(list(found.categories.items()), np.int64).reshape(-1, 2)
        return {**arrays, **outlines, **found.names.arrays(), "categories": categories}

    if not is_remote(path) and os.path.isfile(path) and os.path.getsize(path) < SMALLEST_BYTES:
        return None
    arrays = kept_arrays(f"coco {polygons}", [path], find)
    if arrays is None:
        return None
    first, second, third = [arrays[name] for name in _OUTLINES]
    return CocoTable(
        *(arrays["ids"], PackedNames.of_arrays(arrays), arrays["extents"], arrays["owners"]),
        *(arrays["kinds"], arrays["boxes"], arrays["crowds"], (first, second, third)),
        dict(arrays["categories"].tolist()),
    )


def _decoded(path: str, *, polygons: bool) -> CocoTable | None:
    padded = np.empty(0, np.uint8)

    def allocate(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        nonlocal padded
        padded = np.empty(shape[0] + coco_json.PADDING, dtype)
        padded[shape[0] :] = 0
        return padded[: shape[0]]

    size = len(read_file(path, allocate))
    found = _Sections(padded, polygons).read(size)
    if found is None:
        return None
    facts, text, wide, categories, (owners, kinds, crowds, counts), boxes, sizes, vertices = found
    names = _names(text, wide)
    if names is None or len(names) != len(facts):
        return None  # a name has a NUL in it, or is no UTF-8
    ids = facts[:, 0]
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    usual = (np.diff(ids) > 0).all() and np.isfinite(boxes).all() and np.isfinite(vertices).all()
    for wide_ones in (ids, kinds):
        usual &= wide_ones.min(initial=0) >= _INT32.min and wide_ones.max(initial=0) <= _INT32.max
    if not usual:
        return None
    places = _places(ids, owners)
    turned = np.empty(len(places), np.int64)
    turned = turned[: coco_json.order_by(places, len(ids), turned)]
    outlines = (counts, sizes, vertices.reshape(-1, 2))
    return CocoTable(
        *(ids, names.taken(order), facts[order, 1:]),
        *(places[turned], kinds[turned], boxes.reshape(-1, 4)[turned], crowds[turned] != 0),
        _outlines(outlines, turned) if polygons else outlines,
        {int(category): k for k, category in enumerate(categories.tolist(), 1)},
    )


class _Sections:
    """The members of a file that are read, in whatever order they come.

    Parameters
    ----------
    data
        uint8: the file, with its padding.
    polygons
        Whether outlines are wanted.
    """

    def __init__(self, data: np.ndarray, polygons: bool) -> None:
        self._data = data
        self._polygons = polygons
        self._used = np.zeros(5, np.int64)

    def read(self, size: int) -> Any:
        """Arrays of all of them; `None` where something is not as expected."""
        data, at, first, known = self._data, 0, True, {}
        readers: dict[int, Callable[..., Any]] = {
            coco_json.IMAGES: partial(self._items, names=coco_json.IMAGE_FIELDS),
            coco_json.ANNOTATIONS: self._annotations,
            coco_json.CATEGORIES: partial(self._items, names=coco_json.CATEGORY_FIELDS),
        }
        while True:
            member, at = coco_json.next_member(data, at, first)
            first = False
            if member == coco_json.CLOSED:
                break
            if member in known or member == coco_json.STRANGE:
                return None
            if member == coco_json.OTHER:
                at = coco_json.past_value(data, at)
            else:
                at, *known[member] = readers[member](at)
            if at < 0:
                return None
        if at != size or coco_json.IMAGES not in known:
            return None
        categories = known.get(coco_json.CATEGORIES, [np.empty((0, 3), np.int64)])[0][:, 0]
        none = np.empty(0, np.float32)
        nothing = [np.empty((4, 0), np.int64), none, np.empty(0, np.int64), none]
        objects = known.get(coco_json.ANNOTATIONS, nothing)
        return (*known[coco_json.IMAGES], categories, *objects)

    def _items(self, at: int, names: np.ndarray) -> tuple[Any, ...]:
        """Items, and the text of their names, and whether it is more than ASCII."""
        facts, text = np.empty((_PORTION, 3), np.int64), np.empty(_PORTION * 32, np.uint8)
        parts: list[tuple[np.ndarray, np.ndarray]] = []
        wide = False
        state = coco_json.FULL
        while state == coco_json.FULL:
            state, at = coco_json.scan_items(self._data, at, names, facts, text, self._used)
            count, letters, not_ascii, *_ = self._used.tolist()
            wide |= bool(not_ascii)
            parts.append((facts[:count].copy(), text[:letters].copy()))
            if not count:
                text = np.empty(2 * len(text), np.uint8)
        if state == coco_json.STRANGE:
            return (coco_json.STRANGE,)
        every, names = (np.concatenate(part) for part in zip(*parts, strict=True))
        return at, every, names, wide

    def _annotations(self, at: int) -> tuple[Any, ...]:
        facts, boxes = np.empty((_PORTION, 4), np.int64), np.empty(4 * _PORTION, np.float32)
        names = coco_json.OBJECT_FIELDS if self._polygons else coco_json.PLAIN_FIELDS
        outlines = 4 * _PORTION
        sizes, vertices = np.empty(outlines, np.int64), np.empty(16 * outlines, np.float32)
        odd = np.empty((2, coco_json.MOST_ODD, 3), np.int64)
        parts: list[tuple[np.ndarray, ...]] = []
        state = coco_json.FULL
        while state == coco_json.FULL:
            state, at = coco_json.scan_objects(
                self._data, at, names, facts, boxes, sizes, vertices, odd, self._used
            )
            if state == coco_json.STRANGE:
                return (coco_json.STRANGE,)
            count, polygons, filled, odd_boxes, odd_vertices = self._used.tolist()
            self._mend(boxes, odd[0, :odd_boxes])
            self._mend(vertices, odd[1, :odd_vertices])
            found = (facts[:count].T, boxes[: 4 * count], sizes[:polygons], vertices[:filled])
            parts.append(tuple(each.copy() for each in found))
            if not count and state == coco_json.FULL:  # an object with very many vertices
                sizes, vertices = (np.empty(2 * len(a), a.dtype) for a in (sizes, vertices))
        every = [np.concatenate(each, axis=-1) for each in zip(*parts, strict=True)]
        return (at, *every)

    def _mend(self, values: np.ndarray, odd: np.ndarray) -> None:
        """Have Python read numbers that are hard to round."""
        with np.errstate(over="ignore"):
            for number, begin, end in odd.tolist():
                values[number] = np.float32(float(self._data[begin:end].tobytes()))


def _names(text: np.ndarray, wide: bool) -> PackedNames | None:
    """The names in a text, each with a NUL behind it; `None` where they are no UTF-8."""
    if wide:
        try:
            return PackedNames.of([text.tobytes().decode().split("\0")[:-1]])
        except UnicodeDecodeError:
            return None
    ends = np.flatnonzero(text == 0)
    begins = np.zeros(len(ends), np.int64)
    begins[1:] = ends[:-1] + 1
    longest = int((ends - begins).max(initial=0))
    return PackedNames(text, begins, longest, b"://" in text.tobytes())


def _places(ids: np.ndarray, owners: np.ndarray) -> np.ndarray:
    """Places of `owners` in `ids`, which are sorted, int64; -1 for those that are not there."""
    if not len(ids):
        return np.full(len(owners), -1)
    least, span = int(ids[0]), int(ids[-1]) - int(ids[0]) + 1
    if span > _SPREAD * len(ids) + _PORTION:
        places = np.searchsorted(ids, owners)
        return np.where(np.append(ids, _NO_ID)[places] == owners, places, -1)
    table = np.full(span + 1, -1)  # the last one is for what is elsewhere
    table[ids - least] = np.arange(len(ids))
    moved = owners - least
    found: np.ndarray = table[np.where((moved >= 0) & (moved < span), moved, span)]
    return found


def _ranges(begins: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """The numbers of several ranges, one after another."""
    steps = np.arange(int(counts.sum()))
    found: np.ndarray = steps + np.repeat(begins - (np.cumsum(counts) - counts), counts)
    return found


def _outlines(outlines: Any, objects: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The polygons of some objects, in their order."""
    counts, sizes, vertices = outlines
    polygons = _ranges((np.cumsum(counts) - counts)[objects], counts[objects])
    points = _ranges((np.cumsum(sizes) - sizes)[polygons], sizes[polygons])
    return counts[objects], sizes[polygons], vertices[points]


def entries_of(table: CocoTable, args: Any, *, ids: bool, polygons: bool) -> CocoEntries | None:
    """Take what arguments want of a table; `None` if there is none, or extents are not there."""
    own = table.boxes.copy()
    kept = (own[:, 2:] >= np.float32(args.size_threshold)).all(axis=1)
    if not args.include_iscrowd:
        kept &= ~table.crowds
    objects = np.flatnonzero(kept)
    counts = np.bincount(table.owners[objects], minlength=len(table.ids))
    images = np.arange(len(table.ids))
    if args.images:
        known = {name: k for k, name in enumerate(table.names)}
        images = np.array([known[name] for name in args.images if name in known], np.int64)
    if args.skip_empty:
        images = images[counts[images] > 0]
    if not len(images):
        return None
    objects = objects[_ranges((np.cumsum(counts) - counts)[images], counts[images])]
    counts = counts[images]
    own = own[objects]
    if args.ltrb:
        own[:, 2:] += own[:, :2]
    extents = table.extents[images]
    if args.ratio:
        used = extents[counts > 0]
        if used.size and (used.min() <= 0 or used.prod(axis=1).max() > 1 << 31):
            return None
        each = np.repeat(extents, counts, axis=0).astype(np.float32)
        own /= np.concatenate((each, each), axis=1)
    kinds = table.kinds[objects]
    if not args.avoid_class_remapping:
        numbers, inverse = np.unique(kinds, return_inverse=True)
        mapped = [table.categories.get(kind, 0) for kind in numbers.tolist()]
        kinds = np.array(mapped, np.int64)[inverse]
    ends = np.cumsum(counts)
    outlines = None
    if polygons:
        counts_of, sizes, vertices = _outlines(table.polygons, objects)
        numbers = np.arange(len(objects)) - np.repeat(ends - counts, counts)
        per_image = np.bincount(np.repeat(np.arange(len(images)), counts), counts_of, len(images))
        row_ends = np.cumsum(per_image.astype(np.int64))
        stops = np.cumsum(sizes)
        before = np.concatenate(([0], stops))[np.concatenate(([0], row_ends[:-1]))]
        shift = np.repeat(before, np.diff(row_ends, prepend=0))
        rows = np.stack((np.repeat(numbers, counts_of), stops - sizes - shift, stops - shift), 1)
        point_ends = np.concatenate(([0], stops))[row_ends]
        if args.ratio:
            scale = np.repeat(extents, np.diff(point_ends, prepend=0), axis=0).astype(np.float32)
            plain = np.repeat(counts == 0, np.diff(point_ends, prepend=0))
            vertices = vertices / np.where(plain[:, np.newaxis], np.float32(1), scale)
        outlines = (
            RaggedColumn(rows.astype(np.int32), row_ends),
            RaggedColumn(vertices, point_ends),
        )
    return CocoEntries(
        table.names.taken(images),
        table.ids[images].astype(np.int32) if ids else None,
        RaggedColumn(own, ends),
        RaggedColumn(kinds.astype(np.int32), ends),
        outlines,
    )
