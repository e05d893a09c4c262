"""Generated kernels: tables, tiles, wide places, and that they compile for every GPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.gpu import pointwise_reading
from headrace.kernels.gpu.arithmetic import brought, constant, operation
from headrace.kernels.gpu.cast import cast_to
from headrace.kernels.gpu.pointwise import compute, scale_and_shift
from headrace.kernels.gpu.pointwise_terms import Call, fault, number, source
from headrace.kernels.gpu.pointwise_text import pointwise_kernel
from tests.support.gpu import nvrtc
from tests.support.gpu.session import gpu_session

BOOL, U8, I16, I32, I64, F16, F32, F64 = (
    np.dtype(t) for t in ("?", "u1", "i2", "i4", "i8", "f2", "f4", "f8")
)


def total(dtype, *terms):
    """The sum of terms of any types, as `dtype`."""
    found = brought(terms[0], dtype)
    for term in terms[1:]:
        found = operation("add", (found, brought(term, dtype)), dtype, None, None)
    return found


def run(term, sources, numbers, shapes):
    with gpu_session(scattered=False) as session:
        batches = [session.upload(rows) for rows in sources]
        out = session.queue.empty(np.array(shapes, np.int64), term.dtype)
        compute(session.queue, term, batches, numbers, out)
        return session.download(out)


def test_rows_of_all_types():
    types = (BOOL, F64, F16, U8, I64, I16, F32, I32)
    term = total(F64, source(0, U8), *(number(k, t) for k, t in enumerate(types)))
    rows = [np.full((3, k), k, np.uint8) for k in range(5)]
    numbers = [np.arange(5).astype(t) for t in types]
    got = run(term, [rows], numbers, [r.shape for r in rows])
    for k, g in enumerate(got):
        np.testing.assert_array_equal(g, np.full((3, k), k + min(k, 1) + 7 * k, np.float64))


@pytest.mark.parametrize("size", [1, 4095, 4096, 4097, 8192, 20001])
def test_tiles(size):
    rows = [np.arange(n).astype(np.int16) for n in (size, 3, 0, size, size + 1)]
    got = run(cast_to(I16, F32), [rows], (), [r.shape for r in rows])
    for g, row in zip(got, rows, strict=True):
        np.testing.assert_array_equal(g, row.astype(np.float32))


def test_samples_without_gaps_that_begin_anywhere():
    # 15 bytes each: out of step with every vector, but all in the same way.
    rows = [np.arange(15 * k, 15 * k + 15).astype(np.uint8) for k in range(2000)]
    ones, steps = np.ones(2000, np.float32), np.arange(2000, dtype=np.float32) % 7
    got = run(scale_and_shift(U8, U8), [rows], (ones, steps), [r.shape for r in rows])
    for k, (g, row) in enumerate(zip(got, rows, strict=True)):
        np.testing.assert_array_equal(g, np.minimum(row.astype(int) + k % 7, 255))


def test_wide_places(monkeypatch):
    monkeypatch.setattr(pointwise_reading, "_LARGEST", 10)
    rng = np.random.default_rng(0)
    images = [rng.random(s, np.float32) for s in ((6, 7, 3), (4, 5, 3))]
    masks = [rng.random((*i.shape[:2], 1), np.float32) for i in images]
    term = operation("mul", (source(0, F32), source(1, F32)), F32, None, None)
    got = run(term, [images, masks], (), [i.shape for i in images])
    for g, image, mask in zip(got, images, masks, strict=True):
        np.testing.assert_array_equal(g, image * mask)


def test_parts_of_a_sample_are_hoisted():
    angle = operation("sin", (source(1, F32),), F32, None, None)
    term = operation("mul", (source(0, F32), angle), F32, None, None)
    text = pointwise_kernel(term, (None, ())).kernel.text
    constructor, rest = text.split("aligned() const")
    assert "op_sin" in constructor
    assert "op_sin" not in rest


KERNELS = {
    "cast": (cast_to(U8, F32), (None,), 1, False),
    "halves": (cast_to(F32, F16), (None,), 1, False),
    "brightness": (scale_and_shift(U8, U8), (None,), 1, False),
    "channels": (total(F32, source(0, U8), source(1, F32)), (None, (1,)), 2, False),
    "wide": (total(F64, source(0, F64), source(1, I64)), (None, (0, 2)), 3, True),
    "outer sum": (total(I32, source(0, I32), source(1, BOOL)), ((0,), (1,)), 2, False),
    "powers": (
        operation("fpow", (source(0, F16), constant(0.3, F16)), F16, 0.3, None),
        (None,),
        1,
        False,
    ),
    "quotients": (
        operation("floordiv", (source(0, I64), source(1, I64)), I64, None, fault(0)),
        (None, ()),
        1,
        False,
    ),
    "infinity": (
        operation("min", (source(0, F64), constant(np.inf, F64)), F64, np.inf, None),
        (None,),
        1,
        False,
    ),
}


@pytest.mark.parametrize("arch", nvrtc.EACH_ARCHITECTURE)
def test_compiles(arch):
    missing = nvrtc.missing()
    if missing:
        pytest.skip(missing)
    kernels = []
    for term, accesses, axes, wide in KERNELS.values():
        assert isinstance(term, Call)
        kernel = pointwise_kernel(term, accesses, axes, wide=wide).kernel
        kernels.append((kernel.source(), kernel.name))
    nvrtc.check_compiles(kernels, arch)
