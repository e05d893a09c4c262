"""Small encoded images of every kind the decoders take, made on the spot.

Each function returns ``{name: bytes}``; names say format, variant and, after a dash, details.
"""

from __future__ import annotations

import functools
import io
import struct
import zlib

import cv2
import numpy as np
import simplejpeg
from PIL import Image, TiffImagePlugin


def picture(height: int = 37, width: int = 53, channels: int = 3, seed: int = 0) -> np.ndarray:
    """A uint8 HWC picture with gradients, edges and some noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    planes = []
    for k in range(channels):
        wave = 110 + 70 * np.sin(x / (5 + k) + k) + 60 * np.cos(y / (7 - k) + seed)
        wave[(x - width / 3) ** 2 + (y - height / 2) ** 2 < (height / 4) ** 2] += 60 - 50 * k
        planes.append(wave + rng.normal(0, 6, wave.shape))
    return np.clip(np.stack(planes, -1), 0, 255).astype(np.uint8)


def _saved(image: Image.Image, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, **options)
    return buffer.getvalue()


def _exif(orientation: int) -> bytes:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif.tobytes()


def _cv(extension: str, image: np.ndarray, *options: int) -> bytes:
    return cv2.imencode(extension, image, list(options))[1].tobytes()


@functools.cache
def jpegs() -> dict[str, bytes]:
    """JPEG: every subsampling, colour model, scan type and orientation."""
    rgb = Image.fromarray(picture())
    out = {
        f"jpeg-{name}": _saved(rgb, format="JPEG", quality=88, subsampling=name)
        for name in ("4:4:4", "4:2:2", "4:2:0")
    }
    for name in ("440", "411", "Gray"):
        out[f"jpeg-{name}"] = simplejpeg.encode_jpeg(picture(), 88, colorsubsampling=name)
    out["jpeg-optimized"] = _saved(rgb, format="JPEG", optimize=True)
    out["jpeg-restart"] = _saved(rgb, format="JPEG", restart_marker_rows=1)
    out["jpeg-rgb"] = _saved(rgb, format="JPEG", keep_rgb=True)
    for name in ("4:4:4", "4:2:0"):
        out[f"jpeg-progressive-{name}"] = _saved(
            rgb, format="JPEG", progressive=True, subsampling=name
        )
    gray = Image.fromarray(picture()[..., 1])
    out["jpeg-gray"] = _saved(gray, format="JPEG")
    out["jpeg-gray-progressive"] = _saved(gray, format="JPEG", progressive=True)
    cmyk = Image.fromarray(picture(channels=4), mode="CMYK")
    out["jpeg-cmyk"] = _saved(cmyk, format="JPEG")
    out["jpeg-cmyk-progressive"] = _saved(cmyk, format="JPEG", progressive=True)
    out["jpeg-ycck"] = simplejpeg.encode_jpeg(picture(channels=4), 88, "CMYK")
    for orientation in range(10):
        out[f"jpeg-exif{orientation}"] = _saved(rgb, format="JPEG", exif=_exif(orientation))
    out["jpeg-gray-exif6"] = _saved(gray, format="JPEG", exif=_exif(6))
    out["jpeg-cmyk-exif5"] = _saved(cmyk, format="JPEG", exif=_exif(5))
    for height, width in ((1, 1), (1, 17), (17, 1), (16, 16), (15, 33), (200, 300)):
        out[f"jpeg-{height}x{width}"] = _saved(
            Image.fromarray(picture(height, width)), format="JPEG", subsampling="4:2:0"
        )
    out["jpeg-trailing"] = out["jpeg-4:2:0"] + b"\0" * 100
    out["jpeg-comment"] = _saved(rgb, format="JPEG", comment=b"hello \xff\xd9 there")
    return out


def png(
    image: np.ndarray,
    bits: int,
    color: int,
    *,
    palette: bytes = b"",
    alpha: bytes = b"",
    exif: bytes = b"",
    extra: bytes = b"",
) -> bytes:
    """A PNG made by hand: `image` is (H, W, C) of samples below ``2**bits``, filter 0."""
    height, width = image.shape[:2]
    if bits == 16:
        rows = image.astype(">u2").reshape(height, -1).view(np.uint8)
    elif bits == 8:
        rows = image.astype(np.uint8).reshape(height, -1)
    else:
        shifts = np.arange(bits - 1, -1, -1)
        spread = (image.reshape(height, -1, 1) >> shifts) & 1
        rows = np.packbits(spread.reshape(height, -1).astype(np.uint8), axis=1)
    raw = np.concatenate([np.zeros((height, 1), np.uint8), rows], axis=1).tobytes()

    def chunk(name: bytes, data: bytes) -> bytes:
        check = zlib.crc32(name + data)
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", check)

    parts = [b"\x89PNG\r\n\x1a\n"]
    parts.append(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, color, 0, 0, 0)))
    parts.append(extra)
    if palette:
        parts.append(chunk(b"PLTE", palette))
    if alpha:
        parts.append(chunk(b"tRNS", alpha))
    if exif:
        parts.append(chunk(b"eXIf", exif))
    parts += [chunk(b"IDAT", zlib.compress(raw)), chunk(b"IEND", b"")]
    return b"".join(parts)


def picture16(channels: int = 3) -> np.ndarray:
    """A uint16 HWC picture that uses the lower bytes, too."""
    rng = np.random.default_rng(5)
    fine = rng.integers(0, 257, (37, 53, channels))
    return np.clip(picture(channels=channels).astype(np.int64) * 256 + fine, 0, 65535).astype(
        np.uint16
    )


@functools.cache
def pngs() -> dict[str, bytes]:
    """PNG: every colour type and depth, transparency, interlace, orientation."""
    out = {}
    for bits in (1, 2, 4, 8):
        gray = picture(channels=1) >> (8 - bits)
        out[f"png-gray{bits}"] = png(gray, bits, 0)
        colors = picture(1, 2**bits)[0].tobytes()
        out[f"png-palette{bits}"] = png(gray, bits, 3, palette=colors)
        out[f"png-palette{bits}-alpha"] = png(
            gray, bits, 3, palette=colors, alpha=bytes(range(2**bits))
        )
    for bits, make in ((8, lambda n: picture(channels=n)), (16, picture16)):
        for color, channels, name in ((0, 1, "gray"), (2, 3, "rgb"), (4, 2, "ga"), (6, 4, "rgba")):
            out[f"png-{name}{bits}"] = png(make(channels), bits, color)
    out["png-gray8-transparent"] = png(picture(channels=1), 8, 0, alpha=b"\0\x80")
    out["png-rgb8-transparent"] = png(picture(), 8, 2, alpha=b"\0\x80\0\x80\0\x80")
    out["png-exif6"] = png(picture(), 8, 2, exif=_exif(6)[6:])
    out["png-exif3"] = png(picture(), 8, 2, exif=_exif(3)[6:])
    out["png-pillow"] = _saved(Image.fromarray(picture()), format="PNG")
    out["png-1x1"] = png(picture(1, 1), 8, 2)
    return out


def _bmp(
    bits: int,
    rows: bytes,
    height: int,
    width: int,
    *,
    palette: bytes = b"",
    compression: int = 0,
    header: int = 40,
    masks: bytes = b"",
) -> bytes:
    if header == 12:
        info = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        info = struct.pack(
            "<IiiHHIIiiII",
            header,
            width,
            height,
            1,
            bits,
            compression,
            len(rows),
            2835,
            2835,
            len(palette) // 4,
            0,
        )
        info += masks if header == 40 else masks.ljust(header - 40, b"\0")
    offset = 14 + len(info) + len(palette)
    return struct.pack("<2sIHHI", b"BM", offset + len(rows), 0, 0, offset) + info + palette + rows


def _bmp_rows(values: np.ndarray) -> bytes:
    flat = values.reshape(values.shape[0], -1)
    pad = -flat.shape[1] % 4
    return np.pad(flat, ((0, 0), (0, pad))).tobytes()


@functools.cache
def bmps() -> dict[str, bytes]:
    """BMP: depths 1 to 32, palettes, run lengths, top-down rows, old headers."""
    image = picture()
    gray = image[..., 0]
    bgr = image[::-1, :, ::-1]
    height, width = gray.shape
    ramp = b"".join(bytes((i, i, i, 0)) for i in range(256))
    colors = b"".join(bytes((i, 255 - i, i // 2, 0)) for i in range(256))
    out = {
        "bmp-24": _bmp(24, _bmp_rows(bgr), height, width),
        "bmp-24-topdown": _bmp(24, _bmp_rows(bgr[::-1]), -height, width),
        "bmp-24-core": _bmp(24, _bmp_rows(bgr), height, width, header=12),
        "bmp-24-v5": _bmp(24, _bmp_rows(bgr), height, width, header=124),
        "bmp-8-gray": _bmp(8, _bmp_rows(gray[::-1]), height, width, palette=ramp),
        "bmp-8-color": _bmp(8, _bmp_rows(gray[::-1]), height, width, palette=colors),
        "bmp-32": _bmp(
            32,
            _bmp_rows(np.concatenate([bgr, 255 - bgr[..., :1]], -1)),
            height,
            width,
        ),
    }
    masks = struct.pack("<IIII", 0xFF0000, 0xFF00, 0xFF, 0xFF000000)
    out["bmp-32-alpha"] = _bmp(
        32,
        _bmp_rows(np.concatenate([bgr, 255 - bgr[..., :1]], -1)),
        height,
        width,
        compression=3,
        header=108,
        masks=masks,
    )
    packed = np.packbits(gray[::-1] > 128, axis=1)
    out["bmp-1"] = _bmp(1, _bmp_rows(packed), height, width, palette=b"\0\0\0\0\xff\xff\xff\0")
    out["bmp-1-color"] = _bmp(
        1, _bmp_rows(packed), height, width, palette=b"\x10\x20\x30\0\xff\x80\x40\0"
    )
    nibbles = gray[::-1, : width - 1] >> 4
    packed = (nibbles[:, ::2] << 4) | nibbles[:, 1::2]
    out["bmp-4"] = _bmp(4, _bmp_rows(packed), height, width - 1, palette=colors[: 16 * 4])
    words = (bgr[..., 2] >> 3).astype("<u2") << 10
    words |= (bgr[..., 1] >> 3).astype("<u2") << 5
    words |= (bgr[..., 0] >> 3).astype("<u2")
    out["bmp-16"] = _bmp(16, _bmp_rows(words.astype("<u2").view(np.uint8)), height, width)
    runs = b"".join(b"".join(bytes((1, int(v))) for v in row) + b"\0\0" for row in gray[::-1] >> 3)
    out["bmp-8-rle"] = _bmp(8, runs + b"\0\1", height, width, palette=colors, compression=1)
    out["bmp-1x1"] = _bmp(24, _bmp_rows(picture(1, 1)), 1, 1)
    return out


@functools.cache
def tiffs() -> dict[str, bytes]:
    """TIFF: depths, compressions, palettes, colour models, byte orders, orientations, pages."""
    image = picture()
    rgb = Image.fromarray(image)
    out = {}
    for name in ("raw", "tiff_lzw", "tiff_deflate", "packbits", "jpeg"):
        option = {} if name == "raw" else {"compression": name}
        out[f"tiff-rgb-{name}"] = _saved(rgb, format="TIFF", **option)
        out[f"tiff-gray-{name}"] = _saved(rgb.convert("L"), format="TIFF", **option)
    for mode in ("1", "P", "LA", "RGBA", "CMYK", "I;16", "I", "F"):
        source = (
            Image.fromarray(picture16(1)[..., 0])
            if mode == "I;16"
            else rgb.convert("L").convert(mode)
            if mode in "IF"
            else rgb.convert(mode)
        )
        out[f"tiff-{mode}"] = _saved(source, format="TIFF")
    out["tiff-alpha"] = _saved(Image.fromarray(picture(channels=4)), format="TIFF")
    out["tiff-group4"] = _saved(rgb.convert("1"), format="TIFF", compression="group4")
    for orientation in range(1, 9):
        tags = TiffImagePlugin.ImageFileDirectory_v2()
        tags[274] = orientation
        out[f"tiff-orientation{orientation}"] = _saved(rgb, format="TIFF", tiffinfo=tags)
    out["tiff-pages"] = _saved(
        rgb, format="TIFF", save_all=True, append_images=[rgb.rotate(180), rgb.convert("L")]
    )
    out["tiff-bigtiff"] = _saved(rgb, format="TIFF", big_tiff=True)
    out["tiff-rgb16"] = _cv(".tiff", picture16())
    out["tiff-rgb16-raw"] = _cv(".tiff", picture16(), cv2.IMWRITE_TIFF_COMPRESSION, 1)
    out["tiff-rgba16"] = _cv(".tiff", picture16(4))
    out["tiff-rgbf"] = _cv(".tiff", (image / np.float32(255)).astype(np.float32))
    out["tiff-bigendian"] = _tiff_big_endian(image)
    out["tiff-planar"] = _tiff_big_endian(image, planar=True)
    out["tiff-miniswhite"] = _tiff_big_endian(image[..., :1], photometric=0)
    out["tiff-1x1"] = _saved(Image.fromarray(picture(1, 1)), format="TIFF")
    return out


def _tiff_big_endian(image: np.ndarray, *, planar: bool = False, photometric: int = 2) -> bytes:
    """An uncompressed big-endian TIFF of uint8 samples, one strip (a plane)."""
    height, width, channels = image.shape
    planes = [image[..., k].tobytes() for k in range(channels)] if planar else [image.tobytes()]
    data_at = 8
    offsets = [data_at + sum(map(len, planes[:k])) for k in range(len(planes))]
    extra_at = data_at + sum(map(len, planes))
    extra_at += extra_at % 2
    extra = b""
    entries = []

    def entry(tag: int, kind: int, values: list[int]) -> None:
        nonlocal extra
        code = {3: "H", 4: "I"}[kind]
        packed = struct.pack(f">{len(values)}{code}", *values)
        if len(packed) > 4:
            where = struct.pack(">I", extra_at + len(extra))
            extra += packed
            packed = where
        entries.append(struct.pack(">HHI", tag, kind, len(values)) + packed.ljust(4, b"\0"))

    entry(256, 4, [width])
    entry(257, 4, [height])
    entry(258, 3, [8] * channels)
    entry(259, 3, [1])
    entry(262, 3, [photometric])
    entry(273, 4, offsets)
    entry(277, 3, [channels])
    entry(278, 4, [height])
    entry(279, 4, [len(p) for p in planes])
    entry(284, 3, [2 if planar else 1])
    body = b"".join(planes)
    body += b"\0" * (extra_at - data_at - len(body))
    directory = struct.pack(">H", len(entries)) + b"".join(entries) + struct.pack(">I", 0)
    head = struct.pack(">2sHI", b"MM", 42, extra_at + len(extra))
    return head + body + extra + directory


@functools.cache
def webps() -> dict[str, bytes]:
    """WebP: lossy, lossless, alpha, animation, metadata."""
    rgb = Image.fromarray(picture())
    rgba = Image.fromarray(picture(channels=4))
    return {
        "webp-lossy": _saved(rgb, format="WEBP", quality=80),
        "webp-lossless": _saved(rgb, format="WEBP", lossless=True),
        "webp-lossy-alpha": _saved(rgba, format="WEBP", quality=80),
        "webp-lossless-alpha": _saved(rgba, format="WEBP", lossless=True),
        "webp-exif6": _saved(rgb, format="WEBP", lossless=True, exif=_exif(6)),
        "webp-exif6-lossy": _saved(rgb, format="WEBP", exif=_exif(6)),
        "webp-animated": _saved(
            rgb, format="WEBP", save_all=True, append_images=[rgb.rotate(180)], duration=50
        ),
        "webp-1x1": _saved(Image.fromarray(picture(1, 1)), format="WEBP"),
    }


def _plain(values: np.ndarray) -> bytes:
    return b"\n".join(b" ".join(b"%d" % v for v in row.reshape(-1)) for row in values) + b"\n"


@functools.cache
def pnms() -> dict[str, bytes]:
    """PNM: P1 to P6, 8 and 16 bits, odd maxima, comments."""
    image = picture()
    gray = image[..., 1]
    bits = (gray > 128).astype(np.uint8)
    deep = picture16()
    return {
        "pnm-P1": b"P1\n53 37\n" + _plain(bits),
        "pnm-P2": b"P2\n53 37\n255\n" + _plain(gray),
        "pnm-P3": b"P3\n53 37\n255\n" + _plain(image),
        "pnm-P4": b"P4\n53 37\n" + np.packbits(bits, axis=1).tobytes(),
        "pnm-P5": b"P5\n53 37\n255\n" + gray.tobytes(),
        "pnm-P6": b"P6\n53 37\n255\n" + image.tobytes(),
        "pnm-P6-comment": b"P6\n# made here\n53 37\n# more\n255\n" + image.tobytes(),
        "pnm-P5-max100": b"P5\n53 37\n100\n" + (gray // 3).tobytes(),
        "pnm-P6-max100": b"P6\n53 37\n100\n" + (image // 3).tobytes(),
        "pnm-P5-16": b"P5\n53 37\n65535\n" + deep[..., 0].astype(">u2").tobytes(),
        "pnm-P6-16": b"P6\n53 37\n65535\n" + deep.astype(">u2").tobytes(),
        "pnm-P6-max1023": b"P6\n53 37\n1023\n" + (deep >> 6).astype(">u2").tobytes(),
        "pnm-P2-16": b"P2\n53 37\n65535\n" + _plain(deep[..., 0]),
        "pnm-P3-16": b"P3\n53 37\n65535\n" + _plain(deep),
    }


@functools.cache
def jpeg2000s() -> dict[str, bytes]:
    """JPEG 2000: boxed and bare code streams, gray to RGBA, 8 and 16 bits, lossy and lossless."""
    rgb = Image.fromarray(picture())
    return {
        "jp2-rgb": _saved(rgb, format="JPEG2000"),
        "jp2-lossy": _saved(
            rgb, format="JPEG2000", irreversible=True, quality_mode="dB", quality_layers=[40]
        ),
        "jp2-tiles": _saved(rgb, format="JPEG2000", tile_size=(16, 16)),
        "jp2-gray": _saved(rgb.convert("L"), format="JPEG2000"),
        "jp2-ga": _saved(rgb.convert("LA"), format="JPEG2000"),
        "jp2-rgba": _saved(Image.fromarray(picture(channels=4)), format="JPEG2000"),
        "jp2-gray16": _saved(Image.fromarray(picture16(1)[..., 0]), format="JPEG2000"),
        "jp2-rgb16": _cv(".jp2", picture16()),
        "j2k-rgb": _saved(rgb, format="JPEG2000", no_jp2=True),
        "j2k-gray": _saved(rgb.convert("L"), format="JPEG2000", no_jp2=True),
        "jp2-1x1": _saved(Image.fromarray(picture(1, 1)), format="JPEG2000"),
    }


def everything() -> dict[str, bytes]:
    """All of the above."""
    return {
        **jpegs(),
        **pngs(),
        **bmps(),
        **tiffs(),
        **webps(),
        **pnms(),
        **jpeg2000s(),
    }


def unsupported() -> dict[str, bytes]:
    """Formats that are none of the decoders' and data that is no image."""
    rgb = Image.fromarray(picture())
    return {
        "ico": _saved(rgb, format="ICO", sizes=[(16, 16)]),
        "mp4": b"\0\0\0\x20ftypisom" + bytes(40),
        "text": b"This is no image at all, only a line of text.\n",
        "zeros": bytes(1000),
        "empty": b"",
        "one-byte": b"\xff",
        "wav": b"RIFF\x24\x08\x00\x00WAVEfmt " + bytes(100),
    }
