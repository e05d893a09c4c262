"""Annotations in COCO's format as columns: decoded in portions, with only the fields that are used.

Files that are not as they should be are left to `coco_annotations`, which takes more time and
memory, understands more (whole numbers with a fraction of 0), and says what is wrong.
"""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.cpu.packed_names import PackedNames
from headrace.operators.readers.coco_saved import CocoEntries
from headrace.operators.readers.index import RaggedColumn
from headrace.operators.readers.kept_index import kept_arrays
from headrace.operators.readers.storage import read_file

if TYPE_CHECKING:
    from collections.abc import Iterator

_PORTION = 1 << 14
"""Annotations that are decoded at once."""
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
    import msgspec
    from msgspec import Raw

    def struct(*fields: Any) -> Any:
        return msgspec.defstruct("Struct", fields, gc=False)

    image: Any = struct(("id", int), ("file_name", str), ("width", int, 0), ("height", int, 0))
    category: Any = struct(("id", int))
    file = struct(
        ("images", _list_of(image)),
        ("annotations", list[Raw], []),
        ("categories", _list_of(category), []),
    )
    fields: list[Any] = [("image_id", int), ("category_id", int), ("bbox", tuple[float, ...])]
    fields.append(("iscrowd", int, 0))
    if polygons:
        fields.append(("segmentation", list[list[float]] | dict[str, Raw], []))
    objects = msgspec.json.Decoder(_list_of(struct(*fields)))

    def portions(each: list[Any]) -> Iterator[list[Any]]:
        for k in range(0, len(each), _PORTION):
            yield objects.decode(b"[" + b",".join(each[k : k + _PORTION]) + b"]")

    try:
        found = msgspec.json.decode(read_file(path, np.empty).data, type=file)
        parts = [_columns(portion, polygons) for portion in portions(found.annotations)]
        parts = parts or [_columns([], polygons)]
        whole = [np.concatenate(part) for part in zip(*parts, strict=True)]
        ids = np.array([image.id for image in found.images], np.int64)
    except (msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
        return None
    owners, kinds, boxes, crowds, *outlines = whole
    order = np.argsort(ids, kind="stable")
    ids = ids[order]
    extents = np.array([(i.width, i.height) for i in found.images], np.int64).reshape(-1, 2)[order]
    usual = (np.diff(ids) > 0).all() and np.isfinite(boxes).all() and np.isfinite(outlines[2]).all()
    for wide in (ids, kinds):
        usual &= wide.min(initial=0) >= _INT32.min and wide.max(initial=0) <= _INT32.max
    if not usual:
        return None
    listed = [found.images[k].file_name for k in order.tolist()]
    names = PackedNames.of([listed])
    if len(names) != len(listed):
        return None  # a name has a NUL in it
    places = np.searchsorted(ids, owners)
    known = np.flatnonzero(np.append(ids, _NO_ID)[places] == owners)
    turned = known[np.argsort(places[known], kind="stable")]
    return CocoTable(
        *(ids, names, extents),
        *(places[turned], kinds[turned], boxes[turned], crowds[turned]),
        _outlines(outlines, turned) if polygons else (outlines[0], outlines[1], outlines[2]),
        {category.id: k for k, category in enumerate(found.categories, 1)},
    )


def _list_of(element: Any) -> Any:
    return list[element]


def _columns(objects: list[Any], polygons: bool) -> tuple[np.ndarray, ...]:
    count = len(objects)
    boxes = np.array([each.bbox or (0.0,) * 4 for each in objects]).reshape(-1, 4)
    if len(boxes) != count:
        raise ValueError("boxes with other than four numbers")
    regions = [
        each.segmentation if isinstance(each.segmentation, list) else []
        for each in (objects if polygons else ())
    ]
    every = list(itertools.chain.from_iterable(regions))
    values = [p if len(p) % 2 == 0 else p[:-1] for p in every]
    with np.errstate(over="ignore"):
        return (
            np.fromiter([each.image_id for each in objects], np.int64, count),
            np.fromiter([each.category_id for each in objects], np.int64, count),
            boxes.astype(np.float32),
            np.fromiter([each.iscrowd != 0 for each in objects], np.bool_, count),
            np.array([len(region) for region in regions], np.int64),
            np.array([len(value) // 2 for value in values], np.int64),
            np.array(list(itertools.chain.from_iterable(values)), np.float64)
            .astype(np.float32)
            .reshape(-1, 2),
        )


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
