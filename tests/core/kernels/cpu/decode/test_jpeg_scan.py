"""The compiled look at headers against the reader of headers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.diagnosis import has_end_of_image
from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.cpu.decode.jpeg_scan import plain_header, scan_jpegs
from tests.support.encoded_images import everything, jpegs, unsupported

PLAIN = ("4:4:4", "4:2:2", "4:2:0", "440", "gray", "Gray", "optimized", "restart", "200x300")


def row(data: bytes) -> np.ndarray:
    return np.frombuffer(data, np.uint8)


def check(rows: list[np.ndarray]) -> list[bool]:
    """What is plain, which has been compared."""
    scanned = scan_jpegs(rows)
    found = scanned.headers()
    for one, address, size, header in zip(
        rows, scanned.addresses.tolist(), scanned.sizes.tolist(), found, strict=True
    ):
        assert (address, size) == (one.ctypes.data, one.size)
        assert plain_header(one.copy()) == header
        if header is not None:
            assert header == read_header(one.data)
            assert has_end_of_image(one.data)
            assert header.sampling
            assert header.orientation == 1
    return [header is not None for header in found]


def test_files_of_every_kind():
    images = {**everything(), **unsupported()}
    plain = {
        name
        for name, is_plain in zip(images, check([row(d) for d in images.values()]), strict=True)
        if is_plain
    }
    assert {f"jpeg-{name}" for name in PLAIN} <= plain
    assert all(name.startswith("jpeg") for name in plain)
    for kind in ("progressive", "411", "cmyk", "ycck", "rgb", "exif", "trailing"):
        assert not any(kind in name for name in plain)


def test_beginnings_of_files():
    for name in ("jpeg-4:2:0", "jpeg-gray", "jpeg-comment"):
        data = jpegs()[name]
        check([row(data[:n]) for n in range(1, min(len(data), 700))])
        assert not any(check([row(data[:n] + b"\xff\xd9") for n in range(1, 100)]))


@settings(max_examples=300)
@given(
    st.sampled_from(sorted(jpegs())),
    st.lists(st.tuples(st.integers(0, 700), st.integers(0, 255)), max_size=4),
)
def test_damaged_files(name, changes):
    data = row(jpegs()[name]).copy()
    for position, value in changes:
        data[position % data.size] = value
    try:
        read_header(data.data)
    except BadSampleError:
        assert check_refused(data)
        return
    check([data])


def check_refused(data: np.ndarray) -> bool:
    return scan_jpegs([data]).headers() == [None]


def test_bytes_with_gaps_are_left_alone():
    scanned = scan_jpegs([np.repeat(row(jpegs()["jpeg-4:2:0"]), 2)[::2], row(jpegs()["jpeg-gray"])])
    assert scanned.sizes[0] == 0
    assert [h is None for h in scanned.headers()] == [True, False]


def test_no_files():
    assert scan_jpegs([]).headers() == []


@pytest.mark.parametrize("ids", [b"RGB", b"\x01\x02\x03", b"\x00\x01\x02"])
def test_names_of_components(ids):
    data = bytearray(jpegs()["jpeg-4:4:4"])
    frame, scan = data.index(b"\xff\xc0"), data.index(b"\xff\xda")
    data[frame + 10 : frame + 19 : 3] = ids
    data[scan + 5 : scan + 11 : 2] = ids
    assert check([row(bytes(data))]) == [ids != b"RGB"]
