"""The decoders that a thread has for a device, and which of them gets an image."""

from __future__ import annotations

import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from headrace.kernels.gpu.decode.engines import JpegEngines
from headrace.kernels.gpu.decode.host import Sample
from headrace.kernels.gpu.decode.nvimagecodec import (
    NARROWEST_INTERPOLATED,
    DeviceDecoder,
    jpeg_for_gpu,
    warn_once,
)
from headrace.kernels.gpu.decode.options import DecoderOptions
from headrace.kernels.gpu.decode.plain import PlainJpegs
from headrace.tensors.gpu.runtime import Runtime


class Decoders:
    """The decoders of one thread for one device and one way to decode, made at first use."""

    def __init__(self, runtime: Runtime, options: DecoderOptions, threads: int) -> None:
        self._runtime = runtime
        self._options = options
        self._threads = threads
        share = options.hardware_load
        self._share = 1.0 if share is None else min(max(share, 0.0), 1.0)
        self._engines: JpegEngines | None = None
        self._has_engines = self._share > 0
        self._others: DeviceDecoder | None = None
        self._has_others = True
        self._batch_size = 1
        self._eligible = 0

    def begin(self, batch_size: int) -> None:
        """Begin a batch of so many samples."""
        self._batch_size = batch_size
        self._eligible = 0

    def for_engines(self, images: PlainJpegs) -> tuple[JpegEngines | None, np.ndarray]:
        """The engines, if they get all they can decode, and which of `images` these are."""
        engines = self._the_engines() if self._share == 1 and len(images.positions) else None
        if engines is None:
            return None, np.zeros(len(images.positions), bool)
        chosen = engines.take(images)
        if self._options.fancy_upsampling:
            chosen &= images.shapes[:, 1] >= NARROWEST_INTERPOLATED
        return engines, chosen

    def choose(self, sample: Sample, color: str) -> JpegEngines | DeviceDecoder | None:
        """Choose the decoder of the batch's next sample, to `color`; `None` for the CPU.

        It depends on the batch alone: the share of the engines is spread evenly over those of its
        images that they could decode.
        """
        _, data, header, region, _ = sample
        if (
            self._has_engines
            and jpeg_for_gpu(data, header, self._options)
            and (engines := self._the_engines()) is not None
            and engines.takes(data, header)
        ):
            before, self._eligible = self._eligible, self._eligible + 1
            if int(self._eligible * self._share) > int(before * self._share):
                return engines
        others = self._the_others()
        if others is not None and others.takes(data, header, color, region):
            return others
        return None

    def _the_engines(self) -> JpegEngines | None:
        if self._engines is None and self._has_engines:
            self._engines = make_engines(self._runtime, self._options, self._batch_size)
            self._has_engines = self._engines is not None
        return self._engines

    def _the_others(self) -> DeviceDecoder | None:
        if self._others is None and self._has_others:
            try:
                self._others = DeviceDecoder(self._runtime, self._options, self._threads)
            except (ImportError, OSError, RuntimeError) as error:
                self._has_others = False
                warn_once(
                    f"nvImageCodec has no decoder for GPU {self._runtime.device_id} ({error}): "
                    "images are decoded on the CPU, which is slower. It needs what "
                    "`headrace[cuda13]` installs and a driver for CUDA 13."
                )
        return self._others


def make_engines(runtime: Runtime, options: DecoderOptions, batch_size: int) -> JpegEngines | None:
    """The JPEG engines of a device, if it has any."""
    if runtime.xp is np:
        return None  # its memory is memory of the host
    try:
        return JpegEngines(runtime, options, batch_size)
    except (ImportError, OSError, RuntimeError):
        return None  # `DeviceDecoder` does their work, and warns if it cannot


class _ThreadDecoders(threading.local):
    """Decoders of one thread."""

    def __init__(self) -> None:
        self.decoders: WeakKeyDictionary[Runtime, dict[Any, Decoders]] = WeakKeyDictionary()
        self.helpers: WeakKeyDictionary[Runtime, dict[str, ThreadPoolExecutor]]
        self.helpers = WeakKeyDictionary()


_of_thread = _ThreadDecoders()


def decoders_of(runtime: Runtime, options: DecoderOptions, threads: int) -> Decoders:
    """The calling thread's decoders for a device."""
    decoders = _of_thread.decoders.setdefault(runtime, {})
    found = decoders.get((options, threads))
    if found is None:
        found = decoders[options, threads] = Decoders(runtime, options, threads)
    return found


def host_threads(runtime: Runtime, count: int) -> ThreadPoolExecutor | None:
    """The calling thread's helpers for decoding on the CPU; `None` if it is to do it itself.

    They may ask `runtime` for memory.
    """
    return None if count == 1 else _helpers(runtime, f"headrace-decode-{count}", count or None)


def _helpers(runtime: Runtime, name: str, count: int | None) -> ThreadPoolExecutor:
    by_name = _of_thread.helpers.setdefault(runtime, {})
    threads = by_name.get(name)
    if threads is None:
        threads = by_name[name] = ThreadPoolExecutor(
            count, name, _activate, (weakref.ref(runtime),)
        )
    return threads


def _activate(runtime: weakref.ref[Runtime]) -> None:
    found = runtime()
    if found is not None:
        found.activate()
