"""Decoders of nvImageCodec that decode into device memory.

JPEG that the engines do not take (see `headrace.kernels.gpu.decode.engines`) is decoded by nvJPEG's
hybrid decoder (Huffman decoding on the CPU, the rest on the GPU), JPEG 2000 by nvJPEG2000. Decoders
on the CPU are left out: `headrace.kernels.gpu.decode.host` does that work as the CPU operators do,
and a damaged JPEG 2000 would crash nvImageCodec 0.9 there.

A decoder belongs to one thread: two threads that share one get wrong pixels.

What is not documented and was found in its sources: outputs must be given with the stream that is
given to `decode`, else it waits for the other one; and regions are refused where chroma is to be
interpolated, since nvJPEG before 13.2 does that wrongly at their edges.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.cpu.decode.diagnosis import has_end_of_image
from headrace.kernels.cpu.decode.image_header import ImageHeader
from headrace.kernels.cpu.decode.stored import Region
from headrace.kernels.gpu.decode import nvimagecodec_module
from headrace.kernels.gpu.decode.options import DecoderOptions
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.runtime import Runtime

if TYPE_CHECKING:
    from headrace.kernels.gpu.decode.job import Job

_NAMES = {"jpeg": "JPEG", "jpeg2000": "JPEG 2000"}
NARROWEST_INTERPOLATED = 5
"""Narrower JPEG images, which have one or two columns of chroma, come out of nvJPEG 13 wrong where
chroma is to be interpolated: by up to 27 levels.
"""


def jpeg_for_gpu(data: np.ndarray, header: ImageHeader, options: DecoderOptions) -> bool:
    """True if `data` is a JPEG image that decoders of a GPU decode correctly if they accept it."""
    return (
        header.codec == "jpeg"
        and not header.variant
        and not header.unsupported
        and header.channels in (1, 3)
        and not (options.fancy_upsampling and header.width < NARROWEST_INTERPOLATED)
        # They make something up where a file is cut off.
        and has_end_of_image(data.data)
    )


class DecoderMemory:
    """Memory of the device as nvImageCodec takes it."""

    __slots__ = ("__cuda_array_interface__",)

    def __init__(self, address: int, shape: tuple[int, ...], typestr: str, stream: int) -> None:
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "typestr": typestr,
            "version": 3,
            "stream": stream,
        }


class DeviceDecoder:
    """Decodes batches on one device, for the thread that made it.

    `on_host`: whether decoded pixels come in memory of the host. `cuts`: whether regions can be
    decoded.
    """

    def __init__(
        self,
        runtime: Runtime,
        options: DecoderOptions,
        threads: int,
        kinds: tuple[str, ...] = ("GPU_ONLY", "HYBRID_CPU_GPU"),
    ) -> None:
        nv = self._nv = nvimagecodec_module.module()
        self._options = options
        self.on_host = runtime.xp is np
        self.cuts = self.on_host or not options.fancy_upsampling
        if self.on_host:
            self._decoder = nv.Decoder(
                device_id=nv.NVIMGCODEC_DEVICE_CPU_ONLY,
                backends=[nv.Backend(nv.BackendKind.CPU_ONLY)],
                max_num_cpu_threads=threads,
            )
        else:
            self._decoder = nv.Decoder(
                device_id=runtime.device_id,
                backends=[nv.Backend(getattr(nv.BackendKind, kind)) for kind in kinds],
                max_num_cpu_threads=threads,
                options=options.text(),
            )
        self._proven: set[str] = set()

    def takes(
        self, data: np.ndarray, header: ImageHeader, color: str, region: Region | None
    ) -> bool:
        """True if this decoder should be tried on the image, to be decoded to `color`, before the
        CPU.
        """
        if header.codec == "jpeg":
            if self.on_host and region is not None and region[3] - region[1] < 32:
                return False  # libjpeg-turbo would decode more columns; see the CPU's `stored`
            return jpeg_for_gpu(data, header, self._options)
        if header.codec == "jpeg2000" and not self.on_host:
            plain = not header.variant and not header.unsupported
            return plain and (header.channels, color) in ((1, "GRAY"), (3, "RGB"))
        return False

    def decode(self, queue: Queue, job: Job) -> list[bool]:
        """Queue the decoding of images as they are stored; for each, whether it was decoded."""
        stream = queue.stream
        encoded = [sample.data for sample in job.samples]
        shapes = [plan.shape for plan in job.plans]
        targets: list[Any]
        if self.on_host:
            targets = [queue.pinned.empty(plan.shape, plan.dtype) for plan in job.plans]
        else:
            targets = [
                DecoderMemory(place, plan.shape, plan.dtype.str, stream)
                for place, plan in zip(job.places, job.plans, strict=True)
            ]
        good, kept = self._decode(
            encoded, [plan.region for plan in job.plans], shapes, targets, job.color, stream
        )
        queue.keep(kept)
        if self.on_host:
            queue.keep(targets)
            for array, place in zip(targets, job.places, strict=True):
                queue.runtime.copy(place, array.ctypes.data, array.nbytes, stream)
        for codec in {s.header.codec for s, well in zip(job.samples, good, strict=True) if well}:
            self._proven.add(codec)
        return good

    def _decode(
        self,
        encoded: list[np.ndarray],
        regions: list[Region | None],
        shapes: list[tuple[int, int, int]],
        targets: list[Any],
        color: str,
        stream: int,
    ) -> tuple[list[bool], Any]:
        """For each image whether it was decoded, and what to keep until `stream` has come here."""
        nv = self._nv
        make, part = nv.CodeStream, nv.Region
        try:
            streams = [
                make(data)
                if region is None
                else make(data).get_sub_code_stream(region=part(*region))
                for data, region in zip(encoded, regions, strict=True)
            ]
            images = nv.as_images(targets, cuda_stream=stream)
            found = self._decoder.decode(
                streams,
                images=images,
                params=nvimagecodec_module.decode_params(color),
                cuda_stream=stream,
            )
        except (RuntimeError, ValueError):
            # One image that nvImageCodec reads otherwise than we do fails all of them.
            if len(encoded) == 1:
                return [False], None
            singles = [
                self._decode([data], [region], [shape], [target], color, stream)
                for data, region, shape, target in zip(
                    encoded, regions, shapes, targets, strict=True
                )
            ]
            return [good[0] for good, _ in singles], [kept for _, kept in singles]
        good = [
            image is not None and image.shape == shape
            for image, shape in zip(found, shapes, strict=True)
        ]
        return good, (encoded, streams, images)

    def note_rejected(self, codec: str) -> None:
        """Warn, once, if the device refuses good images of a format it should decode."""
        if codec in self._proven:
            return
        self._proven.add(codec)
        library = {"jpeg": "nvidia-nvjpeg", "jpeg2000": "nvidia-nvjpeg2k-cu13"}[codec]
        warn_once(
            f"The GPU decodes none of the first {_NAMES[codec]} images, so they are decoded on the "
            f"CPU, which is slower. Is {library} installed?"
        )


_warned: set[str] = set()


def warn_once(message: str) -> None:
    """Warn, unless that has been said before."""
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=2)
