"""Encoded images as operators get them: flat arrays of bytes, with a header."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu.decode import jpeg_scan
from headrace.kernels.cpu.decode.header import read_header

if TYPE_CHECKING:
    from headrace.kernels.cpu.decode.image_header import ImageHeader


def check_encoded(ndim: int | None) -> None:
    """Raise `ShapeError` unless data with so many dimensions can be the bytes of a file."""
    if ndim not in (None, 1):
        raise ShapeError(
            f"Encoded images must be flat arrays of bytes, got {ndim}-dimensional data. "
            "Flatten it with `fn.reshape(..., shape=[-1])`, or drop the decoder if the data is "
            "decoded already."
        )


def open_all(encoded: Sequence[np.ndarray]) -> list[tuple[np.ndarray, ImageHeader]]:
    """The bytes of encoded images, contiguous, and their headers."""
    if len(encoded) == 1:
        return [open_encoded(encoded[0])]
    for each in encoded:
        check_encoded(each.ndim)
    plain = jpeg_scan.scan_jpegs(list(encoded)).headers()
    return [
        _open_other(each) if header is None else (each, header)
        for each, header in zip(encoded, plain, strict=True)
    ]


def open_encoded(encoded: np.ndarray) -> tuple[np.ndarray, ImageHeader]:
    """The bytes of one encoded image, contiguous, and their header."""
    check_encoded(encoded.ndim)
    data = encoded if encoded.flags.c_contiguous else np.ascontiguousarray(encoded)
    # Files that were read are such arrays; others would have it compiled once more.
    if type(data) is np.ndarray and data.flags.writeable and data.dtype == np.uint8:
        header = jpeg_scan.plain_header(data)
        if header is not None:
            return data, header
    return _open_other(data)


def _open_other(encoded: np.ndarray) -> tuple[np.ndarray, ImageHeader]:
    """The same for any file."""
    data = encoded if encoded.flags.c_contiguous else np.ascontiguousarray(encoded)
    return data, read_header(data.data)
