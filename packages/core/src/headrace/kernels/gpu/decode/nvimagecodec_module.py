"""nvImageCodec's Python binding, which decoders of a GPU are driven by."""

from __future__ import annotations

from functools import cache
from types import ModuleType
from typing import Any

from headrace.kernels.cpu.decode.quiet_import import import_quietly

# What its extensions print when the libraries for decoding on a GPU are not installed.
_MISSING_GPU_LIBRARIES = (
    "Failed to load nvjpeg",
    "Failed to load nvtiff",
    "Failed to load nvjpeg2k",
    "Failed to load nvJPEG",
    "Failed to load nvTIFF",
    "If using nvImageCodec's Python distribution",
)

# Its own reports about damaged files, and those of the OpenCV inside of it: we raise errors.
_SILENT = {"PYNVIMGCODEC_VERBOSITY": "0", "OPENCV_LOG_LEVEL": "SILENT"}


@cache
def module() -> ModuleType:
    """The module `nvidia.nvimgcodec`."""
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
