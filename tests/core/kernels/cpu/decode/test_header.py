from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
import simplejpeg
from PIL import Image

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.exif import orientation_of, stored_region, upright
from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.cpu.decode.rotate import rotate_into
from tests.support.encoded_images import everything, jpeg2000s, jpegs, pngs, webps


def header(data):
    return read_header(memoryview(data))


@pytest.mark.parametrize("name", list(everything()))
def test_sizes_are_those_that_pillow_sees(name):
    data = everything()[name]
    found = header(data)
    try:
        with Image.open(io.BytesIO(data)) as image:
            width, height = image.size
    except Exception:
        pytest.skip("Pillow cannot read it")
    if found.codec == "tiff" and found.size(True) != found.size(False):
        assert {found.height, found.width} == {height, width}  # Pillow may turn TIFF at opening
    else:
        assert (found.height, found.width) == (height, width)


def test_any_beginning_of_a_file_is_read_or_refused():
    for name in everything():
        data = everything()[name]
        whole = header(data)
        for size in [*range(0, min(len(data), 200), 3), len(data) // 2]:
            try:
                found = header(data[:size])
            except BadSampleError:
                continue
            assert found[:5] == whole[:5], name


# What decoders must know besides.


def test_kinds_of_jpegs():
    variants = {name: header(data).variant for name, data in jpegs().items()}
    assert variants.pop("jpeg-rgb") == "rgb"
    for name, variant in variants.items():
        assert variant == ("cmyk" if "cmyk" in name or "ycck" in name else "")


def test_sampling_of_baseline_jpegs():
    found = {name: header(data).sampling for name, data in jpegs().items()}
    for name in ("4:4:4", "4:2:2", "4:2:0", "gray", "rgb"):
        assert found[f"jpeg-{name}"] == {"rgb": "4:4:4"}.get(name, name)
    assert found["jpeg-440"] == "4:4:0"
    for name, sampling in found.items():
        if any(kind in name for kind in ("progressive", "411", "cmyk", "ycck")):
            assert not sampling
    assert not any(header(data).sampling for data in pngs().values())


def test_a_baseline_jpeg_in_several_scans_has_no_sampling():
    data = bytearray(jpegs()["jpeg-4:2:0"])
    scan = data.index(b"\xff\xda")
    data[scan + 4] = 1
    assert not header(bytes(data)).sampling
    assert not header(bytes(data[:scan])).sampling


def with_segments(data, *segments):
    """The JPEG with APPn segments, given by number and content, in place of those it has."""
    position = 2
    while data[position + 1] & 0xF0 == 0xE0:
        position += 2 + int.from_bytes(data[position + 2 : position + 4], "big")
    added = b"".join(
        struct.pack(">BBH", 0xFF, 0xE0 + number, 2 + len(content)) + content
        for number, content in segments
    )
    return data[:2] + added + data[position:]


JFIF = (0, b"JFIF\0\1\1\0\0\1\0\1\0\0")


def adobe(color):
    return (14, b"Adobe\0\x64\0\0\0\0" + bytes([color]))


@pytest.mark.parametrize(
    ("name", "segments", "variant"),
    [
        ("jpeg-4:4:4", (), ""),
        ("jpeg-4:4:4", (adobe(0),), "rgb"),
        ("jpeg-4:4:4", (adobe(1),), ""),
        ("jpeg-4:4:4", (JFIF, adobe(0)), ""),
        ("jpeg-4:4:4", (adobe(0), (1, b"JFIF\0")), "rgb"),
        ("jpeg-rgb", (), "rgb"),
        ("jpeg-rgb", (adobe(0),), "rgb"),
        ("jpeg-rgb", (adobe(1),), ""),
        ("jpeg-rgb", (JFIF,), ""),
        ("jpeg-gray", (adobe(0),), ""),
    ],
)
def test_whose_components_are_colours(name, segments, variant):
    data = with_segments(jpegs()[name], *segments)
    assert header(data).variant == variant
    if name != "jpeg-gray":
        # libjpeg's own view: RGB components come out as they are.
        ours = simplejpeg.decode_jpeg(data)
        theirs = simplejpeg.decode_jpeg(with_segments(jpegs()[name], adobe(0)))
        assert np.array_equal(ours, theirs) == (variant == "rgb")


def test_kinds_of_jpeg_2000():
    variants = {name: header(data).variant for name, data in jpeg2000s().items()}
    for name, variant in variants.items():
        assert variant == ("special" if name in ("jp2-ga", "jp2-rgba") else "")
    plain = jpeg2000s()["jp2-rgb"]
    color = plain.index(b"colr")
    sycc = plain[: color + 7] + (18).to_bytes(4, "big") + plain[color + 11 :]
    profile = plain[: color + 4] + b"\2" + plain[color + 5 :]
    size = plain.index(b"\xff\x4f\xff\x51")
    deep = plain[: size + 42] + bytes([11]) + plain[size + 43 :]
    subsampled = plain[: size + 46] + b"\2\2" + plain[size + 48 :]
    for data in (sycc, profile, deep, subsampled):
        assert header(data).variant == "special"
        assert header(data)[1:3] == header(plain)[1:3]


# EXIF.


def tiff_block(*entries, order="<", magic=42):
    body = b"".join(
        struct.pack(f"{order}HHI", tag, kind, count) + value.ljust(4, b"\0")
        for tag, kind, count, value in entries
    )
    mark = b"II" if order == "<" else b"MM"
    return mark + struct.pack(f"{order}HIH", magic, 8, len(entries)) + body + bytes(4)


SIX = (0x112, 3, 1, b"\6\0")


@pytest.mark.parametrize(
    ("block", "expected"),
    [
        (tiff_block(SIX), 6),
        (tiff_block((0x112, 3, 1, b"\0\6"), order=">"), 6),
        (tiff_block((0x112, 4, 1, b"\6\0\0\0")), 6),
        (tiff_block((0x112, 1, 1, b"\6")), 6),
        (tiff_block((0x112, 3, 2, b"\6\0")), 6),
        (tiff_block((0x100, 3, 1, b"\1\0"), SIX), 6),
        (tiff_block(SIX, (0x112, 3, 1, b"\3\0")), 6),
        (tiff_block(SIX)[:20], 6),
        (tiff_block(SIX)[:19], 0),
        (tiff_block((0x112, 3, 1, b"\x09\0")), 1),
        (tiff_block((0x112, 2, 1, b"\6\0")), 1),
        (tiff_block((0x100, 3, 1, b"\1\0")), 0),
        (tiff_block(SIX, magic=41), 0),
        (b"XX" + tiff_block(SIX)[2:], 0),
        (b"II", 0),
        (b"", 0),
    ],
)
def test_orientation_in_exif(block, expected):
    assert orientation_of(block) == expected


def jpeg_with(*blocks, behind_frame=False):
    data = jpegs()["jpeg-4:2:0"]
    at = data.index(b"\xff\xda") if behind_frame else 2
    segments = b""
    for block in blocks:
        payload = b"Exif\0\0" + block
        segments += b"\xff\xe1" + struct.pack(">H", len(payload) + 2) + payload
    return data[:at] + segments + data[at:]


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (jpeg_with(tiff_block(SIX)), 6),
        (jpeg_with(tiff_block(SIX), behind_frame=True), 6),
        (jpeg_with(tiff_block(SIX), tiff_block((0x112, 3, 1, b"\3\0"))), 3),
        (jpeg_with(tiff_block(SIX), tiff_block((0x100, 3, 1, b"\3\0"))), 6),
        (jpeg_with(tiff_block(SIX)).replace(b"Exif\0\0", b"Exif\0x"), 1),
        (jpeg_with(tiff_block(SIX)).replace(b"\xff\xe1", b"\xff\xff\xff\xe1"), 6),
        (jpeg_with(b""), 1),
    ],
)
def test_which_exif_block_of_a_jpeg_counts(data, expected):
    assert header(data).orientation == expected


def test_exif_behind_the_pixels_of_a_png():
    block = tiff_block(SIX)
    chunk = b"eXIf" + block
    chunk = struct.pack(">I", len(block)) + chunk + struct.pack(">I", zlib.crc32(chunk))
    data = pngs()["png-rgb8"]
    at = data.rindex(b"IEND") - 4
    assert header(data[:at] + chunk + data[at:]).orientation == 6


def test_exif_of_a_webp_needs_its_flag():
    data = webps()["webp-exif6-lossy"]
    assert header(data).orientation == 6
    assert header(data[:20] + bytes([data[20] & ~8]) + data[21:]).orientation == 1


@pytest.mark.sweep
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_turning(orientation, channels):
    rng = np.random.default_rng(orientation)
    for height, width in ((4, 7), (1, 3), (1, 1)):
        image = rng.integers(0, 65536, (height, width, channels)).astype(np.uint16)
        expected = upright(image, orientation)
        out = np.empty(expected.shape, image.dtype)
        rotate_into(out, image, orientation)
        np.testing.assert_array_equal(out, expected)
        rows, columns = expected.shape[:2]
        for _ in range(5):
            y0, x0 = int(rng.integers(rows)), int(rng.integers(columns))
            y1, x1 = int(rng.integers(y0, rows)) + 1, int(rng.integers(x0, columns)) + 1
            a, b, c, d = stored_region((y0, x0, y1, x1), rows, columns, orientation)
            part = upright(image[a:c, b:d], orientation)
            np.testing.assert_array_equal(part, expected[y0:y1, x0:x1])


# Headers that lie.


@pytest.mark.parametrize(
    "size", [(65535, 65535), (0, 53), (37, 0)], ids=["huge", "no rows", "no columns"]
)
def test_impossible_jpeg_sizes(size):
    data = bytearray(jpegs()["jpeg-4:2:0"])
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", *size)
    with pytest.raises(BadSampleError, match=r"promises|impossible"):
        header(bytes(data))


def test_impossible_tiff_sizes():
    tiff = everything()["tiff-rgb-raw"]
    width = struct.pack("<HHI", 256, 4, 1)
    wide = tiff.replace(width + struct.pack("<I", 53), width + b"\xff" * 4)
    assert wide != tiff
    with pytest.raises(BadSampleError, match="impossible"):
        header(wide)


def test_rubbish_between_jpeg_segments():
    data = jpegs()["jpeg-4:2:0"]
    with pytest.raises(BadSampleError, match="byte 20"):
        header(data[:20] + b"abc" + data[20:])
