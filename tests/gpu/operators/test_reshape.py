"""`reshape` and `reinterpret` on the GPU give what they give on the CPU."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace.errors import HeadraceError, ShapeError
from headrace.types import DALIDataType as T
from tests.support.gpu.alike import check_alike, check_same_error
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator
from tests.support.gpu.session import gpu_session

_rng = np.random.default_rng(0)
IMAGES = [_rng.integers(0, 256, s, np.uint8) for s in [(4, 6, 3), (2, 12, 3), (8, 1, 3), (6, 2, 3)]]
EMPTY = [np.empty((0, 4), np.uint8), np.empty((3, 0), np.uint8)]


def each(*values, dtype=np.int32):
    return [np.asarray(v, dtype) for v in values]


@pytest.mark.parametrize(
    "arguments",
    [
        {"shape": (-1, 3)},
        {"shape": (-1,)},
        {"shape": (2, -1, 3)},
        {"rel_shape": (0.5, -1)},
        {"rel_shape": (0.5, 2, 1)},
        {"rel_shape": (1, 1, 1, -1)},
        {"src_dims": (1, 0, -1, 2)},
        {"src_dims": (1, 0, 2), "rel_shape": (1, -1, 1)},
    ],
)
def test_shapes_for_all(arguments):
    check_alike("reshape", IMAGES, **arguments)
    check_alike("reinterpret", IMAGES, **arguments)


def test_shapes_by_sample():
    check_alike("reshape", IMAGES, shape=each((3, -1), (-1, 4), (24, 1), (36, 1)))
    check_alike("reshape", IMAGES, rel_shape=each((0.5, -1), (-1, 3), (1, -1), (2, -1), dtype="f4"))
    check_alike("reshape", IMAGES, src_dims=each((0, 1, 2), (2, 1, 0), (1, 0, 2), (1, 2, 0)))
    shapes = each((72,), (-1,), (24,), (36,), dtype=np.int64)
    check_alike("reshape", IMAGES, shapes)
    with pytest.raises(ShapeError, match=r"different numbers of axes \(1, 2\)"):
        run_gpu_operator("reshape", IMAGES, each((72,), (-1,), (24,), (36, 1)))


def test_numbers_and_nothing():
    check_alike("reshape", each(1, 2), shape=(1, 1))
    check_alike("reshape", each((1,), (2,)), shape=())
    check_alike("reshape", EMPTY, each((0, 9), (9, 0)))
    check_alike("reshape", EMPTY, shape=(5, -1))


@pytest.mark.parametrize("dtype", [T.UINT16, T.FLOAT, T.UINT8, T.BOOL, T.FLOAT16])
def test_reinterpret(dtype):
    words = [_rng.integers(0, 255, (n, 8), np.uint8) for n in (1, 4, 3)]
    check_alike("reinterpret", words, dtype=dtype)
    check_alike("reinterpret", words, dtype=dtype, shape=(-1,))
    numbers = [row.view(np.float64) for row in words]
    check_alike("reinterpret", numbers, dtype=dtype)


def test_elements_are_aligned(emulated_gpu):
    """Bytes of a sample may begin anywhere; larger elements may not."""
    rows = [np.arange(n, dtype=np.uint8) for n in (8, 16, 4)]
    with gpu_session(scattered=True) as session:
        assert (session.upload(rows).pointers % np.uint64(4)).any()
    check_alike("reinterpret", rows, dtype=T.INT32, scattered=True)
    assert "copy_rows" in emulated_gpu.launches


def test_errors_name_the_sample():
    check_same_error("reshape", IMAGES, shape=(4, 18), sample=2)
    check_same_error("reshape", IMAGES, shape=(16, -1), sample=0)
    check_same_error("reshape", EMPTY, each((0, -1), (0, -1)), sample=0)
    check_same_error("reshape", IMAGES, each((72,), (-1, -1), (24,), (36,)), sample=1)
    check_same_error("reshape", IMAGES, shape=each((-1,), (-1,), (-2, -1), (-1,)), sample=2)
    check_same_error("reshape", IMAGES, src_dims=each((0,), (1,), (2,), (3,)), sample=0)
    factors = each((1, 1, -1), (1, 1, -1), (1, -1, -1), (1, 1, -1), dtype=np.float32)
    check_same_error("reshape", IMAGES, rel_shape=factors, sample=2)
    odd = [np.zeros((3, n), np.uint8) for n in (8, 6)]
    check_same_error("reinterpret", odd, dtype=T.INT32, sample=1)
    check_same_error("reinterpret", each(1, 2, dtype=np.uint8), dtype=T.INT32, sample=0)
    huge = 1 << 32
    check_same_error("reshape", EMPTY, each((huge, huge), (huge, huge), dtype=np.int64), sample=0)


@st.composite
def cases(draw):
    ndim, count = draw(st.integers(0, 3)), draw(st.integers(1, 3))
    extents = st.lists(st.sampled_from([0, 1, 2, 4, 6]), min_size=ndim, max_size=ndim)
    rows = [np.zeros(s, np.int16) for s in draw(st.lists(extents, min_size=count, max_size=count))]

    def vectors(values, dtype):
        size = draw(st.integers(1, 4))
        one = st.lists(values, min_size=size, max_size=size)
        return [np.array(draw(one), dtype) for _ in rows]

    wanted = st.sampled_from([-1, 0, 1, 2, 3, 4, 6, 12])
    factors = st.sampled_from([-1.0, 0.0, 0.5, 1.0, 2.0, 1 / 3, float("inf")])
    way = draw(st.integers(0, 4))
    arguments, inputs = {}, []
    if way == 0:
        inputs = [vectors(wanted, np.int32)]
    elif way == 1:
        arguments["shape"] = vectors(wanted, np.int64)
    else:
        if way != 3:
            arguments["rel_shape"] = vectors(factors, np.float32)
        if way != 2:
            arguments["src_dims"] = vectors(st.integers(-1, ndim), np.int32)
    if draw(st.booleans()):
        arguments["dtype"] = draw(st.sampled_from([T.UINT8, T.INT32]))
    return [rows, *inputs], arguments


@settings(
    max_examples=300, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cases())
def test_whatever_is_asked(case):
    inputs, arguments = case
    try:
        run_cpu_operator_on_batch("reinterpret", *inputs, **arguments)
    except HeadraceError:
        with pytest.raises(HeadraceError) as found:
            run_gpu_operator("reinterpret", *inputs, **arguments)
        sample = found.value.where.sample if hasattr(found.value, "where") else None
        check_same_error("reinterpret", *inputs, sample=sample, **arguments)
    else:
        check_alike("reinterpret", *inputs, **arguments)
