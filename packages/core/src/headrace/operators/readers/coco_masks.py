"""Masks of pixels of the objects in COCO's annotations, painted when an image is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu import region_masks as _kernels
from headrace.operators.readers.coco_annotations import CocoImage
from headrace.operators.readers.index import ComputedColumn


class MaskColumn(ComputedColumn):
    """For each image an int32 mask ``(height, width, 1)``: labels of the objects, 0 elsewhere.

    Where objects overlap, the greater label is there. Regions are kept as the annotations have
    them: vertices, or lengths of runs.
    """

    dtype, ndim, layout = np.dtype(np.int32), 4, "HWC"

    def __init__(self) -> None:
        self._extents: list[tuple[int, int]] = []
        self._regions: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []

    def add(self, image: CocoImage, objects: Sequence[Mapping[str, Any]], labels: Any) -> None:
        """Take in the objects of the next image, with their labels.

        Raises
        ------
        ArgumentValueError
            If runs are of an image of other extents.
        """
        values: list[float] = []
        ends, are_runs, found = [], [], []
        for k in np.argsort(labels, kind="stable").tolist():
            given = objects[k].get("segmentation")
            for region in given if isinstance(given, list) else [given] if given else []:
                runs = _runs(region, image) if isinstance(region, dict) else None
                values += region[: len(region) // 2 * 2] if runs is None else runs
                ends.append(len(values))
                are_runs.append(runs is not None)
                found.append(labels[k])
        self._extents.append((image.height, image.width))
        self._regions.append(
            (
                np.array(values, np.float32),
                np.array(ends, np.int64),
                np.array(are_runs, np.bool_),
                np.array(found, np.int32),
            )
        )

    def __len__(self) -> int:
        return len(self._extents)

    def __getitem__(self, entries: np.ndarray) -> list[np.ndarray]:
        return [self._mask(entry) for entry in entries.tolist()]

    def _mask(self, entry: int) -> np.ndarray:
        mask = np.zeros(self._extents[entry], np.int32)
        _kernels.paint(*self._regions[entry], mask)
        return mask[..., np.newaxis]


def _runs(region: Mapping[str, Any], image: CocoImage) -> list[int]:
    """Lengths of the runs of a region: outside, inside, and so on."""
    extents = image.height, image.width
    if tuple(region["size"]) != extents:
        raise ArgumentValueError(
            f'The `segmentation` of an object in "{image.name}" has the size {region["size"]}; the '
            f"image has {list(extents)}."
        )
    counts = region["counts"]
    return _decompressed(counts) if isinstance(counts, str) else list(counts)


def _decompressed(text: str) -> list[int]:
    """Lengths of runs of which COCO's text is made: 5 bits a character, the lowest first.

    From the third one on, they are relative to the last but one.
    """
    runs: list[int] = []
    value, shift = 0, 0
    for character in text.encode():
        bits = character - 48
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            if bits & 16:
                value -= 1 << shift
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value, shift = 0, 0
    return runs
