"""Decoders of nvImageCodec that decode into device memory.

JPEG is decoded by the GPU's JPEG engines and, as many images as they are not given, by nvJPEG's
hybrid decoder (Huffman decoding on the CPU, the rest on the GPU); JPEG 2000 by nvJPEG2000. Decoders
on the CPU are left out: `penstock.kernels.gpu.decode.host` does that work as the CPU operators do,
and a damaged JPEG 2000 would crash nvImageCodec 0.9 there.

A decoder belongs to one thread: two threads that share one get wrong pixels.

What is not documented and was found in its sources: outputs must be given with the stream that is
given to `decode`, else it waits for the other one; the hardware decoder writes its outputs without
regard to the stream (see `penstock.tensors.gpu.pool`), and waits on the host for the batch before.
"""

from __future__ import annotations

import threading
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from penstock.kernels.cpu.decode import nvimagecodec
from penstock.kernels.cpu.decode.diagnosis import has_end_of_image
from penstock.kernels.cpu.decode.image_header import ImageHeader
from penstock.kernels.cpu.decode.stored import Region
from penstock.kernels.gpu.decode.options import DecoderOptions

if TYPE_CHECKING:
    from penstock.tensors.gpu.runtime import Runtime

_NAMES = {"jpeg": "JPEG", "jpeg2000": "JPEG 2000"}


class DeviceMemory:
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

    Parameters
    ----------
    runtime
        The device. On one whose memory is memory of the host, nvImageCodec's own decoders for the
        CPU stand in for those of the GPU.
    options
        How to decode.
    threads
        How many threads of the CPU may take part; 0 for as many as there are processors.
    batch_size
        How many images to expect at once.
    kinds
        Names of the only kinds of decoders to use, as nvImageCodec has them; for measurements.

    Raises
    ------
    ImportError
        If nvImageCodec is not installed.
    RuntimeError
        If it has no decoder for the device.

    Attributes
    ----------
    on_host
        Whether decoded pixels come in memory of the host.
    """

    def __init__(
        self,
        runtime: Runtime,
        options: DecoderOptions,
        threads: int,
        batch_size: int,
        kinds: tuple[str, ...] = (),
    ) -> None:
        nv = self._nv = nvimagecodec.module()
        self.on_host = runtime.xp is np
        if self.on_host:
            self._decoder = nv.Decoder(
                device_id=nv.NVIMGCODEC_DEVICE_CPU_ONLY,
                backends=[nv.Backend(nv.BackendKind.CPU_ONLY)],
                max_num_cpu_threads=threads,
            )
        else:
            self._decoder = nv.Decoder(
                device_id=runtime.device_id,
                backends=[nv.Backend(getattr(nv.BackendKind, kind)) for kind in kinds]
                or _backends(nv, options.hardware_load),
                max_num_cpu_threads=threads,
                options=options.text(batch_size),
            )
        self._proven: set[str] = set()

    def takes(
        self, data: np.ndarray, header: ImageHeader, color: str, region: Region | None
    ) -> bool:
        """Whether to try this image, to be decoded to `color`, here rather than on the CPU."""
        if header.variant or header.unsupported:
            return False
        if header.codec == "jpeg":
            if self.on_host and region is not None and region[3] - region[1] < 32:
                return False  # libjpeg-turbo would decode more columns; see the CPU's `stored`
            # Decoders of the GPU make something up where a file is cut off.
            return header.channels in (1, 3) and has_end_of_image(data.data)
        if header.codec == "jpeg2000" and not self.on_host:
            return (header.channels, color) in ((1, "GRAY"), (3, "RGB"))
        return False

    def decode(
        self,
        encoded: list[np.ndarray],
        regions: list[Region | None],
        shapes: list[tuple[int, int, int]],
        targets: list[Any],
        color: str,
        stream: int,
    ) -> tuple[list[bool], Any]:
        """Queue the decoding of images as they are stored.

        Parameters
        ----------
        encoded
            Contiguous 1-D uint8 arrays.
        regions
            What of the stored image is wanted; `None` for all of it.
        shapes
            What comes out, HWC.
        targets
            Where it goes: `DeviceMemory`, or arrays if the decoder works `on_host`.
        color
            See `penstock.kernels.cpu.decode.nvimagecodec.decode_into`.

        Returns
        -------
        For each image whether it was decoded, and what to keep until `stream` has come here.
        """
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
                params=nvimagecodec.decode_params(color),
                cuda_stream=stream,
            )
        except (RuntimeError, ValueError):
            # One image that nvImageCodec reads otherwise than we do fails all of them.
            if len(encoded) == 1:
                return [False], None
            return self._one_by_one(encoded, regions, shapes, targets, color, stream)
        good = [
            image is not None and image.shape == shape
            for image, shape in zip(found, shapes, strict=True)
        ]
        return good, (encoded, streams, images)

    def _one_by_one(
        self,
        encoded: list[np.ndarray],
        regions: list[Region | None],
        shapes: list[tuple[int, int, int]],
        targets: list[Any],
        color: str,
        stream: int,
    ) -> tuple[list[bool], Any]:
        singles = [
            self.decode([data], [region], [shape], [target], color, stream)
            for data, region, shape, target in zip(encoded, regions, shapes, targets, strict=True)
        ]
        return [good[0] for good, _ in singles], [kept for _, kept in singles]

    def note_success(self, codec: str) -> None:
        """Remember that the device decodes images of this format."""
        self._proven.add(codec)

    def note_rejected(self, codec: str) -> None:
        """Warn, once, if the device refuses good images of a format it should decode."""
        if codec in self._proven:
            return
        self._proven.add(codec)
        library = {"jpeg": "nvidia-nvjpeg", "jpeg2000": "nvidia-nvjpeg2k-cu13"}[codec]
        _warn_once(
            f"The GPU decodes none of the first {_NAMES[codec]} images, so they are decoded on the "
            f"CPU, which is slower. Is {library} installed?"
        )


def _backends(nv: Any, hardware_load: float) -> list[Any]:
    kinds, policies = nv.BackendKind, nv.LoadHintPolicy
    backends = [nv.Backend(kinds.GPU_ONLY), nv.Backend(kinds.HYBRID_CPU_GPU)]
    if hardware_load < 0:
        policy, share = policies.ADAPTIVE_MINIMIZE_IDLE_TIME, 0.65
    else:
        policy, share = policies.FIXED, min(hardware_load, 1.0)
    if share > 0:
        backends.insert(0, nv.Backend(kinds.HW_GPU_ONLY, load_hint=share, load_hint_policy=policy))
    return backends


class _OfThread(threading.local):
    """What decodes for one thread."""

    def __init__(self) -> None:
        self.decoders: WeakKeyDictionary[Runtime, dict[Any, DeviceDecoder | None]]
        self.decoders = WeakKeyDictionary()
        self.threads: WeakKeyDictionary[Runtime, dict[int, ThreadPoolExecutor]]
        self.threads = WeakKeyDictionary()


_of_thread = _OfThread()
_warned: set[str] = set()


def decoder_of(
    runtime: Runtime, options: DecoderOptions, threads: int, batch_size: int
) -> DeviceDecoder | None:
    """The calling thread's decoder for a device, made at first use; `None` if there is none."""
    key = (options, threads)
    decoders = _of_thread.decoders.setdefault(runtime, {})
    if key not in decoders:
        try:
            decoders[key] = DeviceDecoder(runtime, options, threads, batch_size)
        except (ImportError, OSError, RuntimeError) as error:
            decoders[key] = None
            _warn_once(
                f"nvImageCodec has no decoder for GPU {runtime.device_id} ({error}): images are "
                "decoded on the CPU, which is slower. It needs what `penstock[cuda13]` installs "
                "and a driver for CUDA 13."
            )
    return decoders[key]


def host_threads(runtime: Runtime, count: int) -> ThreadPoolExecutor | None:
    """The calling thread's helpers for decoding on the CPU; `None` if it is to do it itself.

    They may ask `runtime` for memory.
    """
    if count == 1:
        return None
    by_count = _of_thread.threads.setdefault(runtime, {})
    threads = by_count.get(count)
    if threads is None:
        threads = by_count[count] = ThreadPoolExecutor(
            count or None, "penstock-decode", _activate, (weakref.ref(runtime),)
        )
    return threads


def _activate(runtime: weakref.ref[Runtime]) -> None:
    found = runtime()
    if found is not None:
        found.activate()


def _warn_once(message: str) -> None:
    if message not in _warned:
        _warned.add(message)
        warnings.warn(message, RuntimeWarning, stacklevel=2)
