"""Generated kernels of pixels: tables, places, and that they compile for every GPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.color_spaces import CHANNELS, CONVERSIONS
from headrace.kernels.gpu.arithmetic import brought, constant, operation
from headrace.kernels.gpu.cast import cast_to
from headrace.kernels.gpu.color import compute
from headrace.kernels.gpu.color_steps import ColorConversion, Matrix, PerChannel
from headrace.kernels.gpu.color_text import color_body, with_colors
from headrace.kernels.gpu.pointwise import scale_and_shift
from headrace.kernels.gpu.pointwise_terms import number, source
from headrace.kernels.gpu.program import kernel as named
from headrace.tensors.gpu.batch import StridedBatch
from tests.support.gpu import nvrtc
from tests.support.gpu.session import gpu_session

BOOL, U8, I16, I32, I64, F16, F32, F64 = (
    np.dtype(t) for t in ("?", "u1", "i2", "i4", "i8", "f2", "f4", "f8")
)
STORED = (U8, I16, I32, F16, F32)


def noise(*shape, dtype=U8):
    return np.random.default_rng(0).integers(0, 256, shape).astype(dtype)


def run(dtype, steps, rows, numbers, view=None):
    with gpu_session() as session:
        batch = session.upload(rows)
        if view is not None:
            batch = view(StridedBatch.of(batch))
        shapes = batch.shapes.copy()
        body = color_body(dtype, int(shapes[0, -1]), steps)
        shapes[:, -1] = body.out_channels
        out = session.queue.empty(shapes, body.out_dtype)
        compute(session.queue, body, batch, numbers, out)
        return session.download(out)


def swap(count):
    """Red and blue change places, and green is doubled."""
    numbers = np.zeros((count, 12), np.float32)
    numbers[:, [2, 6]] = 1
    numbers[:, 4] = 2
    numbers[:, 9] = np.arange(count)
    return numbers


def swapped(row, k, dtype):
    wide = row.astype(np.float64)[..., ::-1] * (1, 2, 1) + (k, 0, 0)
    return np.clip(wide, 0, 255).astype(dtype) if dtype == U8 else wide.astype(dtype)


@pytest.mark.sweep
@pytest.mark.parametrize("given", STORED, ids=str)
@pytest.mark.parametrize("made", STORED, ids=str)
def test_extents_of_all_kinds(given, made):
    extents = [(1, 1), (1, 300), (31, 17), (70, 129), (0, 3), (3, 0), (33, 128)]
    rows = [noise(*e, 3, dtype=given) for e in extents]
    got = run(given, (Matrix(made),), rows, (swap(len(rows)),))
    for k, (row, g) in enumerate(zip(rows, got, strict=True)):
        np.testing.assert_array_equal(g, swapped(row, k, made))


@pytest.mark.parametrize("dtype", STORED, ids=str)
def test_views(dtype):
    rows = [noise(25, 43, 4, dtype=dtype), noise(70, 129, 4, dtype=dtype)]

    def view(batch):
        anchors = np.array([[3, 2, 1], [0, 1, 0]])
        shapes = np.array([[20, 33, 3], [70, 127, 3]])
        return batch.window(anchors, shapes).flipped(1, np.array([True, False]))

    got = run(dtype, (Matrix(dtype),), rows, (swap(2),), view)
    wanted = rows[0][3:23, 2:35, 1:4][:, ::-1], rows[1][:, 1:128, :3]
    for k, (row, g) in enumerate(zip(wanted, got, strict=True)):
        np.testing.assert_array_equal(g, swapped(row, k, dtype))


def test_numbers_of_all_types():
    types = (BOOL, F64, F16, U8, I64, I16, F32, I32)
    term = brought(source(0, U8), F64)
    for k, t in enumerate(types):
        term = operation("add", (term, brought(number(k, t), F64)), F64, None, None)
    term = operation("mul", (term, constant(2, F64)), F64, None, None)
    steps = (PerChannel(brought(term, F32), len(types), 3), Matrix(F32))
    rows = [noise(3, k, 3) for k in range(5)]
    numbers = [np.arange(5).astype(t) for t in types]
    got = run(U8, steps, rows, (*numbers, swap(5)))
    for k, (row, g) in enumerate(zip(rows, got, strict=True)):
        element = 2.0 * (row + np.float64(7 * k + min(k, 1)))
        np.testing.assert_array_equal(g, swapped(element, k, F32))


KERNELS = {
    **{f"{given} to {made}": (given, 3, (Matrix(made),)) for given in STORED for made in STORED},
    **{
        "-".join(pair): (U8, CHANNELS[pair[0]], (ColorConversion(*pair, CHANNELS[pair[1]]),))
        for pair in CONVERSIONS
    },
    "a chain": (
        U8,
        3,
        (
            PerChannel(scale_and_shift(U8, I16), 2, 3),
            Matrix(F16),
            PerChannel(cast_to(F16, U8), 0, 3),
            ColorConversion("BGR", "GRAY", 1),
            PerChannel(cast_to(U8, BOOL), 0, 1),
        ),
    ),
}


@pytest.mark.parametrize("arch", nvrtc.EACH_ARCHITECTURE)
def test_compiles(arch):
    missing = nvrtc.missing()
    if missing:
        pytest.skip(missing)
    if arch not in nvrtc.known_architectures():
        pytest.skip(f"this compiler is older than {arch}")
    # What is generated does not ask for the generation; the loop around it does.
    written = KERNELS.values() if arch == nvrtc.ARCHITECTURES[0] else [KERNELS["a chain"]]
    kernels = [color_body(*each).kernel(view=view) for each in written for view in (False, True)]
    nvrtc.check_compiles([(kernel.source(), kernel.name) for kernel in kernels], arch)


def test_normalisation_compiles_with_functions_of_pixels():
    missing = nvrtc.missing()
    if missing:
        pytest.skip(missing)
    kernels = []
    for dtype in STORED:
        colors = color_body(dtype, 3, (Matrix(F32), Matrix(dtype)))
        planes = named("normalize_planes.cu", "normalize_planes", dtype, F16, 3, 128)
        kernels.append(with_colors(planes, colors))
        for mode in (0, 1, 2):
            pixels = named(
                "normalize_pixels.cu", "normalize_pixels", dtype, F32, 3, mode, mode == 1, I32
            )
            kernels.append(with_colors(pixels, colors))
    nvrtc.check_compiles([(k.source(), k.name) for k in kernels], "sm_90")
