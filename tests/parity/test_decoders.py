"""Image decoders and `peek_image_shape` beside DALI's."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import InputTypeError, ShapeError
from tests.parity.support import assert_both_raise, assert_parity, compare_outputs, run_graph
from tests.support.encoded_images import everything, jpegs, picture, png, unsupported

# Valid files that DALI refuses, and we decode.
REFUSED_BY_DALI = ("bmp-16", "tiff-1", "webp-exif6", "jp2-ga")
# Files that neither decodes.
REFUSED = ("tiff-I", "j2k-gray")
# DALI takes the alpha of TIFF for green; and CMYK images that are turned go another way through
# it, with other rounding, than those that are not.
DIFFERENT = ("tiff-LA", "jpeg-cmyk-exif5")
COMMON = [n for n in everything() if n not in (*REFUSED_BY_DALI, *REFUSED, *DIFFERENT)]
# DALI crashes for gray JPEG, and errs for the others.
NOT_AS_THEY_ARE = [
    n
    for n in COMMON
    if n.startswith(("jpeg-gray", "jpeg-Gray", "jpeg-cmyk", "jpeg-ycck", "png-ga", "bmp-32"))
]


def feed(*names):
    return [np.frombuffer(everything()[name], np.uint8) for name in names]


def decoded(output_type="RGB", dtype="UINT8", **args):
    def graph(lib, data):
        types = lib.types
        return lib.fn.decoders.image(
            data, output_type=getattr(types, output_type), dtype=getattr(types, dtype), **args
        )

    return graph


# Bit for bit.


@pytest.mark.parametrize("dtype", ["UINT8", "UINT16", "INT8", "INT16", "FLOAT"])
@pytest.mark.parametrize("output_type", ["RGB", "BGR"])
def test_colours(output_type, dtype):
    assert_parity(
        decoded(output_type, dtype), feed(*COMMON), max_levels=0, relative=0, absolute=1e-7
    )


@pytest.mark.parametrize("dtype", ["UINT32", "INT32"])
def test_wide_integers(dtype):
    assert_parity(decoded("RGB", dtype), feed(*COMMON), max_levels=0)


@pytest.mark.parametrize("dtype", ["UINT8", "UINT16", "FLOAT"])
def test_gray(dtype):
    # Images that are turned go another way through DALI, which rounds otherwise.
    names = [n for n in COMMON if not n.startswith("tiff-orientation")]
    assert_parity(decoded("GRAY", dtype), feed(*names), max_levels=0, relative=0, absolute=1e-7)


@pytest.mark.parametrize("dtype", ["UINT8", "UINT16"])
def test_any_data(dtype):
    names = [n for n in COMMON if n not in NOT_AS_THEY_ARE] + ["tiff-LA"]
    assert_parity(decoded("ANY_DATA", dtype), feed(*names), max_levels=0)


@pytest.mark.parametrize("dtype", ["UINT8", "UINT16", "INT8", "FLOAT"])
def test_ycbcr(dtype):
    assert_parity(decoded("YCbCr", dtype), feed(*COMMON), relative=1e-6)


@pytest.mark.parametrize(
    "args",
    [
        {"adjust_orientation": False},
        {"use_fast_idct": True},
        {"use_fast_idct": True, "adjust_orientation": False},
        {"jpeg_fancy_upsampling": True},
        {"affine": False, "hw_decoder_load": 0.3, "preallocate_width_hint": 100},
        {"device_memory_padding": 1, "host_memory_padding": 1, "hybrid_huffman_threshold": 7},
        {"cache_size": 100, "cache_type": "threshold", "cache_threshold": 10},
    ],
)
def test_options(args):
    assert_parity(decoded(**args), feed(*COMMON), max_levels=0)


def test_random_sizes_of_jpeg():
    import simplejpeg

    rng = np.random.default_rng(0)
    images = []
    for i in range(60):
        height, width = (int(v) for v in rng.integers(1, 90, 2))
        kind = ("444", "422", "420", "440", "411", "Gray")[i % 6]
        image = picture(height, width, seed=i)
        images.append(simplejpeg.encode_jpeg(image, 30 + i, colorsubsampling=kind))
    data = [np.frombuffer(i, np.uint8) for i in images]
    assert_parity(decoded(), data, max_levels=0)
    assert_parity(decoded("GRAY"), data, max_levels=0)


# Windows.

WINDOWED = [n for n in COMMON if everything()[n] and not n.endswith(("1x1", "1x17", "17x1"))]


@pytest.mark.parametrize(
    "args",
    [
        {"crop": (11, 13)},
        {"crop": (11, 13), "crop_pos_x": 0.1, "crop_pos_y": 0.97},
        {"crop_h": 7.6, "crop_w": 9.2, "crop_pos_x": 0.3, "rounding": "truncate"},
        {"crop": (0, 13)},
        {"crop_d": 2, "crop_h": 7, "crop_w": 9},
        {"crop": (5, 11, 13)},
        {},
    ],
)
def test_crop(args):
    def graph(lib, data):
        return lib.fn.decoders.image_crop(data, **args)

    assert_parity(graph, feed(*WINDOWED), max_levels=0)


@pytest.mark.parametrize(
    "args",
    [
        {"start": (2, 4), "end": (12, 13)},
        {"start": (2, 4), "shape": (9, 8)},
        {"rel_start": (0.2, 0.3), "rel_end": (0.7, 0.8)},
        {"rel_start": (0.2, 0.3), "rel_shape": (0.3, 0.4)},
        {"rel_start": (0.2, 0.3), "shape": (3, 4)},
        {"start": (5, 4)},
        {"end": (5, 4)},
        {"start": (5,), "end": (8,), "axes": [0]},
        {"start": (5,), "end": (8,), "axes": [-1]},
        {"start": (5, 6), "end": (8, 9), "axis_names": "HW"},
    ],
)
def test_slice(args):
    def graph(lib, data):
        return lib.fn.decoders.image_slice(data, **args)

    assert_parity(graph, feed(*WINDOWED), max_levels=0)


def test_arguments_of_each_sample():
    names = ["jpeg-200x300", "png-rgb8", "jpeg-exif6", "tiff-rgb-raw"]
    sizes = [np.array([10 + i, 12 + 2 * i], np.float32) for i in range(4)]
    places = [np.array(i / 4, np.float32) for i in range(4)]

    def crop(lib, data, size, place):
        return lib.fn.decoders.image_crop(data, crop=size, crop_pos_x=place)

    assert_parity(crop, feed(*names), sizes, places, max_levels=0)

    def named(lib, data, size, place):
        return lib.fn.decoders.image_slice(data, rel_start=place, shape=size, axes=[1, 0])

    starts = [np.array([0.1 * i, 0.05 * i], np.float32) for i in range(4)]
    shapes = [np.array([9, 5 + i], np.int32) for i in range(4)]
    assert_parity(named, feed(*names), shapes, starts, max_levels=0)


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float32])
@pytest.mark.parametrize("normalized", [(True, True), (False, False), (False, True)])
def test_positional_windows(kind, normalized):
    names = ["jpeg-200x300", "png-rgb8", "jpeg-exif6"]
    fraction = kind == np.float32
    anchors = [np.array([0.1, 0.2] if fraction and normalized[0] else [3, 4], kind)] * 3
    shapes = [np.array([0.5, 0.3] if fraction and normalized[1] else [12, 9], kind)] * 3

    def graph(lib, data, anchor, shape):
        return lib.fn.decoders.image_slice(
            data, anchor, shape, normalized_anchor=normalized[0], normalized_shape=normalized[1]
        )

    assert_parity(graph, feed(*names), anchors, shapes, max_levels=0)


def test_windows_in_other_colours_and_types():
    def graph(lib, data):
        types = lib.types
        return lib.fn.decoders.image_crop(
            data, crop=(9, 10), output_type=types.GRAY, dtype=types.FLOAT
        )

    names = [n for n in WINDOWED if not n.startswith("tiff-orientation")]
    assert_parity(graph, feed(*names), max_levels=0, relative=0, absolute=1e-7)


@pytest.mark.parametrize("crop", ["crop", "slice"])
def test_decoding_and_cutting_are_one(crop):
    def graph(lib, data):
        images = lib.fn.decoders.image(data)
        if crop == "crop":
            return lib.fn.crop(images, crop=(9, 10), crop_pos_x=0.2)
        return lib.fn.slice(images, rel_start=(0.2, 0.3), rel_shape=(0.5, 0.25))

    assert_parity(graph, feed(*WINDOWED), max_levels=0)


# Random windows.


def windows_of(library, *, batches, **args):
    height, width = 120, 200
    rows, columns = np.mgrid[0:height, 0:width]
    data = np.frombuffer(png(np.stack([rows, columns, 0 * rows], -1), 8, 2), np.uint8)

    def graph(lib, image):
        return lib.fn.decoders.image_random_crop(image, **args)

    found = []
    for (output,) in run_graph(library, graph, [data] * 250, iterations=batches):
        found += [(*(int(v) for v in s[0, 0, :2]), *s.shape[:2]) for s in output.samples]
    return np.array(found, np.float64)


def largest_gap(a, b):
    """The statistic of the Kolmogorov-Smirnov test."""
    both = np.sort(np.concatenate([a, b]))
    parts = [np.searchsorted(np.sort(x), both, side="right") / len(x) for x in (a, b)]
    return np.abs(parts[0] - parts[1]).max()


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"random_area": [0.5, 1.0], "random_aspect_ratio": [0.3, 3.0], "num_attempts": 3},
        {"random_area": [0.1, 0.2], "random_aspect_ratio": [2.0]},
    ],
)
def test_random_windows_have_one_distribution(args):
    want, got = (windows_of(library, batches=8, **args) for library in ("dali", "headrace"))
    for name, value in {
        "row": lambda w: w[:, 0],
        "column": lambda w: w[:, 1],
        "height": lambda w: w[:, 2],
        "width": lambda w: w[:, 3],
        "area": lambda w: w[:, 2] * w[:, 3],
        "ratio": lambda w: w[:, 3] / w[:, 2],
    }.items():
        # 2,000 windows each: passed by chance with a probability below 1e-6.
        assert largest_gap(value(want), value(got)) < 0.085, name


@pytest.mark.parametrize(
    "args",
    [
        {"random_area": [0.9, 1.0], "random_aspect_ratio": [0.2, 0.4]},
        {"random_area": [0.9, 1.0], "random_aspect_ratio": [4.0, 5.0]},
        {"random_area": [0.25, 0.25], "random_aspect_ratio": [1.0, 1.0]},
        {"random_area": [0.1, 0.3], "num_attempts": 0},
    ],
)
def test_windows_of_one_size(args):
    want, got = (windows_of(library, batches=1, **args) for library in ("dali", "headrace"))
    assert {tuple(w) for w in want[:, 2:]} == {tuple(w) for w in got[:, 2:]}


# Shapes.


@pytest.mark.parametrize("image_type", ["RGB", "GRAY", "YCbCr", "ANY_DATA"])
@pytest.mark.parametrize("adjust", [True, False])
def test_peek(image_type, adjust):
    def graph(lib, data):
        return lib.fn.peek_image_shape(
            data, image_type=getattr(lib.types, image_type), adjust_orientation=adjust
        )

    names = [n for n in everything() if n not in REFUSED_BY_DALI]
    assert_parity(graph, feed(*names))


@pytest.mark.parametrize("dtype", ["INT32", "UINT32", "INT64", "UINT64", "FLOAT", "FLOAT64"])
def test_types_of_shapes(dtype):
    def graph(lib, data):
        return lib.fn.peek_image_shape(data, dtype=getattr(lib.types, dtype))

    assert_parity(graph, feed("jpeg-200x300", "png-rgb8"))


# Errors.


@pytest.mark.parametrize("name", list(unsupported()))
def test_what_is_no_image(name):
    data = [np.frombuffer(unsupported()[name], np.uint8)]
    assert_both_raise(decoded(), data)
    assert_both_raise(lambda lib, x: lib.fn.peek_image_shape(x), data)


@pytest.mark.parametrize(
    "name",
    [
        "jpeg-4:2:0",
        "jpeg-progressive-4:2:0",
        "jpeg-cmyk",
        "png-rgb8",
        "bmp-8-color",
        "tiff-rgb-raw",
        "tiff-rgb-tiff_lzw",
        "webp-lossy",
        "webp-lossless",
        "pnm-P6",
        "pnm-P3",
        "jp2-rgb",
    ],
)
def test_data_that_ends_early(name):
    data = everything()[name]
    assert_both_raise(decoded(), [np.frombuffer(data[: len(data) // 2], np.uint8)])


def test_half_of_a_jpeg_is_enough_for_its_upper_third():
    data = jpegs()["jpeg-200x300"]

    def graph(lib, image):
        return lib.fn.decoders.image_crop(image, crop=(60, 0), crop_pos_y=0.0)

    assert_parity(graph, [np.frombuffer(data[: len(data) * 6 // 10], np.uint8)], max_levels=0)


@pytest.mark.parametrize(
    ("operator", "args"),
    [
        ("image_crop", {"crop": (100, 20)}),
        ("image_crop", {"crop": (10, 20), "crop_pos_x": 1.5}),
        ("image_crop", {"crop": (10, 20), "rounding": "up"}),
        ("image_crop", {"crop_h": 10}),
        ("image_crop", {"crop": 10.0}),
        ("image_crop", {"crop": (10, 20), "crop_h": 3, "crop_w": 3}),
        ("image_slice", {"start": (0, 0), "end": (100, 20)}),
        ("image_slice", {"start": (-1, 0), "end": (10, 20)}),
        ("image_slice", {"start": (5, 5), "end": (5, 20)}),
        ("image_slice", {"start": (5, 5), "shape": (0, 20)}),
        ("image_slice", {"start": (5,), "end": (8,), "axes": [2]}),
        ("image_slice", {"start": (5, 0), "end": (8, 1), "axis_names": "HC"}),
        ("image_slice", {"rel_start": (0.2, 0.3), "rel_end": (0.7, 1.8)}),
        ("image_slice", {}),
        ("image_random_crop", {"random_area": [0.9, 0.1]}),
        ("image_random_crop", {"random_aspect_ratio": [2.0, 1.0]}),
        ("image_random_crop", {"random_area": [0.1, 0.2, 0.3]}),
    ],
)
def test_windows_that_cannot_be(operator, args):
    def graph(lib, data):
        return getattr(lib.fn.decoders, operator)(data, **args)

    assert_both_raise(graph, feed("jpeg-4:2:0"))


@pytest.mark.parametrize("dtype", ["UINT64", "INT64", "FLOAT16", "FLOAT64", "BOOL"])
def test_types_that_are_refused(dtype):
    assert_both_raise(decoded(dtype=dtype), feed("png-rgb8"))


def test_shapes_need_flat_bytes():
    data = [np.zeros((4, 4), np.uint8)]
    assert_both_raise(lambda lib, x: lib.fn.peek_image_shape(x), data, match="flat")


def test_mutated_files():
    rng = np.random.default_rng(9)
    names = [n for n in COMMON if not n.startswith(("tiff", "bmp-32", "bmp-24"))]
    disagreements = 0
    for _ in range(40):
        data = bytearray(everything()[names[rng.integers(len(names))]])
        for _ in range(rng.integers(1, 4)):
            data[rng.integers(len(data))] = int(rng.integers(256))
        sample = [np.frombuffer(bytes(data), np.uint8)]
        outcomes = []
        for library in ("dali", "headrace"):
            try:
                outcomes.append(run_graph(library, decoded(), sample)[0][0].samples[0])
            except Exception:
                outcomes.append(None)
        want, got = outcomes
        same = (want is None) == (got is None)
        if same and want is not None:
            same = np.array_equal(want, got)
        disagreements += not same
    assert disagreements <= 2


@pytest.mark.parametrize(("dtype", "shape"), [("int8", [-1]), ("bool", [-1]), ("uint8", [1, -1])])
def test_bytes_that_dali_takes_in_another_form(dtype, shape):
    """Headrace refuses them; what its message names has DALI's result."""
    (file,) = feed(COMMON[0])
    given = [file.view(dtype).reshape(shape)]

    def graph(lib, x):
        return lib.fn.decoders.image(x)

    def written(lib, x):
        x = lib.fn.reinterpret(x, dtype=lib.types.UINT8)
        return graph(lib, lib.fn.reshape(x, shape=[-1]))

    expected = run_graph("dali", graph, given)
    with pytest.raises((InputTypeError, ShapeError), match=r"`fn\.re(interpret|shape)"):
        run_graph("headrace", graph, given)
    levels = {"max_levels": 8, "differing": 0.3}  # of decoders; the bytes are what counts
    compare_outputs(expected, run_graph("headrace", written, given), **levels)
