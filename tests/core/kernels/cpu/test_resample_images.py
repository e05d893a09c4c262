"""Several images in one call: the same bits as one at a time, and what is left to that way."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import numpy as np
import pytest

from headrace.kernels.cpu import half, resample
from headrace.kernels.cpu.decode.backend import has_nvimagecodec
from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.cpu.decode.pixels import PixelFormat, decode
from tests.support.encoded_images import jpegs
from tests.support.images import encoded, picture

if not has_nvimagecodec():
    pytest.skip("nvImageCodec is not installed", allow_module_level=True)

from headrace.kernels.cpu.resample_images import IMAGE, can_make, resampling_loop

U8, F32 = np.dtype(np.uint8), np.dtype(np.float32)
MEAN, FACTOR = np.float32([120, 110, 100]), np.float32([1 / 58, 1 / 57, 1 / 0.5])
NORMALIZATION = np.tile(MEAN, 16), np.tile(FACTOR, 16)
FILES = [encoded(120 + 31 * k, 150 - 17 * k, seed=k) for k in range(6)]
WIDE = encoded(24, 6000, seed=9)


def temp(shape, dtype):
    return np.full(shape, 7, dtype)


def resample_images(*args, **keywords):
    """Which of these images could be made, by this thread alone."""
    part, good = resampling_loop(*args, **keywords)
    part(np.zeros(1, np.int64), temp)
    return good


def image(data, out, rows, columns, *, top=0, left=0, mirror=False, complete=False):
    """A record of a JPEG file, or of pixels."""
    if data.ndim == 3:
        size, (height, width) = 0, data.shape[:2]
    else:
        header = read_header(data.data)
        size, height, width = data.size, header.height, header.width
    here = data.ctypes.data
    return (here, size, height, width, top, left, complete, mirror, rows, columns, out.ctypes.data)


def one_by_one(data, out, rows, columns, top, left, mirror, *, antialias, color="RGB", **keywords):
    """The same by the ways of a single image; `out` is HWC."""
    height, width, _ = out.shape
    taps = resample.planned_taps(rows, 0, height, antialias, stepwise=True)
    beside = resample.planned_taps(columns, 0, width, antialias, stepwise=False, mirror=mirror)
    region = (top + taps.low, left + beside.low, top + taps.high, left + beside.high)
    if data.ndim == 3:
        y0, x0, y1, x1 = region
        source = data[y0:y1, x0:x1]
    else:
        source = decode(data, read_header(data.data), PixelFormat(color, U8), region, temp, temp)
    resample.resample_image(source, taps.low, beside.low, taps, beside, out, temp, **keywords)


def axis(extent, size, kind, begin=0, length=None, step=1):
    return (extent, size, 0.25, extent - 0.5, kind, begin, length or size, step)


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("planar", [True, False])
@pytest.mark.parametrize("dtype", [np.float32, np.uint8, np.int8, np.float16])
@pytest.mark.parametrize("decoded", [False, True])
def test_the_same_bits_as_one_at_a_time(antialias, planar, dtype, decoded):
    dtype = np.dtype(dtype)
    assert can_make(dtype) is (dtype != np.float16 or half.available())
    if not can_make(dtype):
        pytest.skip("no hardware for float16")
    rng = np.random.default_rng(3)
    datas = [picture(90 + 13 * k, 140 - 9 * k, seed=k) for k in range(6)] if decoded else FILES
    wholes = [d.shape[:2] if decoded else read_header(d.data)[1:3] for d in datas]
    shapes = [(40, 56, 3), (7, 5, 3), (1, 1, 3), (160, 40, 3), (33, 300, 3), (16, 16, 3)]
    shape = [(3, h, w) if planar else (h, w, c) for h, w, c in shapes]
    outs, wanted = ([np.zeros(s, dtype) for s in shape] for _ in range(2))
    records, others = [], []
    for k, (data, (height, width)) in enumerate(zip(datas, wholes, strict=True)):
        top, left = int(rng.integers(0, height // 2)), int(rng.integers(0, width // 2))
        if k == 3:
            left, width = width - 4, width  # hardly a column
        h, w, _ = shapes[k]
        kind = k % 5
        rows = axis(height - top, 2 * h, kind, 3 * h // 2, h, -1)
        columns = axis(width - left, w + 3, kind, 2, w)
        mirror = bool(k % 2)
        records.append(image(data, outs[k], rows, columns, top=top, left=left, mirror=mirror))
        others.append((data, rows, columns, top, left, mirror))
    normalized = dtype != np.uint8
    keywords = {
        "rounds_to": U8,
        "normalization": NORMALIZATION if normalized else None,
        "antialias": antialias,
    }
    good = resample_images(np.array(records, IMAGE), 3, "RGB", dtype, planar=planar, **keywords)
    assert good.all()
    for own, other in zip(wanted, others, strict=True):
        one_by_one(other[0], own.transpose(1, 2, 0) if planar else own, *other[1:], **keywords)
    for one, other in zip(outs, wanted, strict=True):
        assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("decoded", [False, True])
def test_several_threads_in_one_loop(decoded):
    size, keywords = 200, {"antialias": True, "rounds_to": U8}
    datas = [picture(151, 65, seed=k) for k in range(6)] if decoded else FILES
    rows, columns = axis(120, 31, 1), axis(65, 22, 1)
    wanted, outs = (np.zeros((size, 31, 22, 3), np.uint8) for _ in range(2))
    alone, table = (
        np.array([image(datas[k % 6], made[k], rows, columns) for k in range(size)], IMAGE)
        for made in (wanted, outs)
    )
    assert resample_images(alone, 3, "RGB", U8, **keywords).all()
    part, good = resampling_loop(table, 3, "RGB", U8, **keywords)
    taken, all_here = np.zeros(1, np.int64), Barrier(4)

    def take_part(_):
        all_here.wait()
        part(taken, temp)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(take_part, range(4)))
    assert good.all()
    assert taken[0] == size + 4
    assert outs.tobytes() == wanted.tobytes()


@pytest.mark.parametrize("color", ["RGB", "BGR", "GRAY"])
def test_wide_images_are_made_in_parts(color):
    channels = 1 if color == "GRAY" else 3
    rows, columns = axis(24, 20, 1), axis(6000, 700, 1)
    one, other = (np.zeros((20, 700, channels), np.float32) for _ in range(2))
    table = np.array([image(WIDE, one, rows, columns)], IMAGE)
    assert resample_images(table, channels, color, F32, antialias=True).all()
    one_by_one(WIDE, other, rows, columns, 0, 0, False, antialias=True, color=color)
    assert one.tobytes() == other.tobytes()


@pytest.mark.parametrize("columns", [1, 2, 3, 5])
def test_regions_of_hardly_a_column(columns):
    data = FILES[1]
    header = read_header(data.data)
    for left in range(0, header.width - columns, 7):
        rows, beside = axis(header.height, 20, 0), axis(columns, 2 * columns, 0)
        one, other = (np.zeros((20, 2 * columns, 3), np.uint8) for _ in range(2))
        table = np.array([image(data, one, rows, beside, left=left)], IMAGE)
        assert resample_images(table, 3, "RGB", U8, antialias=True, rounds_to=U8).all()
        one_by_one(data, other, rows, beside, 0, left, False, antialias=True, rounds_to=U8)
        assert one.tobytes() == other.tobytes()


def test_what_is_no_good_is_left_and_the_others_are_made():
    data = FILES[0]
    header = read_header(data.data)
    files = {
        "good": data,
        "no end": data[: data.size - 2].copy(),
        "cut off": data[: data.size // 3].copy(),
        "no file": np.zeros(4000, np.uint8),
        "of another size": FILES[1],
        "inks": np.frombuffer(jpegs()["jpeg-cmyk"], np.uint8).copy(),
    }
    rows, columns = axis(header.height, 10, 1, 2, 5), axis(header.width, 12, 1, 3, 6)
    outs = [np.zeros((5, 6, 3), np.uint8) for _ in range(2 * len(files))]
    records = []
    for k, file in enumerate([*files.values()] * 2):
        complete = k >= len(files)
        record = list(image(data, outs[k], rows, columns, complete=complete))
        record[:2] = file.ctypes.data, file.size
        records.append(tuple(record))
    table = np.array(records, IMAGE)
    good = resample_images(table, 3, "RGB", U8, antialias=True, rounds_to=U8)
    made = {name: (bool(a), bool(b)) for name, a, b in zip(files, good, good[6:], strict=False)}
    assert made["good"] == (True, True)
    # The end is not needed for what is wanted, unless it has to be there.
    assert made["no end"][1] is False
    assert [made[n] for n in ("no file", "of another size", "inks")] == [(False, False)] * 3
    assert outs[0].tobytes() == outs[6].tobytes()
    assert outs[0].any()
    assert not outs[3].any()
