"""Annotations in COCO's format: boxes, labels and polygons of images."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError, did_you_mean_file
from headrace.operators.readers.index import RaggedColumn
from headrace.operators.readers.storage import read_file
from headrace.progress import Progress


class CocoImage(NamedTuple):
    """An image that the file lists, with its objects."""

    id: Any
    name: str
    width: Any
    height: Any
    objects: list[Mapping[str, Any]]

    def extents(self) -> tuple[int, int]:
        """Height and width in pixels."""
        height, width = whole(self.height, "height", self), whole(self.width, "width", self)
        if min(height, width) <= 0 or height * width > _MOST_PIXELS:
            raise ValueError(f"the image {self.name!r} has {height} x {width} pixels")
        return height, width

    def called(self, each: Mapping[str, Any] | None = None) -> str:
        """The words for it, or for one of its objects."""
        of = "" if each is None else f"the annotation with the id {each.get('id')!r} of "
        return f"{of}the image {self.name!r}"


_MOST_PIXELS = 1 << 31


@contextmanager
def refusing(path: str) -> Iterator[None]:
    """Turn errors about annotations into ones that name their file."""
    try:
        yield
    except ArgumentValueError:
        raise
    except BadSampleError as error:
        raise ArgumentValueError(
            f"`annotations_file` cannot be opened: {error}{did_you_mean_file(path)}"
        ) from error
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as error:
        what = f"there is no {error}" if isinstance(error, KeyError) else error
        raise ArgumentValueError(
            f"`annotations_file`={path!r} is not in the format of COCO: {what}."
        ) from error


def whole(value: Any, name: str, image: CocoImage, each: Mapping[str, Any] | None = None) -> int:
    """The integer `value`, which is called `name` in an image or in one of its objects."""
    if type(value) is int and -(1 << 31) <= value < 1 << 31:
        return value
    what = f"`{name}` of {image.called(each)}"
    if value is None:
        raise ValueError(f"there is no {what}")
    if not isinstance(value, float) or value % 1 or abs(value) > 1 << 30:
        raise ValueError(f"{what} is {value!r}, which is no integer of 32 bits")
    return int(value)


def read_annotations(path: str) -> tuple[list[CocoImage], dict[Any, int]]:
    """Images in the order of their ids, and for each category its number, from 1."""
    with refusing(path), Progress(f"reading {path}", unit="images and objects") as progress:
        found = json.loads(bytes(read_file(path, np.empty)))
        objects: dict[Any, list[Mapping[str, Any]]] = {}
        images = []
        for each in found["images"]:
            progress.step()
            name = each["file_name"]
            if not isinstance(name, str):
                raise ValueError(f"the `file_name` of an image is {name!r}")
            own = objects.setdefault(each["id"], [])
            images.append(CocoImage(each["id"], name, each.get("width"), each.get("height"), own))
        for each in found.get("annotations", ()):
            progress.step()
            if "image_id" not in each:
                raise ValueError(
                    f"there is no `image_id` of the annotation with the id {each.get('id')!r}"
                )
            wanted = objects.get(each["image_id"])
            if wanted is not None:
                wanted.append(each)
        categories = {c["id"]: k for k, c in enumerate(found.get("categories", ()), 1)}
        return sorted(images, key=lambda image: image.id), categories


def _numbers(values: list[Any], what: Callable[[], str]) -> np.ndarray:
    """Array of `values`, float32, which must all be finite numbers."""
    found = np.array(values)
    if values and (found.ndim != 1 or found.dtype.kind not in "iuf"):
        raise ValueError(f"{what()} has something else than numbers")
    # Of what is too large, infinity is made.
    with np.errstate(over="ignore"):
        found = found.astype(np.float32)
    if not np.isfinite(found).all():
        raise ValueError(f"{what()} has numbers that are not finite")
    return found


def boxes_of(image: CocoImage, objects: Sequence[Mapping[str, Any]]) -> np.ndarray:
    """Left, top, width and height of objects in pixels, float32 ``(objects, 4)``."""
    boxes: list[Any] = []
    for each in objects:
        box = each.get("bbox", ())
        if not isinstance(box, (list, tuple)) or len(box) not in (0, 4):
            raise ValueError(
                f"`bbox` must contain exactly 4 values, got {box!r} in {image.called(each)}"
            )
        boxes += box or (0, 0, 0, 0)
    return _numbers(boxes, lambda: f"a `bbox` of the image {image.name!r}").reshape(-1, 4)


def polygons_of(
    image: CocoImage, objects: Sequence[Mapping[str, Any]]
) -> tuple[np.ndarray, np.ndarray]:
    """Polygons of the objects of an image, and their vertices.

    Returns int32 ``(polygons, 3)``: number of the object, and which vertices it has, from the first
    one to before the last one. Returns float32 ``(vertices, 2)``: x and y in pixels.
    """
    rows, values, count = [], [], 0
    for number, each in enumerate(objects):
        for polygon in regions_of(image, each):
            if isinstance(polygon, list):
                end = count + len(polygon) // 2
                rows.append((number, count, end))
                values += polygon[: 2 * (end - count)]
                count = end
    return np.array(rows, np.int32).reshape(-1, 3), vertices_of(image, values).reshape(-1, 2)


def regions_of(image: CocoImage, each: Mapping[str, Any]) -> list[Any]:
    """The lists of coordinates, or the run-length encoding, that an object is made of."""
    given = each.get("segmentation")
    regions = given if isinstance(given, list) else [given] if given else []
    if not all(isinstance(region, (list, dict)) for region in regions):
        raise ValueError(
            f"`segmentation` of {image.called(each)} is neither a list of polygons, which are "
            "lists of coordinates, nor run-length encoded"
        )
    return regions


def vertices_of(image: CocoImage, values: list[Any]) -> np.ndarray:
    """Coordinates of vertices, float32, flat."""
    return _numbers(values, lambda: f"a `segmentation` of the image {image.name!r}")


def ragged(values: Sequence[np.ndarray]) -> RaggedColumn:
    """A column of arrays that differ in length."""
    return RaggedColumn(np.concatenate(values), list(accumulate(map(len, values))))
