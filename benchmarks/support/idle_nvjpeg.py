"""nvJPEG for a GPU that does nothing: every image is decoded at once, to whatever was there."""

from __future__ import annotations

import ctypes
from typing import Any

from headrace.kernels.gpu.decode import decoders, nvjpeg
from headrace.kernels.gpu.decode.engines import JpegEngines

_LOOPED = (
    "nvjpegDecodeBatchedInitialize",
    "nvjpegDecodeBatched",
    "nvjpegDecodeBatchedEx",
    "nvjpegDecodeParamsSetROI",
)
"""What is called for each batch, or for each image."""


class IdleNvJpeg:
    """The library as `headrace.kernels.gpu.decode.nvjpeg.Functions` has it."""

    def __init__(self) -> None:
        library = ctypes.PyDLL(None)
        for name in _LOOPED:
            function = library.pthread_mutexattr_destroy  # returns 0
            function.argtypes = None
            setattr(self, name, function)
        self._made = 0

    def __getattr__(self, name: str) -> Any:
        if name.endswith(("Create", "CreateEx")):
            return self._create
        return {
            "nvjpegGetHardwareDecoderInfo": _seven_engines,
            "nvjpegDecodeBatchedSupported": _supported,
        }.get(name, _succeed)

    def _create(self, *args: Any) -> int:
        self._made += 1
        args[-1]._obj.value = self._made
        return 0


def _succeed(*_: Any) -> int:
    return 0


def _seven_engines(handle: Any, engines: Any, cores: Any) -> int:
    engines._obj.value = 7
    cores._obj.value = 1
    return 0


def _supported(handle: Any, stream: Any, answer: Any) -> int:
    answer._obj.value = 0
    return 0


def install_idle_nvjpeg() -> None:
    """Let JPEG engines be such, in this process."""
    library = IdleNvJpeg()
    nvjpeg.functions = lambda: library  # type: ignore[assignment, return-value]
    decoders.make_engines = JpegEngines  # type: ignore[assignment]
