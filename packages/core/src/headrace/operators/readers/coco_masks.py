"""Masks of pixels of the objects in COCO's annotations, painted when an image is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from headrace.kernels.cpu import region_masks as _kernels
from headrace.operators.readers.coco_annotations import CocoImage, regions_of, vertices_of
from headrace.operators.readers.index import ComputedColumn

_FARTHEST = 1 << 20
"""Largest distance of vertices from the corner, in pixels: borders are followed step by step."""


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
        """Take in the objects of the next image, with their labels."""
        extents = image.extents()
        values: list[float] = []
        ends: list[int] = []
        owners: list[int] = []
        runs: dict[int, tuple[slice, np.ndarray]] = {}
        for k in np.argsort(labels, kind="stable").tolist():
            for region in regions_of(image, objects[k]):
                if isinstance(region, dict):
                    lengths = _runs(region, extents, image.called(objects[k]))
                    runs[len(ends)] = slice(len(values), len(values) + len(lengths)), lengths
                    values += [0.0] * len(lengths)
                else:
                    values += region[: len(region) // 2 * 2]
                ends.append(len(values))
                owners.append(k)
        # Checked together: there are very many regions.
        found, places = vertices_of(image, values), np.array(ends, np.int64)
        if np.abs(found).max(initial=0) > _FARTHEST:
            region = int(np.searchsorted(places, np.abs(found).argmax(), "right"))
            where = image.called(objects[owners[region]])
            raise ValueError(f"`segmentation` of {where} lies far outside of the image")
        for place, lengths in runs.values():
            found[place] = lengths
        self._extents.append(extents)
        are_runs = np.zeros(len(ends), np.bool_)
        are_runs[list(runs)] = True
        self._regions.append((found, places, are_runs, np.asarray(labels, np.int32)[owners]))

    def __len__(self) -> int:
        return len(self._extents)

    def __getitem__(self, entries: np.ndarray) -> list[np.ndarray]:
        return [self._mask(entry) for entry in entries.tolist()]

    def _mask(self, entry: int) -> np.ndarray:
        mask = np.zeros(self._extents[entry], np.int32)
        _kernels.paint(*self._regions[entry], mask)
        return mask[..., np.newaxis]


def _runs(region: Mapping[str, Any], extents: tuple[int, int], where: str) -> np.ndarray:
    """Lengths of the runs of a region: outside, inside, and so on; int32, as bits of float32."""
    if region.get("size") != list(extents):
        raise ValueError(
            f"`segmentation` of {where} has the size {region.get('size')}; the image has "
            f"{list(extents)}"
        )
    counts = region.get("counts")
    runs = np.array(_decompressed(counts) if isinstance(counts, str) else counts)
    if runs.ndim != 1 or runs.dtype.kind not in "iu" or runs.min(initial=0) < 0:
        raise ValueError(f"`segmentation` of {where} has `counts` that are no lengths of runs")
    # Each for itself first: their sum may not fit.
    pixels = extents[0] * extents[1]
    if runs.max(initial=0) > pixels or runs.sum() > pixels:
        raise ValueError(f"`segmentation` of {where} has more than the {pixels} pixels")
    return runs.astype(np.int32).view(np.float32)


def _decompressed(text: str) -> list[int]:
    """Lengths of runs of which COCO's text is made: 5 bits a character, the lowest first.

    From the third one on, they are relative to the last but one. Empty where the text is damaged.
    """
    runs: list[int] = []
    value, shift = 0, 0
    for character in text.encode():
        bits = character - 48
        if not 0 <= bits < 64 or shift > 30:
            return []
        value |= (bits & 31) << shift
        shift += 5
        if not bits & 32:
            if bits & 16:
                value -= 1 << shift
            runs.append(value + (runs[-2] if len(runs) > 2 else 0))
            value, shift = 0, 0
    return [] if shift else runs
