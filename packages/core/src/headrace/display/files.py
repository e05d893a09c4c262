"""Pictures as files, by the suffixes of their names."""

from __future__ import annotations

import base64
from pathlib import Path

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu.opencv import cv2

SUFFIXES = (".png", ".jpg", ".jpeg", ".svg")


def checked_path(filename: object) -> Path:
    """The path of a picture, whose suffix says its format."""
    path = Path(str(filename))
    if path.suffix.lower() not in SUFFIXES:
        raise ArgumentValueError(
            f"`filename` is {str(path)!r}; it has to end in {', '.join(SUFFIXES[:-1])} or "
            f"{SUFFIXES[-1]}."
        )
    return path


def encoded(pixels: np.ndarray, suffix: str) -> bytes:
    """RGB pixels as the content of a file."""
    suffix = suffix.lower()
    if suffix == ".svg":
        height, width = pixels.shape[:2]
        data = base64.b64encode(encoded(pixels, ".png")).decode()
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}"><image width="{width}" height="{height}" '
            f'href="data:image/png;base64,{data}"/></svg>\n'
        ).encode()
    written = cv2().imencode(suffix, np.ascontiguousarray(pixels[..., ::-1]))[1]
    return bytes(written.tobytes())
