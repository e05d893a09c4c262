"""Decode on the CPU with nvImageCodec: every format, whole images and regions, no driver needed.

It is the library that DALI decodes with, so pixels are equal bit for bit, and it skips what lies
outside of a region of a JPEG or TIFF image.
"""

from __future__ import annotations

import threading
from functools import cache, cached_property
from types import ModuleType
from typing import Any

import numpy as np

from penstock.kernels.cpu.decode.quiet_import import import_quietly

# What its extensions print when the libraries for decoding on a GPU are not installed.
_MISSING_GPU_LIBRARIES = (
    "Failed to load nvjpeg",
    "Failed to load nvtiff",
    "Failed to load nvjpeg2k",
    "Failed to load nvJPEG",
    "Failed to load nvTIFF",
    "If using nvImageCodec's Python distribution",
)

_SMALL_BYTES = 1 << 20
"""Images of so many bytes are decoded to memory of the thread, and copied. To tell nvImageCodec
of other memory takes the interpreter 20 to 30 microseconds, and a copy as long without it."""

# Its own reports about damaged files, and those of the OpenCV inside of it: we raise errors.
_SILENT = {"PYNVIMGCODEC_VERBOSITY": "0", "OPENCV_LOG_LEVEL": "SILENT"}


@cache
def module() -> ModuleType:
    """The module `nvidia.nvimgcodec`.

    Raises
    ------
    ImportError
        If it is not installed or does not load on this machine.
    """
    return import_quietly("nvidia.nvimgcodec", ignore=_MISSING_GPU_LIBRARIES, environment=_SILENT)


@cache
def decode_params(color: str) -> Any:
    """Parameters for pixels of the image's own type, as they are stored, in `color`."""
    nv = module()
    spec, sample_format = {
        "RGB": (nv.ColorSpec.SRGB, nv.SampleFormat.I_RGB),
        "BGR": (nv.ColorSpec.SRGB, nv.SampleFormat.I_BGR),
        "GRAY": (nv.ColorSpec.GRAY, nv.SampleFormat.I_Y),
        "NATIVE": (nv.ColorSpec.UNCHANGED, nv.SampleFormat.I_UNCHANGED),
    }[color]
    return nv.DecodeParams(
        apply_exif_orientation=False,
        color_spec=spec,
        sample_format=sample_format,
        allow_any_depth=True,
    )


class _Decoders(threading.local):
    """The decoders of one thread, and memory that they decode small images to.

    A decoder that two threads share returns wrong pixels.
    """

    def __init__(self) -> None:
        self.of: dict[bool, Any] = {}

    @cached_property
    def small(self) -> tuple[np.ndarray, Any]:
        """Memory, and what nvImageCodec knows it as: an image that takes any shape with room."""
        memory = np.empty(_SMALL_BYTES, np.uint8)
        return memory, module().as_image(memory.reshape(1, -1, 1))

    def get(self, fast_idct: bool) -> Any:
        decoder = self.of.get(fast_idct)
        if decoder is None:
            nv = module()
            decoder = self.of[fast_idct] = nv.Decoder(
                device_id=nv.NVIMGCODEC_DEVICE_CPU_ONLY,
                backends=[nv.Backend(nv.BackendKind.CPU_ONLY)],
                max_num_cpu_threads=1,
                options=":fancy_upsampling=1 :fast_idct=1" if fast_idct else "",
            )
        return decoder


_decoders = _Decoders()


def decode_into(
    out: np.ndarray,
    data: np.ndarray,
    color: str,
    *,
    fast_idct: bool,
    region: tuple[int, int, int, int] | None,
) -> bool:
    """Decode the image in `data` into `out`; False, with `out` undefined, if that is impossible.

    Parameters
    ----------
    out
        Contiguous HWC array of the image's own type.
    data
        Contiguous 1-D uint8 array.
    color
        ``"RGB"``, ``"BGR"``, ``"GRAY"``, or ``"NATIVE"`` for the channels as they are.
    region
        First row and column, and one past the last, of the image as stored; `None` for all of it.
    """
    nv = module()
    try:
        stream = nv.CodeStream(data)
        if region is not None:
            stream = stream.get_sub_code_stream(region=nv.Region(*region))
        small = out.dtype == np.uint8 and out.size <= _SMALL_BYTES
        memory, target = _decoders.small if small else (out, nv.as_image(out))
        image = _decoders.get(fast_idct).decode(stream, image=target, params=decode_params(color))
    except (RuntimeError, ValueError):
        return False
    if image is None or image.shape != out.shape:
        return False
    if small:
        np.copyto(out, memory[: out.size].reshape(out.shape))
    return True
