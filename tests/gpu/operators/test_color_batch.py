"""Recipes of pixels: taken over, they give what the operators give one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.kernels.gpu.color_steps import ColorConversion, Matrix
from headrace.kernels.gpu.pointwise import scale_and_shift
from headrace.operators.support.pointwise.color_batch import ColorBatch
from headrace.operators.support.pointwise.color_chain import colored
from headrace.operators.support.pointwise.pointwise_batch import PointwiseBatch, pointwise
from headrace.tensors.gpu.batch import StridedBatch
from tests.support.gpu.session import gpu_session

_rng = np.random.default_rng(0)
RAGGED = [_rng.integers(0, 256, s, np.uint8) for s in ((33, 47, 3), (5, 7, 3), (64, 20, 3))]
UNIFORM = [_rng.integers(0, 256, (40, 57, 3), np.uint8) for _ in range(3)]
U8, F32 = np.dtype(np.uint8), np.dtype(np.float32)


def run(define, data, *, fuse, device="gpu", layout="HWC"):
    pipe = Pipeline(batch_size=len(data), num_threads=2, device_id=0, seed=3, fuse=fuse)
    with pipe:
        x = fn.external_source(source=lambda: data, layout=layout)
        found = define(x.gpu() if device == "gpu" else x)
        pipe.set_outputs(*(found if isinstance(found, tuple) else (found,)))
    outs = [out.as_cpu() if device == "gpu" else out for out in pipe.run()]
    return [[np.array(out.at(i)) for i in range(len(out))] for out in outs]


def grey(x):
    return fn.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY)


def coded(x):
    return fn.color_space_conversion(x, image_type=types.BGR, output_type=types.YCbCr)


def matrices(x):
    x = fn.hue(x, hue=fn.random.uniform(range=[-90.0, 90.0]))
    x = fn.color_twist(x, saturation=1.4, dtype=types.INT16)
    return fn.hsv(x, value=0.7, dtype=types.FLOAT)


def between_elements(x):
    x = fn.brightness_contrast(x, brightness=1.3, contrast=fn.random.uniform(range=[0.5, 1.5]))
    x = fn.cast(fn.saturation(x, saturation=0.4), dtype=types.FLOAT)
    x = fn.hue(x * 1.7 - 20.0, hue=20.0)
    return fn.cast(x / 2, dtype=types.UINT8) > 50


def spaces(x):
    x = fn.color_space_conversion(coded(x), image_type=types.YCbCr, output_type=types.RGB)
    y = fn.color_space_conversion(grey(x), image_type=types.GRAY, output_type=types.BGR)
    return grey(fn.brightness(x, brightness=1.2)) * 2, fn.hue(y, hue=9.0)


def views(x):
    x = fn.crop(x, crop=(5, 6), crop_pos_x=fn.random.uniform(range=[0.0, 1.0]))
    x = fn.flip(x, horizontal=fn.random.coin_flip(), vertical=fn.random.coin_flip())
    y = fn.color_twist(x, hue=30.0, contrast=1.2)
    return y, fn.crop(y, crop=(2, 3)), fn.flip(grey(x))


def turned(x):
    return fn.hue(fn.reinterpret(fn.transpose(x, perm=[1, 0, 2]), layout="HWC"), hue=20.0)


def several_readers(x):
    y = fn.saturation(x, saturation=1.5)
    return y, y + 1, fn.hue(y, hue=10.0)


def wide_numbers(x):
    y = fn.cast(fn.hue(x, hue=10.0), dtype=types.FLOAT64)
    return y, fn.cast(fn.saturation(x), dtype=types.INT64) * 3, fn.hue(x, hue=5.0) // 7


def smaller_operand(x):
    offset = fn.cast(
        fn.external_source(source=lambda i: np.int32([1, 2, 3]), batch=False).gpu(),
        dtype=types.FLOAT,
    )
    return fn.hue(fn.hue(x, hue=20.0) - offset, hue=-20.0)


def normalised(x):
    y = fn.color_twist(fn.brightness(x, brightness=1.1), hue=30.0, saturation=0.7)
    mirror = fn.random.coin_flip()
    return (
        fn.crop_mirror_normalize(y, mean=[100.0, 110, 120], std=[50.0, 60, 70], mirror=mirror),
        fn.crop_mirror_normalize(
            fn.hue(x, hue=20.0), crop=(5, 6), output_layout="HWC", dtype=types.FLOAT16
        ),
        fn.crop_mirror_normalize(grey(x), mean=[100.0], mirror=mirror),
    )


DEFINITIONS = [
    matrices,
    between_elements,
    spaces,
    views,
    turned,
    several_readers,
    wide_numbers,
    smaller_operand,
    normalised,
]


@pytest.mark.sweep
@pytest.mark.parametrize("data", [RAGGED, UNIFORM], ids=["ragged", "uniform"])
@pytest.mark.parametrize("define", DEFINITIONS)
def test_values_do_not_depend_on_fusion(define, data):
    for fused, apart in zip(
        run(define, data, fuse=True), run(define, data, fuse=False), strict=True
    ):
        for a, b in zip(fused, apart, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


@pytest.mark.parametrize("define", [matrices, between_elements, spaces, views])
def test_values_are_those_of_the_cpu(define):
    on_gpu = run(define, RAGGED, fuse=True)
    on_cpu = run(define, RAGGED, fuse=True, device="cpu")
    for theirs, ours in zip(on_gpu, on_cpu, strict=True):
        for a, b in zip(theirs, ours, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


NORMALISED = {
    "planes": {"mean": [100.0, 110, 120], "std": [50.0, 60, 70], "mirror": 1},
    "crop": {"crop": (5, 6), "dtype": types.FLOAT16},
    "pixels": {"output_layout": "HWC", "std": [3.0]},
    "bytes": {"output_layout": "HWC", "dtype": types.UINT8, "mirror": 1},
    "padded": {"pad_output": True, "fill_values": [1.0], "out_of_bounds_policy": "pad"},
    "outside": {
        "crop": (50, 60),
        "fill_values": [5.0],
        "out_of_bounds_policy": "pad",
        "output_layout": "HWC",
    },
    "turned": {"output_layout": "WHC"},
}


@pytest.mark.sweep
@pytest.mark.parametrize("view", [False, True])
@pytest.mark.parametrize("dtype", ["UINT8", "INT16", "FLOAT16"])
@pytest.mark.parametrize("arguments", NORMALISED.values(), ids=NORMALISED)
def test_normalisation_does_the_steps_as_it_reads(arguments, dtype, view, emulated_gpu):
    def define(x):
        if dtype != "UINT8":
            x = fn.copy(fn.cast(x, dtype=getattr(types, dtype)))
        if view:
            x = fn.flip(fn.crop(x, crop=(5, 7)))
        hue = fn.random.uniform(range=[-90.0, 90.0])
        x = fn.color_twist(fn.hue(x, hue=hue), contrast=1.2)
        return fn.crop_mirror_normalize(x, **arguments)

    fused = run(define, RAGGED, fuse=True)
    used = [name for name in emulated_gpu.launches if not name.startswith("pointwise")]
    assert any(name.startswith("normalize_p") and "Body" in name for name in used)
    assert not any(name.startswith("color") for name in used)
    apart = run(define, RAGGED, fuse=False)
    for a, b in zip(fused[0], apart[0], strict=True):
        np.testing.assert_array_equal(a, b, strict=True)


def test_normalisation_of_volumes_and_sequences():
    data = [_rng.integers(0, 256, (k, 12, 17, 3), np.uint8) for k in (1, 3, 2)]

    def define(x):
        outs = []
        for layout, wanted in (("FHWC", "FCHW"), ("DHWC", "CDHW"), ("FHWC", "FHWC")):
            y = fn.hue(fn.reinterpret(x, layout=layout), hue=70.0)
            outs.append(fn.crop_mirror_normalize(y, output_layout=wanted, std=[2.0]))
        return tuple(outs)

    for fused, apart in zip(
        run(define, data, fuse=True, layout="FHWC"),
        run(define, data, fuse=False, layout="FHWC"),
        strict=True,
    ):
        for a, b in zip(fused, apart, strict=True):
            np.testing.assert_array_equal(a, b, strict=True)


def halves(count):
    numbers = np.zeros((count, 12), np.float32)
    numbers[:, [0, 4, 8]] = 0.5
    return (numbers,)


def test_a_chain_is_one_launch(emulated_gpu):
    with gpu_session() as session:
        found = session.upload(UNIFORM)
        shapes = found.shapes
        for _ in range(3):
            found = colored(session.queue, Matrix(U8), found, shapes, halves(3))
        ones = np.ones(3, np.float32)
        found = pointwise(session.queue, scale_and_shift(U8, F32), (found,), shapes, (ones, ones))
        assert isinstance(found, ColorBatch)
        got = session.download(found)
    assert list(emulated_gpu.launches) == ["color<Body, false>"]
    for g, row in zip(got, UNIFORM, strict=True):
        for _ in range(3):
            row = row // 2 + row % 2
        np.testing.assert_array_equal(g, np.float32(row) + 1)


def test_recipes_of_elements_are_taken_over(emulated_gpu):
    with gpu_session() as session:
        batch = session.upload(RAGGED)
        ones = np.ones(3, np.float32)
        light = pointwise(
            session.queue, scale_and_shift(U8, U8), (batch,), batch.shapes, (ones, ones)
        )
        assert isinstance(light, PointwiseBatch)
        found = colored(session.queue, Matrix(U8), light, batch.shapes, halves(3))
        assert len(found.steps) == 2
        session.download(found)
    assert list(emulated_gpu.launches) == ["color<Body, false>"]


def test_long_chains_are_computed_piece_by_piece(emulated_gpu):
    with gpu_session() as session:
        found = session.upload([np.zeros((3, 4, 3), np.uint8)])
        for _ in range(20):
            pair = ("RGB", "BGR") if _ % 2 else ("BGR", "RGB")
            found = colored(session.queue, ColorConversion(*pair, 3), found, found.shapes)
        session.download(found)
    assert len(emulated_gpu.launches) == 2


@pytest.mark.sweep
@pytest.mark.parametrize("width", [1, 31, 32, 33, 511, 512, 513, 4096, 4099])
@pytest.mark.parametrize("begin", [0, 1, 5])
def test_sizes_and_places(width, begin):
    # The samples begin `begin` pixels behind where accesses of 16 bytes do.
    rows = [_rng.integers(0, 256, (2, width, 3), np.uint8) for _ in range(3)]
    with gpu_session(scattered=False) as session:
        batch = session.upload([np.pad(r.reshape(-1, 3), ((begin, 3), (0, 0))) for r in rows])
        first = np.full((3, 1), begin) * 3
        run_ = batch.run(first[:, 0], np.array([r.shape for r in rows]))
        found = session.download(colored(session.queue, Matrix(U8), run_, run_.shapes, halves(3)))
        wide = session.download(colored(session.queue, Matrix(F32), run_, run_.shapes, halves(3)))
    for row, g, w in zip(rows, found, wide, strict=True):
        np.testing.assert_array_equal(g, row // 2 + row % 2)
        np.testing.assert_array_equal(w, row / np.float32(2))


def test_strided_frames():
    rows = [_rng.integers(0, 256, (3, 20, 41, 3), np.uint8) for _ in range(2)]
    with gpu_session() as session:
        view = StridedBatch.of(session.upload(rows))
        anchors, shapes = np.array([[1, 2, 3, 0]]), np.array([[2, 16, 35, 3]])
        view = view.window(anchors, shapes).flipped(1, np.array([True, False]))
        view = view.flipped(2, np.array([True, True]))
        got = session.download(colored(session.queue, Matrix(U8), view, view.shapes, halves(2)))
    for k, (row, g) in enumerate(zip(rows, got, strict=True)):
        want = row[1:3, 2:18, 3:38][:, :, ::-1]
        want = want[:, ::-1] if k == 0 else want
        np.testing.assert_array_equal(g, want // 2 + want % 2)
