"""Say in words why an image could not be decoded, after the fact."""

from __future__ import annotations

from headrace.kernels.cpu.decode import pillow_codecs
from headrace.kernels.cpu.decode.image_header import ImageHeader

_END_OF_IMAGE = b"\xff\xd9"
# Cameras append thumbnails and metadata; decoders do not mind.
_TAIL = 1 << 16


def has_end_of_image(data: memoryview) -> bool:
    """True if the JPEG file in `data` has an end-of-image marker at or near its end."""
    return data[-2:] == _END_OF_IMAGE or _END_OF_IMAGE in bytes(data[-_TAIL:])


def reason(data: memoryview, header: ImageHeader, color: str) -> str:
    """A sentence on why `data`, whose header is fine, could not be decoded to `color`."""
    size = len(data)
    what = f"{header.height} x {header.width} {_NAMES[header.codec]} image"
    if header.codec == "jpeg" and not has_end_of_image(data):
        return f"The {what} ends early, after {size} bytes: it has no end-of-image marker."
    if color == "NATIVE":
        return (
            f"The {what} ({size} bytes) cannot be decoded to its own {header.channels} channels; "
            "ask for another `output_type` than `ANY_DATA`, or it is cut off or damaged."
        )
    return f"The {what} ({size} bytes) is cut off or damaged: its pixels cannot be decoded."


_NAMES = {
    "jpeg": "JPEG",
    "png": "PNG",
    "tiff": "TIFF",
    "webp": "WebP",
    "bmp": "BMP",
    "pnm": "PNM",
    "jpeg2000": "JPEG 2000",
} | pillow_codecs.NAMES
