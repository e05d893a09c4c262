"""Transfer of images from a decoder of the device to their places in a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from headrace.kernels.cpu.decode.exif import UPRIGHT, stored_region, turned
from headrace.kernels.cpu.decode.pixels import PixelFormat
from headrace.kernels.cpu.decode.stored import Region
from headrace.kernels.gpu.decode.convert import DecodedImages, convert
from headrace.kernels.gpu.decode.host import Sample
from headrace.kernels.gpu.decode.nvjpeg import IMAGE, Tables, extents
from headrace.tensors.gpu.queue import Queue

_ALIGNMENT = 64


class DecodePlan(NamedTuple):
    """Steps from one encoded image to its place in the batch."""

    region: Region | None
    """Region of the stored image to decode; `None` for all of it."""
    shape: tuple[int, int, int]
    """Of what is decoded, HWC."""
    dtype: np.dtype
    """Of what is decoded."""
    window: Region
    """Part of the decoded pixels that is wanted."""
    orientation: int
    """Orientation that is still to be undone."""
    is_final: bool
    """True if decoded pixels need no conversion."""

    @property
    def size_bytes(self) -> int:
        """Length of what is decoded."""
        height, width, channels = self.shape
        return height * width * channels * self.dtype.itemsize


def plan(sample: Sample, wanted: PixelFormat, channels: int, *, cuts: bool) -> DecodePlan:
    """Plan the steps of an image of so many decoded channels to its place."""
    _, _, header, region, (height, width, _) = sample
    native = header.dtype
    assert native is not None
    orientation = header.orientation if wanted.adjust_orientation else UPRIGHT
    final = orientation == UPRIGHT and native == wanted.dtype and wanted.color != "YCbCr"
    if orientation != UPRIGHT:
        if region is not None:
            region = stored_region(region, *header.size(True), orientation)
        if turned(orientation):
            height, width = width, height
    window = (0, 0, height, width)
    if region is not None and not cuts:
        window, region, final = region, None, False
        height, width = header.height, header.width
    return DecodePlan(region, (height, width, channels), native, window, orientation, final)


@dataclass(frozen=True, slots=True)
class Job:
    """Images for one decoder, of one colour.

    `samples`, `plans`: what to decode, and how. `places`: for each image the address where it is to
    be decoded to. `targets`: for each image the address of its place in the batch. `color`:
    ``"RGB"``, ``"BGR"`` or ``"GRAY"``.
    """

    samples: list[Sample]
    plans: list[DecodePlan]
    places: list[int]
    targets: list[int]
    color: str

    @classmethod
    def of(
        cls,
        queue: Queue,
        samples: list[Sample],
        color: str,
        wanted: PixelFormat,
        addresses: list[int],
        *,
        cuts: bool,
    ) -> Job:
        """The job of decoding `samples` to `color`; `addresses` are those of the whole batch."""
        channels = 1 if color == "GRAY" else 3
        plans = [plan(sample, wanted, channels, cuts=cuts) for sample in samples]
        targets = [addresses[sample.position] for sample in samples]
        places = list(targets)
        unfinished = [i for i, p in enumerate(plans) if not p.is_final]
        if unfinished:
            sizes = np.array([plans[i].size_bytes for i in unfinished], np.int64)
            sizes = -(-sizes // _ALIGNMENT) * _ALIGNMENT
            between = queue.empty(sizes[:, np.newaxis], np.uint8, quiesced=True)
            queue.keep(between)
            for i, place in zip(unfinished, between.pointers.tolist(), strict=True):
                places[i] = place
        return cls(samples, plans, places, targets, color)

    def tables(self) -> Tables:
        """The images as the JPEG engines take them."""
        sources = np.array([s.data.ctypes.data for s in self.samples], np.uint64)
        sizes = np.array([s.data.size for s in self.samples], np.uint64)
        images = np.zeros(len(self.plans), IMAGE)
        images["channel"][:, 0] = self.places
        images["pitch"][:, 0] = [p.shape[1] * p.shape[2] for p in self.plans]
        regions = [p.region for p in self.plans]
        return Tables(sources, sizes, images, extents(regions) if any(regions) else None)

    def finish(
        self, queue: Queue, good: list[bool] | np.ndarray, wanted: PixelFormat
    ) -> list[Sample]:
        """Queue what follows decoding; return the samples that were not decoded."""
        waiting: dict[np.dtype, list[DecodedImages]] = {}
        for p, place, target, well in zip(self.plans, self.places, self.targets, good, strict=True):
            if p.is_final or not well:
                continue
            top, left, bottom, right = p.window
            _, row, channels = p.shape
            begin = place + (top * row + left) * channels * p.dtype.itemsize
            image = DecodedImages(
                begin, target, bottom - top, right - left, channels, p.orientation, row
            )
            waiting.setdefault(p.dtype, []).append(image)
        for native, images in waiting.items():
            convert(queue, images, native, wanted.dtype, ycbcr=wanted.color == "YCbCr")
        if all(good):
            return []
        return [sample for sample, well in zip(self.samples, good, strict=True) if not well]
