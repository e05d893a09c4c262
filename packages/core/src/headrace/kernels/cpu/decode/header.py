"""Find out what an encoded image is from its first bytes."""

from __future__ import annotations

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode import (
    bmp_header,
    jpeg2000_header,
    jpeg_header,
    pillow_codecs,
    png_header,
    pnm_header,
    tiff_header,
    webp_header,
)
from headrace.kernels.cpu.decode.image_header import ImageHeader

_LONGEST_SIGNATURE = 16

# More than any format's decoder takes; such sizes come from damaged headers.
MOST_PIXELS = 1 << 31

_FORMATS = "JPEG, PNG, TIFF, WebP, BMP, PNM, JPEG 2000, GIF, AVIF and HEIC"

_NOT_TAKEN = (
    (b"\0\0\x01\0", "a Windows icon"),
    (b"\xff\x0a", "a JPEG XL code stream"),
    (b"\0\0\0\x0cJXL ", "a JPEG XL file"),
    (b"8BPS", "a Photoshop file"),
    (b"qoif", "a QOI image"),
    (b"P7\n", "a PAM image"),
    (b"Pf", "a PFM image"),
    (b"PF", "a PFM image"),
    (b"v/1\x01", "an OpenEXR image"),
    (b"\x93NUMPY", "a NumPy array; read it with `readers.numpy`"),
    (b"%PDF", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive"),
    (b"\x1f\x8b", "gzip-compressed data"),
    (b"<", "text, perhaps an HTML or SVG page"),
    (b"{", "text, perhaps JSON"),
)


def read_header(data: memoryview) -> ImageHeader:
    """Header of the image in the bytes `data`."""
    start = bytes(data[:_LONGEST_SIGNATURE])
    if start[:3] == jpeg_header.SIGNATURE:
        header = jpeg_header.read(data)
    elif start[:8] == png_header.SIGNATURE:
        header = png_header.read(data)
    elif webp_header.is_webp(start):
        header = webp_header.read(data)
    elif start[:4] in tiff_header.SIGNATURES:
        header = tiff_header.read(data)
    elif start[:12] == jpeg2000_header.FILE_SIGNATURE:
        header = jpeg2000_header.read_file(data)
    elif start[:4] == jpeg2000_header.STREAM_SIGNATURE:
        header = jpeg2000_header.read_stream(data)
    elif pnm_header.is_pnm(start):
        header = pnm_header.read(data)
    elif start[:2] == bmp_header.SIGNATURE:
        header = bmp_header.read(data)
    elif codec := pillow_codecs.codec_of(start):
        header = pillow_codecs.read(data, codec)
    else:
        raise BadSampleError(_unknown(start, len(data)))
    height, width = header.height, header.width
    if not (height > 0 and width > 0 and header.channels > 0 and height * width <= MOST_PIXELS):
        raise BadSampleError(
            f"The {header.codec} header describes an impossible image: {header.height} rows, "
            f"{header.width} columns, {header.channels} channels."
        )
    return header


def _unknown(start: bytes, size: int) -> str:
    """Reason why data that begins with `start` is no image that can be decoded."""
    if not size:
        return "The data is empty."
    if start[4:8] == b"ftyp":
        brand = start[8:12].decode("latin-1")
        what = f"an ISO media file (MP4, MOV, ...) of brand {brand!r}"
    else:
        what = next((name for magic, name in _NOT_TAKEN if start.startswith(magic)), "")
    if not what and not any(start):
        what = "only zeros"
    shown = start[:12].hex(" ")
    if what:
        return f"The data ({size} bytes) starts with {shown}: {what}. Taken are {_FORMATS}."
    return f"The data ({size} bytes) starts with {shown}, which is no known image format."
