"""Annotations that were worked out once, kept in a folder of binary files, as DALI writes them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.operators.readers.index import RaggedColumn


class CocoEntries(NamedTuple):
    """Columns of image facts, with one value for each image."""

    names: Sequence[str]
    ids: np.ndarray | None
    """int32 ``(images,)``, where they are wanted."""
    boxes: RaggedColumn
    labels: RaggedColumn
    polygons: tuple[RaggedColumn, RaggedColumn] | None
    """Polygons and vertices, where they are wanted."""


def save(folder: str, found: CocoEntries) -> None:
    """Write the files of `folder`."""
    begins, counts = _spans(found.boxes)
    arrays = {
        "offsets": begins.astype(np.int32),
        "counts": counts.astype(np.int32),
        "boxes": found.boxes.values,
        "labels": found.labels.values,
    }
    if found.ids is not None:
        arrays["original_ids"] = found.ids
    if found.polygons is not None:
        polygons, vertices = found.polygons
        arrays |= {"polygon_data": polygons.values, "vertices": vertices.values}
        for name, column in (("polygon", polygons), ("vertices", vertices)):
            begins, counts = _spans(column)
            count = {"polygon": "polygons_count", "vertices": "vertices_count"}[name]
            arrays |= {f"{name}_offset": begins, count: counts}
    try:
        for name, array in arrays.items():
            # Of boxes, coordinates are counted; of all others, rows.
            size = array.size if name == "boxes" else len(array)
            with open(os.path.join(folder, f"{name}.dat"), "wb") as file:
                file.write(np.uint32(size).tobytes() + np.ascontiguousarray(array).tobytes())
        with open(os.path.join(folder, "filenames.dat"), "w", encoding="utf-8") as text:
            text.writelines(f"{name}\n" for name in found.names)
    except OSError as error:
        raise ArgumentValueError(
            f"`save_preprocessed_annotations_dir`={folder!r} cannot be written to: {error}."
        ) from error


def load(folder: str, *, ids: bool, polygons: bool) -> CocoEntries:
    """Read what is wanted of the files of `folder`."""
    path = os.path.join(folder, "filenames.dat")
    if not os.path.exists(path):
        raise ArgumentValueError(
            f"No files found: `preprocessed_annotations`={folder!r} has no annotations that were "
            "saved by `save_preprocessed_annotations`."
        )
    with open(path, encoding="utf-8") as text:
        names = text.read().splitlines()
    counts = _read(folder, "counts", np.int32)
    given = _read(folder, "original_ids", np.int32) if ids else None
    boxes = _column(folder, "boxes", np.float32, counts, 4)
    labels = _column(folder, "labels", np.int32, counts)
    outlines = None
    if polygons:
        counts = _read(folder, "polygons_count", np.int64)
        rows = _column(folder, "polygon_data", np.int32, counts, 3)
        counts = _read(folder, "vertices_count", np.int64)
        outlines = rows, _column(folder, "vertices", np.float32, counts, 2)
    if any(len(each) != len(names) for each in (boxes, names if given is None else given)) or any(
        len(each) != len(names) for each in outlines or ()
    ):
        raise _damaged(folder, f"there are {len(names)} names of images, and not as many entries")
    return CocoEntries(names, given, boxes, labels, outlines)


def _column(
    folder: str, name: str, dtype: type[np.generic], counts: np.ndarray, width: int = 0
) -> RaggedColumn:
    values = _read(folder, name, dtype)
    if width and not values.size % width:
        values = values.reshape(-1, width)
    # Each for itself first: their sum may not fit.
    found = len(values)
    if counts.min(initial=0) < 0 or counts.max(initial=0) > found or counts.sum() != found:
        raise _damaged(folder, f"the size of {name}.dat does not fit")
    return RaggedColumn(values, np.cumsum(counts, dtype=np.int64))


def _damaged(folder: str, what: str) -> ArgumentValueError:
    return ArgumentValueError(
        f"`preprocessed_annotations`={folder!r} are damaged: {what}. Save them again."
    )


def _read(folder: str, name: str, dtype: type[np.generic]) -> np.ndarray:
    path = os.path.join(folder, f"{name}.dat")
    try:
        return np.fromfile(path, dtype, offset=np.dtype(np.uint32).itemsize)
    except (OSError, ValueError) as error:
        raise ArgumentValueError(
            f"`preprocessed_annotations`={folder!r} cannot be read: {error}. Save the annotations "
            "with the same outputs asked for, as `image_ids` and `polygon_masks`."
        ) from error


def _spans(column: RaggedColumn) -> Sequence[np.ndarray]:
    """Offsets and numbers of the values of each entry, int64."""
    counts = np.diff(column.ends, prepend=0)
    return column.ends - counts, counts
