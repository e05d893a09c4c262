"""Images of which only that part was decoded, and copied to the GPU, which counts there.

The only reader of an edge that is copied to the GPU says, in its `reads`, which pixels of an image
it is going to look at: a random resized crop has drawn its window before any pixel exists. A
decoder on the CPU makes just these (`DecodeImage.decode_part`), and the copy carries no others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.tensors.gpu.batch import DeviceBatch, LazyBatch

if TYPE_CHECKING:
    from penstock.tensors.gpu.queue import Queue

Region = tuple[int, int, int, int]
"""First row and column, and one past the last row and column."""


class PartsOfImages(LazyBatch):
    """A batch of HWC images that are in device memory in part: only for whom they were made.

    Attributes
    ----------
    parts
        What is there of each image.
    origins
        int64 ``(samples, 2)``: which row and column of its image a part begins with.
    shapes
        Those of the whole images.
    """

    __slots__ = ("dtype", "origins", "owners", "parts", "shapes")

    def __init__(self, parts: DeviceBatch, places: np.ndarray) -> None:
        """Parts at `places`, int64 ``(samples, 4)``: first row and column; the image's extents."""
        self.parts = parts
        self.dtype = parts.dtype
        self.owners: tuple[Any, ...] = parts.owners
        self.origins = places[:, :2]
        self.shapes = parts.shapes.copy()
        self.shapes[:, :2] = places[:, 2:]

    def materialise(self, queue: Queue) -> Any:
        """Return the batch itself: nobody else reads it."""
        return self
