"""Headers of images that Pillow writes at random: extents and channels are those Pillow reads."""

from __future__ import annotations

import io

import numpy as np
import pytest
from PIL import Image, ImageOps

from headrace.kernels.cpu.decode.header import read_header

MODES = {
    "JPEG": ("L", "RGB", "CMYK"),
    "PNG": ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"),
    "WEBP": ("L", "RGB", "RGBA"),
    "TIFF": ("1", "L", "LA", "P", "RGB", "RGBA", "CMYK", "I;16", "F", "YCbCr"),
    "BMP": ("1", "L", "P", "RGB"),
    "PPM": ("1", "L", "RGB", "I;16"),
    "JPEG2000": ("L", "LA", "RGB", "RGBA", "I;16"),
}
BANDS = {"LA": 2, "P": 3, "RGB": 3, "YCbCr": 3, "RGBA": 4, "CMYK": 4}


def saved(rng: np.random.Generator, kind: str, mode: str) -> bytes:
    height, width = (int(extent) for extent in rng.integers(1, 70, 2))
    image = Image.fromarray(rng.integers(0, 256, (height, width, 3), np.uint8))
    if mode == "I;16":
        image = Image.fromarray(rng.integers(0, 65535, (height, width), np.uint16))
    elif mode == "F":
        image = image.convert("L").convert("F")
    else:
        image = image.convert(mode)
    orientation = int(rng.integers(0, 10))
    options = {}
    if kind == "TIFF":
        packings = [None, "tiff_lzw", "tiff_adobe_deflate", "packbits"]
        options = {"compression": packings[rng.integers(4)], "big_tiff": bool(rng.integers(2))}
        if 1 <= orientation <= 8:
            options["tiffinfo"] = {274: orientation}
    elif kind in ("JPEG", "PNG", "WEBP"):
        exif = Image.Exif()
        exif[0x112] = orientation
        options = {"exif": exif.tobytes()} if rng.random() < 0.7 else {}
    if kind == "JPEG":
        options |= {"progressive": bool(rng.integers(2)), "comment": rng.bytes(30)}
        options |= {"subsampling": int(rng.integers(3))} if mode != "L" else {}
        options |= {"restart_marker_blocks": 3} if rng.random() < 0.3 else {}
    elif kind == "WEBP":
        options["lossless"] = bool(rng.integers(2))
    elif kind == "JPEG2000":
        options["no_jp2"] = bool(rng.integers(2))
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


@pytest.mark.parametrize("kind", MODES)
def test_extents_and_channels(kind):
    rng = np.random.default_rng(0)
    for mode in MODES[kind]:
        for _ in range(15):
            data = saved(rng, kind, mode)
            image = Image.open(io.BytesIO(data))
            upright = ImageOps.exif_transpose(image)
            header = read_header(memoryview(data))
            assert header.size(adjust_orientation=True) == (upright.height, upright.width)
            if kind != "TIFF":  # which Pillow turns by itself
                assert header.size(adjust_orientation=False) == (image.height, image.width)
            assert header.channels == BANDS.get(image.mode, 1), mode
