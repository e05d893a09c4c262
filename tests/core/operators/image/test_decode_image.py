from __future__ import annotations

import threading

import numpy as np
import pytest
import simplejpeg

from headrace import Pipeline, fn
from headrace.errors import BadSampleError, DataTypeError, ShapeError
from headrace.executor.cpu.batch import BatchBuffer
from headrace.kernels.cpu.decode import backend, nvimagecodec_library, stored
from headrace.types import DALIDataType, DALIImageType
from tests.support.encoded_images import (
    everything,
    jpegs,
    picture,
    picture16,
    png,
    pngs,
    tiffs,
    unsupported,
    webps,
)
from tests.support.lazy import lazy
from tests.support.run_operator import run_operator

BACK_ENDS = ("nvimagecodec", "opencv")


@pytest.fixture(params=BACK_ENDS)
def back_end(request, monkeypatch):
    if request.param == "nvimagecodec":
        try:
            nvimagecodec_library.library()
        except ImportError:
            pytest.skip("nvImageCodec is not installed")
    monkeypatch.setenv("HEADRACE_DECODER", request.param)
    backend.has_nvimagecodec.cache_clear()
    yield request.param
    backend.has_nvimagecodec.cache_clear()


def encoded(data):
    return np.frombuffer(data, np.uint8)


def decode(data, **args):
    return run_operator("decoders.image", encoded(data), **args)


# Pixels.

LOSSLESS_RGB = (
    "png-rgb8",
    "png-pillow",
    "png-rgba8",
    "bmp-24",
    "bmp-24-topdown",
    "bmp-24-core",
    "bmp-24-v5",
    "bmp-32",
    "bmp-32-alpha",
    "tiff-rgb-raw",
    "tiff-rgb-tiff_lzw",
    "tiff-rgb-tiff_deflate",
    "tiff-rgb-packbits",
    "tiff-bigtiff",
    "tiff-bigendian",
    "tiff-planar",
    "tiff-pages",
    "webp-lossless",
    "pnm-P3",
    "pnm-P6",
    "pnm-P6-comment",
    "jp2-rgb",
    "jp2-tiles",
    "j2k-rgb",
)


@pytest.mark.parametrize("name", LOSSLESS_RGB)
def test_lossless_formats_return_what_was_stored(name, back_end):
    image = everything()[name]
    expected = picture(channels=4)[..., :3] if "rgba" in name else picture()
    np.testing.assert_array_equal(decode(image), expected)
    bgr = decode(image, output_type=DALIImageType.BGR)
    np.testing.assert_array_equal(bgr, expected[..., ::-1])


@pytest.mark.parametrize("name", ["png-rgb16", "tiff-rgb16", "tiff-rgb16-raw", "pnm-P6-16"])
def test_sixteen_bits(name, back_end):
    expected = picture16()
    if name.startswith("tiff"):
        expected = expected[..., ::-1]  # written by OpenCV from BGR
    image = everything()[name]
    found = decode(image, dtype=DALIDataType.UINT16)
    assert found.dtype == np.uint16
    np.testing.assert_array_equal(found, expected)
    eight = decode(image)
    np.testing.assert_array_equal(eight, np.floor(expected / 65535 * 255 + 0.5).astype(np.uint8))
    ones = decode(image, dtype=DALIDataType.FLOAT)
    np.testing.assert_allclose(ones, expected / 65535, rtol=1e-6)


@pytest.mark.parametrize(
    "name", [n for n in jpegs() if not n.startswith(("jpeg-cmyk", "jpeg-ycck", "jpeg-exif"))]
)
def test_jpeg_is_libjpeg_turbos(name, back_end):
    image = jpegs()[name]
    turned = "exif6" in name
    for output_type, space in (("RGB", "RGB"), ("BGR", "BGR"), ("GRAY", "GRAY")):
        expected = simplejpeg.decode_jpeg(image, space)
        found = decode(image, output_type=DALIImageType[output_type])
        np.testing.assert_array_equal(found, np.rot90(expected, -1) if turned else expected)


def test_fast_transform(back_end):
    image = jpegs()["jpeg-200x300"]
    found = decode(image, use_fast_idct=True)
    np.testing.assert_array_equal(found, simplejpeg.decode_jpeg(image, fastdct=True))
    assert (found != decode(image)).any()


@pytest.mark.parametrize("name", ["jpeg-cmyk", "jpeg-cmyk-progressive", "jpeg-ycck"])
def test_cmyk(name, back_end):
    inks = simplejpeg.decode_jpeg(jpegs()[name], "CMYK").astype(np.int64)
    expected = inks[..., :3] * inks[..., 3:] // 255
    np.testing.assert_array_equal(decode(jpegs()[name]), expected)
    gray = decode(jpegs()[name], output_type=DALIImageType.GRAY)
    np.testing.assert_array_equal(gray[..., 0], expected @ [299, 587, 114] // 1000)
    bgr = decode(jpegs()[name], output_type=DALIImageType.BGR)
    np.testing.assert_array_equal(bgr, expected[..., ::-1])
    with pytest.raises(BadSampleError, match="CMYK"):
        decode(jpegs()[name], output_type=DALIImageType.ANY_DATA)


TURNS = {
    1: lambda a: a,
    2: lambda a: a[:, ::-1],
    3: lambda a: a[::-1, ::-1],
    4: lambda a: a[::-1],
    5: lambda a: a.swapaxes(0, 1),
    6: lambda a: np.rot90(a, -1),
    7: lambda a: a[::-1, ::-1].swapaxes(0, 1),
    8: lambda a: np.rot90(a, 1),
}


@pytest.mark.sweep
@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("kind", ["jpeg-exif", "tiff-orientation"])
def test_orientation(kind, orientation, back_end):
    image = everything()[f"{kind}{orientation}"]
    stored_image = decode(image, adjust_orientation=False)
    if kind == "tiff-orientation":
        np.testing.assert_array_equal(stored_image, picture())
    np.testing.assert_array_equal(decode(image), TURNS[orientation](stored_image))
    gray = decode(image, output_type=DALIImageType.GRAY, adjust_orientation=False)
    found = decode(image, output_type=DALIImageType.GRAY)
    np.testing.assert_array_equal(found, TURNS[orientation](gray))


@pytest.mark.parametrize("name", ["jpeg-exif0", "jpeg-exif9"])
def test_impossible_orientations_are_ignored(name, back_end):
    assert decode(jpegs()[name]).shape == (37, 53, 3)


@pytest.mark.parametrize("name", ["png-exif6", "webp-exif6"])
def test_orientation_of_other_formats(name, back_end):
    image = everything()[name]
    np.testing.assert_array_equal(decode(image), np.rot90(picture(), -1))
    np.testing.assert_array_equal(decode(image, adjust_orientation=False), picture())


# Channels.


@pytest.mark.parametrize(
    ("name", "channels"),
    [
        ("png-gray8", 1),
        ("png-gray1", 1),
        ("png-gray16", 1),
        ("png-ga8", 2),
        ("png-ga16", 2),
        ("png-rgb8", 3),
        ("png-palette8", 3),
        ("png-palette8-alpha", 3),
        ("png-rgba8", 4),
        ("png-rgba16", 4),
        ("jpeg-gray", 1),
        ("jpeg-4:2:0", 3),
        ("webp-lossless-alpha", 4),
        ("webp-lossy", 3),
        ("tiff-RGBA", 4),
        ("tiff-gray-raw", 1),
        ("bmp-8-gray", 1),
        ("bmp-8-color", 3),
        ("pnm-P5", 1),
        ("jp2-rgba", 4),
        ("jp2-gray", 1),
    ],
)
def test_any_data_keeps_the_channels(name, channels, back_end):
    found = decode(everything()[name], output_type=DALIImageType.ANY_DATA)
    assert found.shape == (37, 53, channels)
    if name.startswith("png") and name.endswith("8") and "palette" not in name:
        np.testing.assert_array_equal(found, picture(channels=channels))
    if name in ("png-ga16", "png-rgba16"):
        deep = decode(pngs()[name], output_type=DALIImageType.ANY_DATA, dtype=DALIDataType.UINT16)
        np.testing.assert_array_equal(deep, picture16(channels))


@pytest.mark.parametrize("name", ["tiff-LA", "png-ga8", "jp2-ga"])
def test_alpha_behind_gray_is_no_colour(name, back_end):
    found = decode(everything()[name])
    np.testing.assert_array_equal(found[..., 0], found[..., 1])
    np.testing.assert_array_equal(found[..., 0], found[..., 2])
    gray = decode(everything()[name], output_type=DALIImageType.GRAY)
    np.testing.assert_array_equal(found[..., :1], gray)


def test_ycbcr(back_end):
    rgb = picture().astype(np.float64)
    found = decode(pngs()["png-rgb8"], output_type=DALIImageType.YCbCr)
    y = 16 + rgb @ [0.25678824, 0.50412941, 0.09790588]
    cb = 128 + rgb @ [-0.14822290, -0.29099279, 0.43921569]
    cr = 128 + rgb @ [0.43921569, -0.36778831, -0.07142737]
    expected = np.stack([y, cb, cr], -1)
    assert np.abs(found - expected).max() <= 0.5001
    ones = decode(pngs()["png-rgb8"], output_type=DALIImageType.YCbCr, dtype=DALIDataType.FLOAT)
    limits = np.stack([y - 16, cb - 128, cr - 128], -1) / 255 + [1 / 16, 0.5, 0.5]
    np.testing.assert_allclose(ones, limits, atol=1e-6)


# Element types.


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["UINT8", "UINT16", "UINT32", "INT8", "INT16", "INT32", "FLOAT"])
@pytest.mark.parametrize("name", ["png-rgb8", "png-rgb16", "tiff-rgbf"])
def test_types_use_their_full_range(dtype, name, back_end):
    found = decode(everything()[name], dtype=DALIDataType[dtype])
    source = {
        "png-rgb8": picture() / 255,
        "png-rgb16": picture16() / 65535,
        "tiff-rgbf": picture()[..., ::-1] / 255,
    }[name]
    if dtype == "FLOAT":
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, source, atol=1e-6)
        return
    limit = np.iinfo(found.dtype).max
    assert found.dtype.name == dtype.lower()
    assert np.abs(found - source * limit).max() <= max(0.51, limit * 2e-7)


@pytest.mark.parametrize("dtype", ["BOOL", "FLOAT16", "FLOAT64", "INT64", "UINT64"])
def test_other_types_are_refused(dtype):
    with pytest.raises(DataTypeError, match=r"fn\.cast"):
        decode(pngs()["png-rgb8"], dtype=DALIDataType[dtype])


# Regions and deferral.


def test_deferred_regions_are_parts_of_the_whole(back_end):
    for name in everything():
        data = encoded(everything()[name])
        rng = np.random.default_rng(len(name))
        for options in ({}, {"output_type": DALIImageType.GRAY, "dtype": DALIDataType.FLOAT}):
            try:
                whole = run_operator("decoders.image", data, **options)
            except BadSampleError:
                with pytest.raises(BadSampleError):
                    lazy("decoders.image", data, **options).region(0, 0, 1, 1)
                continue
            height, width = whole.shape[:2]
            for _ in range(4):
                y0, x0 = int(rng.integers(height)), int(rng.integers(width))
                y1, x1 = int(rng.integers(y0, height)) + 1, int(rng.integers(x0, width)) + 1
                image = lazy("decoders.image", data, **options)
                assert image.shape == whole.shape, name
                assert image.dtype == whole.dtype, name
                np.testing.assert_array_equal(
                    image.region(y0, x0, y1, x1), whole[y0:y1, x0:x1], name
                )


def test_every_region_of_a_subsampled_jpeg(back_end):
    for name in ("jpeg-4:2:0", "jpeg-progressive-4:2:0", "jpeg-411", "jpeg-440", "jpeg-exif7"):
        data = encoded(jpegs()[name])
        whole = run_operator("decoders.image", data)
        height, width = whole.shape[:2]
        for edge in range(1, min(height, width)):
            for region in (
                (edge, 0, height, width),
                (0, edge, height, width),
                (0, 0, edge, width),
                (0, 0, height, edge),
            ):
                y0, x0, y1, x1 = region
                found = lazy("decoders.image", data).region(*region)
                np.testing.assert_array_equal(found, whole[y0:y1, x0:x1])


def test_pixels_are_decoded_once(monkeypatch, back_end):
    calls = []
    original = stored.decode_stored

    def counting(*args):
        calls.append(args[4])
        return original(*args)

    monkeypatch.setattr("headrace.kernels.cpu.decode.pixels.decode_stored", counting)
    data = encoded(jpegs()["jpeg-200x300"])
    image = lazy("decoders.image", data)
    assert image.shape == (200, 300, 3)
    assert not calls
    first = image.region(20, 30, 60, 90)
    np.testing.assert_array_equal(image.region(20, 30, 60, 90), first)
    np.testing.assert_array_equal(image.region(30, 40, 50, 60), first[10:30, 10:30])
    assert calls == [(20, 30, 60, 90)]
    whole = run_operator("decoders.image", data)
    calls.clear()
    np.testing.assert_array_equal(image.region(0, 0, 10, 10), whole[:10, :10])
    np.testing.assert_array_equal(image.region(100, 0, 110, 10), whole[100:110, :10])
    assert calls == [None]
    assert image.region(5, 5, 5, 9).shape == (0, 4, 3)


def test_the_header_alone_decides_the_shape():
    damaged = bytearray(jpegs()["jpeg-200x300"])
    damaged[1000:] = b""
    image = lazy("decoders.image", encoded(bytes(damaged)))
    assert image.shape == (200, 300, 3)
    with pytest.raises(BadSampleError, match="ends early, after 1000 bytes"):
        image.region(0, 0, 200, 300)


# Inputs.


def test_input_may_be_a_strided_or_a_read_only_view(back_end):
    data = jpegs()["jpeg-4:2:0"]
    spread = np.zeros((len(data), 2), np.uint8)
    spread[:, 0] = encoded(data)
    assert not encoded(data).flags.writeable
    np.testing.assert_array_equal(run_operator("decoders.image", spread[:, 0]), decode(data))


def test_input_must_be_flat():
    with pytest.raises(ShapeError, match="flat"):
        run_operator("decoders.image", np.zeros((4, 4, 3), np.uint8))


def test_threads_do_not_share_a_decoder(back_end):
    names = ["jpeg-200x300", "jpeg-cmyk", "tiff-rgb-raw", "png-rgb8"]
    images = [everything()[n] for n in names]
    expected = [decode(i) for i in images]
    wrong = []

    def work():
        for _ in range(25):
            for image, pixels in zip(images, expected, strict=True):
                if not np.array_equal(decode(image), pixels):
                    wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# Bad data.

COMPRESSION = b"\x03\x01\x03\0\1\0\0\0"  # tag 259, one SHORT


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("ico", "icon"),
        ("mp4", "isom"),
        ("text", "no known image format"),
        ("zeros", "only zeros"),
        ("empty", "empty"),
        ("one-byte", r"\(1 bytes\)"),
        ("wav", "no known image format"),
    ],
)
def test_what_is_no_image_is_named(name, reason, back_end):
    with pytest.raises(BadSampleError, match=reason):
        decode(unsupported()[name])


@pytest.mark.sweep
@pytest.mark.parametrize("cut", [0.02, 0.4, 0.9])
@pytest.mark.parametrize(
    "name",
    [
        "jpeg-4:2:0",
        "jpeg-progressive-4:4:4",
        "jpeg-cmyk",
        "jpeg-exif6",
        "png-rgb8",
        "png-rgb16",
        "bmp-24",
        "bmp-8-color",
        "tiff-rgb-raw",
        "tiff-rgb-tiff_lzw",
        "webp-lossy",
        "webp-lossless",
        "pnm-P3",
        "pnm-P6",
        "jp2-rgb",
    ],
)
def test_data_that_ends_early_is_an_error(name, cut, back_end):
    image = everything()[name]
    with pytest.raises(BadSampleError):
        decode(image[: int(len(image) * cut)])


@pytest.mark.parametrize(
    ("image", "reason"),
    [
        (tiffs()["tiff-I"], "32-bit signed"),
        (
            tiffs()["tiff-rgb-raw"].replace(
                b"\x03\x01\x03\0\x01\0\0\0\x01\0", b"\x03\x01\x03\0\x01\0\0\0\x62\x87"
            ),
            "compression 34658",
        ),
        (
            b"\x89PNG\r\n\x1a\n" + png(picture(), 8, 2)[8:16] + b"\xff" + png(picture(), 8, 2)[17:],
            "more than",
        ),
        (webps()["webp-lossy"][:20] + bytes(20), "key frame"),
        (b"P6\n53 37\n70000\n", "maximum 70000"),
        (b"BM" + bytes(60), "BMP"),
    ],
)
def test_bad_headers_are_explained(image, reason, back_end):
    with pytest.raises(BadSampleError, match=reason):
        decode(image)


def test_mutated_files_are_decoded_or_refused(back_end):
    rng = np.random.default_rng(3)
    images = list(everything().values())
    refused = 0
    for _ in range(300):
        data = bytearray(images[rng.integers(len(images))])
        for _ in range(rng.integers(1, 6)):
            data[rng.integers(len(data))] = int(rng.integers(256))
        if rng.integers(3) == 0:
            data = data[: rng.integers(len(data))]
        try:
            shape = run_operator("peek_image_shape", encoded(bytes(data)))
            if shape.prod() < 10_000_000:
                assert decode(bytes(data)).shape == tuple(shape)
        except BadSampleError:
            refused += 1
    assert 50 < refused < 300


def test_nothing_is_printed_about_bad_data(capfd, back_end):
    for image in (
        jpegs()["jpeg-4:2:0"][:500],
        pngs()["png-rgb8"][:500],
        webps()["webp-lossy"][:99],
    ):
        with pytest.raises(BadSampleError):
            decode(image)
    assert capfd.readouterr() == ("", "")


def test_old_names_are_the_same_operators():
    for name in ("image_decoder", "experimental.decoders.image"):
        np.testing.assert_array_equal(run_operator(name, encoded(pngs()["png-rgb8"])), picture())


def test_an_image_takes_memory_of_its_batch_once(monkeypatch):
    taken = []
    row = BatchBuffer.row

    def counted(buffer, index, shape):
        taken.append(index)
        return row(buffer, index, shape)

    monkeypatch.setattr(BatchBuffer, "row", counted)
    shapes = [(20 + k, 30 + 2 * k, 3) for k in range(4)]
    files = [simplejpeg.encode_jpeg(picture(*shape)) for shape in shapes]
    batch = [np.frombuffer(file, np.uint8) for file in files]
    pipe = Pipeline(4, 1, None, workers="threads")
    with pipe:
        pipe.set_outputs(fn.decoders.image(fn.external_source([batch] * 3)))
    for _ in range(3):
        (images,) = pipe.run()
        assert images.shape() == shapes
    assert sorted(taken) == sorted([*range(4)] * 3)
