"""Whole, plain JPEG images that need no conversion: most batches are made of nothing else.

What `Job` does for each image is done here for all of them by NumPy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.cpu.decode.header import read_header
from penstock.kernels.cpu.decode.jpeg_scan import ScannedJpegs
from penstock.kernels.cpu.decode.pixels import Wanted
from penstock.kernels.gpu.decode.host import Sample
from penstock.kernels.gpu.decode.nvjpeg import IMAGE, Tables

if TYPE_CHECKING:
    from penstock.tensors.gpu.queue import Queue

_COLORS = ("RGB", "BGR", "GRAY")


@dataclass(frozen=True, slots=True)
class PlainJpegs:
    """Plain images of a batch.

    Attributes
    ----------
    rows
        All encoded images of the batch.
    scanned
        What is known of them.
    positions
        int64: which of them are meant.
    channels
        Of the decoded images.
    """

    rows: list[np.ndarray]
    scanned: ScannedJpegs
    positions: np.ndarray
    channels: int

    @property
    def shapes(self) -> np.ndarray:
        """Shapes of the decoded images, int64 ``(images, 3)``."""
        shapes = self.scanned.facts[self.positions, :3].astype(np.int64)
        shapes[:, 2] = self.channels
        return shapes

    def only(self, chosen: np.ndarray) -> PlainJpegs:
        """Those for which `chosen`, one value an image, is true."""
        return PlainJpegs(self.rows, self.scanned, self.positions[chosen], self.channels)

    def samples(self) -> list[Sample]:
        """The same, one by one."""
        found = []
        for position in self.positions.tolist():
            data = self.rows[position]
            header = read_header(data.data)
            shape = (header.height, header.width, self.channels)
            found.append(Sample(position, data, header, None, shape))
        return found


def plain_jpegs(rows: list[np.ndarray], scanned: ScannedJpegs, wanted: Wanted) -> PlainJpegs | None:
    """The plain images among `rows`, if such images need no conversion to become what is wanted."""
    if wanted.color not in _COLORS or wanted.dtype != np.uint8:
        return None
    positions = np.flatnonzero(scanned.facts[:, 3])
    return PlainJpegs(list(rows), scanned, positions, 1 if wanted.color == "GRAY" else 3)


@dataclass(frozen=True, slots=True)
class PlainJob:
    """Plain images for the JPEG engines.

    Attributes
    ----------
    images
        What to decode.
    targets
        uint64: where each of them is to be decoded to.
    color
        As of `Job`.
    """

    images: PlainJpegs
    targets: np.ndarray
    color: str

    def tables(self) -> Tables:
        """The images as the JPEG engines take them."""
        scanned, positions = self.images.scanned, self.images.positions
        images = np.zeros(len(positions), IMAGE)
        images["channel"][:, 0] = self.targets
        images["pitch"][:, 0] = scanned.facts[positions, 1] * self.images.channels
        return Tables(scanned.addresses[positions], scanned.sizes[positions], images, None)

    def finish(self, queue: Queue, good: np.ndarray, wanted: Wanted) -> list[Sample]:
        """The images that were not decoded."""
        return [] if good.all() else self.images.only(~good).samples()
