"""Plain JPEG images that need no conversion, or windows of them: most batches are of nothing else.

What `Job` does for each image is done here for all of them by NumPy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import numpy as np

from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.cpu.decode.jpeg_scan import ScannedJpegs
from headrace.kernels.cpu.decode.pixels import PixelFormat
from headrace.kernels.cpu.decode.stored import Region
from headrace.kernels.gpu.decode.host import Sample
from headrace.kernels.gpu.decode.nvjpeg import IMAGE, Tables, extents
from headrace.tensors.gpu.queue import Queue

_COLORS = ("RGB", "BGR", "GRAY")


@lru_cache(maxsize=256)
def _all(count: int) -> np.ndarray:
    """The positions of so many images; not to be written to."""
    return np.arange(count)


class Encoded(Protocol):
    """Encoded images."""

    @property
    def rows(self) -> Sequence[np.ndarray]:
        """One array an image."""


@dataclass(frozen=True, slots=True)
class PlainJpegs:
    """Plain images of a batch.

    `encoded`: what has all encoded images of the batch, in its `rows`. `scanned`: what is known of
    them. `positions`: int64: which of them are meant. `channels`: of the decoded images. `shapes`:
    of the decoded images, int64 ``(images, 3)``. `regions`: what to decode of each, int64
    ``(images, 4)``: first row and column, and one past the last; `None` for whole images.
    """

    encoded: Encoded
    scanned: ScannedJpegs
    positions: np.ndarray
    channels: int
    shapes: np.ndarray
    regions: np.ndarray | None = None

    def only(self, chosen: np.ndarray) -> PlainJpegs:
        """Those for which `chosen`, one value an image, is true."""
        if chosen.all():
            return self
        regions = None if self.regions is None else self.regions[chosen]
        return PlainJpegs(
            self.encoded,
            self.scanned,
            self.positions[chosen],
            self.channels,
            self.shapes[chosen],
            regions,
        )

    def whole(self) -> np.ndarray:
        """For each image whether all of it is to be decoded."""
        assert self.regions is not None
        sizes = self.scanned.facts[self.positions, :2]
        whole: np.ndarray = (self.shapes[:, :2] == sizes).all(axis=1)
        return whole

    def samples(self) -> list[Sample]:
        """The same, one by one."""
        found = []
        windows: list[Region | None] = [None] * len(self.positions)
        if self.regions is not None:
            windows = [
                None if whole else (y0, x0, y1, x1)
                for whole, (y0, x0, y1, x1) in zip(
                    self.whole().tolist(), self.regions.tolist(), strict=True
                )
            ]
        for position, window, (height, width, channels) in zip(
            self.positions.tolist(), windows, self.shapes.tolist(), strict=True
        ):
            data = self.encoded.rows[position]
            shape = (height, width, channels)
            found.append(Sample(position, data, read_header(data.data), window, shape))
        return found


def plain_jpegs(
    encoded: Encoded,
    scanned: ScannedJpegs,
    wanted: PixelFormat,
    regions: np.ndarray | None = None,
) -> PlainJpegs | None:
    """The plain images of a batch, if such images need no conversion to become what is wanted."""
    if wanted.color not in _COLORS or wanted.dtype != np.uint8:
        return None
    facts = scanned.facts
    if scanned.plain == len(facts):
        positions = _all(len(facts))
    else:
        positions = np.flatnonzero(facts[:, 3])
        facts = facts[positions]
    shapes = facts[:, :3].copy()
    shapes[:, 2] = channels = 1 if wanted.color == "GRAY" else 3
    if regions is not None:
        if len(positions) < len(regions):
            regions = regions[positions]
        shapes[:, :2] = regions[:, 2:] - regions[:, :2]
    return PlainJpegs(encoded, scanned, positions, channels, shapes, regions)


@dataclass(frozen=True, slots=True)
class PlainJob:
    """Plain images for the JPEG engines.

    `images`: what to decode. `targets`: uint64: where each of them is to be decoded to. `color`: as
    of `Job`.
    """

    images: PlainJpegs
    targets: np.ndarray
    color: str

    def tables(self) -> Tables:
        """The images as the JPEG engines take them."""
        scanned, positions = self.images.scanned, self.images.positions
        sources, sizes = scanned.addresses, scanned.sizes
        if len(positions) < len(sources):
            sources, sizes = sources[positions], sizes[positions]
        images = np.zeros(len(positions), IMAGE)
        images["channel"][:, 0] = self.targets
        images["pitch"][:, 0] = self.images.shapes[:, 1] * self.images.channels
        regions = None
        if self.images.regions is not None:
            regions = extents(self.images.regions)
            whole = self.images.whole()
            if whole.all():
                regions = None
            else:
                regions[whole] = 0, 0, -1, -1
        return Tables(sources, sizes, images, regions)

    def finish(self, queue: Queue, good: np.ndarray, wanted: PixelFormat) -> list[Sample]:
        """The images that were not decoded."""
        return [] if good.all() else self.images.only(~good).samples()
