from __future__ import annotations

import numpy as np
import pytest
import simplejpeg

from headrace import types
from tests.support.encoded_images import jpegs, picture, pngs
from tests.support.gpu.decoding import check_like_cpu, check_pixels, decodable, encoded
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

COLORS = (types.RGB, types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA)
DTYPES = (
    types.UINT8,
    types.UINT16,
    types.UINT32,
    types.INT8,
    types.INT16,
    types.INT32,
    types.FLOAT,
)


@pytest.mark.parametrize("color", COLORS, ids=lambda c: c.name)
def test_colors(color):
    check_like_cpu("decoders.image", decodable(output_type=color), output_type=color)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=lambda t: t.name)
def test_element_types(dtype):
    check_like_cpu("decoders.image", decodable(), dtype=dtype)


@pytest.mark.parametrize("dtype", DTYPES[1:], ids=lambda t: t.name)
def test_element_types_of_ycbcr(dtype):
    # OpenCV multiplies and adds at once in most pixels of a row, but not in the last few.
    images = {**jpegs(), **pngs()}
    check_like_cpu("decoders.image", images, output_type=types.YCbCr, dtype=dtype, ulps=1)


def test_orientation_is_left_alone():
    check_like_cpu("decoders.image", decodable(), adjust_orientation=False)


def test_images_of_one_size_lie_side_by_side():
    images = {f"jpeg-{i}": jpegs()["jpeg-4:2:0"] for i in range(5)}
    got = check_like_cpu("decoders.image", images)
    assert len({g.shape for g in got}) == 1


def test_a_large_batch():
    names = list(jpegs())
    images = {f"{names[i % len(names)]}-{i}": jpegs()[names[i % len(names)]] for i in range(300)}
    check_like_cpu("decoders.image", images)


def test_one_image():
    check_like_cpu("decoders.image", {"jpeg": jpegs()["jpeg-4:2:2"]})
    check_like_cpu("decoders.image", {"png": pngs()["png-rgb16"]}, dtype=types.UINT16)


def test_bytes_with_gaps():
    rows = [np.repeat(row, 2)[::2] for row in encoded(jpegs())]
    whole = run_gpu_operator("decoders.image", encoded(jpegs()))
    for got, want in zip(run_gpu_operator("decoders.image", rows), whole, strict=True):
        np.testing.assert_array_equal(got, want)


def test_former_names():
    images = encoded(jpegs())
    want = run_gpu_operator("decoders.image", images, dtype=types.FLOAT)
    got = run_gpu_operator("experimental.decoders.image", images, dtype=types.FLOAT)
    for ours, theirs in zip(got, want, strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_two_batches_on_one_stream_do_not_disturb_each_other():
    first = encoded({f"jpeg-{i}": jpegs()["jpeg-200x300"] for i in range(4)})
    second = [
        np.frombuffer(simplejpeg.encode_jpeg(picture(200, 300, seed=i), 90), np.uint8)
        for i in range(4)
    ]
    for rows in (first, second, first):
        want = run_cpu_operator_on_batch("decoders.image", rows)
        got = run_gpu_operator("decoders.image", rows, jpeg_fancy_upsampling=True)
        for ours, theirs in zip(got, want, strict=True):
            check_pixels("jpeg", ours, theirs, exact=False)


@pytest.mark.gpu
def test_chroma_is_repeated_unless_it_is_to_be_interpolated():
    for name in ("jpeg-4:2:0", "jpeg-4:2:2", "jpeg-440"):
        data = jpegs()[name]
        want = simplejpeg.decode_jpeg(data, fastupsample=True)
        (got,) = run_gpu_operator("decoders.image", [np.frombuffer(data, np.uint8)])
        check_pixels(name, got, want, exact=False)


@pytest.mark.gpu
@pytest.mark.parametrize("load", [0.0, 0.5, 1.0])
def test_shares_of_the_hardware_decoder(load):
    check_like_cpu("decoders.image", jpegs(), hw_decoder_load=load)


@pytest.mark.gpu
def test_the_same_pixels_every_time():
    images = {f"jpeg-{i}": jpegs()["jpeg-4:2:0"] for i in range(40)}
    first = run_gpu_operator("decoders.image", encoded(images), hw_decoder_load=0.5)
    for _ in range(5):
        again = run_gpu_operator("decoders.image", encoded(images), hw_decoder_load=0.5)
        for ours, theirs in zip(again, first, strict=True):
            np.testing.assert_array_equal(ours, theirs)
