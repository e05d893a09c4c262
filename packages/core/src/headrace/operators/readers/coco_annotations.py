"""Annotations in COCO's format: boxes, labels and polygons of images."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.readers.index import RaggedColumn
from headrace.operators.readers.storage import read_file


class CocoImage(NamedTuple):
    """An image that the file lists, with its objects."""

    id: int
    name: str
    width: int
    height: int
    objects: list[Mapping[str, Any]]


def read_annotations(path: str) -> tuple[list[CocoImage], dict[int, int]]:
    """Images in the order of their ids, and for each category its number, from 1.

    Raises
    ------
    ArgumentValueError
        If the file cannot be read, or is not in COCO's format.
    """
    try:
        found = json.loads(bytes(read_file(path, np.empty)))
        objects: dict[int, list[Mapping[str, Any]]] = {}
        images = [
            CocoImage(
                i["id"], i["file_name"], i["width"], i["height"], objects.setdefault(i["id"], [])
            )
            for i in found["images"]
        ]
        for each in found.get("annotations", ()):
            own = objects.get(each["image_id"])
            if own is not None:
                own.append(each)
                if len(each.get("bbox", ())) not in (0, 4):
                    raise ArgumentValueError(
                        f"`annotations_file`={path!r}: `bbox` must contain exactly 4 values, got "
                        f"{each['bbox']}."
                    )
        categories = {c["id"]: k for k, c in enumerate(found.get("categories", ()), 1)}
    except BadSampleError as error:
        raise ArgumentValueError(f"`annotations_file` cannot be opened: {error}") from error
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        if isinstance(error, ArgumentValueError):
            raise
        raise ArgumentValueError(
            f"`annotations_file`={path!r} is not in the format of COCO: {error!r}."
        ) from error
    return sorted(images, key=lambda image: image.id), categories


def boxes_of(objects: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Left, top, width and height of objects in pixels, float32 ``(objects, 4)``."""
    boxes = [each.get("bbox") or (0, 0, 0, 0) for each in objects]
    return np.array(boxes, np.float32).reshape(-1, 4)


def polygons_of(objects: Sequence[Mapping[str, Any]]) -> tuple[np.ndarray, np.ndarray]:
    """Polygons of the objects of an image, and their vertices.

    Returns
    -------
    polygons
        int32 ``(polygons, 3)``: number of the object, and which vertices it has, from the first one
        to before the last one. Objects whose mask is run-length encoded have none.
    vertices
        float32 ``(vertices, 2)``: x and y in pixels.
    """
    rows, values, count = [], [], 0
    for number, each in enumerate(objects):
        given = each.get("segmentation")
        for polygon in given if isinstance(given, list) else ():
            end = count + len(polygon) // 2
            rows.append((number, count, end))
            values += polygon[: 2 * (end - count)]
            count = end
    return np.array(rows, np.int32).reshape(-1, 3), np.array(values, np.float32).reshape(-1, 2)


def ragged(values: Sequence[np.ndarray]) -> RaggedColumn:
    """A column of arrays that differ in length."""
    return RaggedColumn(np.concatenate(values), list(accumulate(map(len, values))))
