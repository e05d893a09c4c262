"""`normalize` on the GPU gives what it gives on the CPU, within a few units of the last place."""

from __future__ import annotations

import contextlib
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ShapeError
from headrace.operators.support.normalize.batch import _misfits
from headrace.operators.support.registry import find
from headrace.types import DALIDataType
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

SHAPES = [(5, 60, 3), (2, 3, 4, 5, 6), (200, 3), (7, 1, 70), (50,), (40, 30, 3)]


def noise(*shape, dtype="float32", seed=0):
    return (np.random.default_rng(seed).random(shape) * 100).astype(dtype)


def ragged(shape, dtype="float32"):
    return [noise(shape[0] + i, *shape[1:], dtype=dtype, seed=i) for i in range(3)]


def same(data, layout="", **arguments):
    found = run_gpu_operator("normalize", data, layout=layout, **arguments)
    expected = run_cpu_operator_on_batch("normalize", data, layout=layout, **arguments)
    for got, wanted in zip(found, expected, strict=True):
        assert got.dtype == wanted.dtype
        assert got.shape == wanted.shape
        if got.dtype.kind == "f":
            limit = np.abs(wanted[np.isfinite(wanted)]).max(initial=0)
            np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=3e-7 * limit)
        else:
            assert np.abs(got.astype(np.int64) - wanted).max(initial=0) <= 1
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["uint8", "float32", "int32"])
def test_every_set_of_axes(shape, dtype):
    data = ragged(shape, dtype)
    for count in range(1, len(shape) + 1):
        for axes in itertools.combinations(range(len(shape)), count):
            same(data, axes=axes)
    same(data, ddof=1, epsilon=0.3, scale=2.0, shift=0.5)


@pytest.mark.sweep
@pytest.mark.parametrize("to", [DALIDataType.UINT8, DALIDataType.INT16, DALIDataType.UINT32])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "uint32", "float32"])
def test_types(dtype, to):
    for shape in [(40, 30, 3), (40, 30), (5, 7)]:
        data = [noise(*shape, dtype=dtype), noise(*shape, dtype=dtype, seed=1)]
        axes = (0, 1)
        same(data, axes=axes, scale=64, shift=128, dtype=to)
        same(data, mean=20.0, stddev=0.5, dtype=to)


def test_integers_saturate_and_round_away_from_zero():
    data = [np.array([-5, -0.5, 0.5, 1.5, 500, np.nan], np.float32)]
    found = run_gpu_operator("normalize", data, mean=0, stddev=1, dtype=DALIDataType.UINT8)
    np.testing.assert_array_equal(found[0], [0, 0, 1, 2, 255, 0])
    found = run_gpu_operator("normalize", data, mean=0, stddev=1e-9, dtype=DALIDataType.UINT32)
    np.testing.assert_array_equal(found[0], [0, 0, 500000000, 1500000000, 2**32 - 1, 0])


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
def test_rows_of_several_chunks(dtype):
    data = [noise(2, 130 + k, 211, 3, seed=k).astype(dtype) for k in range(3)]
    same(data, axes=(1, 2))
    same(data, axes=(1, 2, 3), mean=20.0, ddof=1)
    same(data, axes=(1, 2), stddev=3.0)


@pytest.mark.filterwarnings("ignore:.*`std(dev)?` is 0")
def test_given_numbers():
    data = ragged((40, 30, 3), "uint8")
    same(data, mean=20.0, stddev=3.0, epsilon=1.0)
    same(data, mean=20.0, stddev=0.0)
    same(data, mean=20.0, axes=(0, 1))
    same(data, stddev=3.0, axes=(0, 1))
    same(data, mean=1000.0, axes=(0,))


def test_given_arrays():
    data = ragged((40, 30, 3), "uint8")
    mean, stddev = noise(1, 1, 3, seed=5), noise(1, 1, 3, seed=6) + 1
    same(data, mean=mean, stddev=stddev)
    same(data, mean=mean)
    same(data, stddev=stddev)
    same(data, stddev=np.zeros((1, 1, 3), np.float32))
    same(data, mean=mean, stddev=2.0)
    same(data, mean=mean, axes=(0, 1), ddof=1)


def test_given_arrays_that_are_broadcast_against_each_other():
    data = [noise(5, 6, 3, seed=i) for i in range(3)]
    column, channel, row = noise(1, 6, 1, seed=7), noise(1, 1, 3, seed=8) + 1, noise(5, 1, 1) + 1
    whole = noise(5, 6, 3, seed=9)
    same(data, mean=column, stddev=channel)
    same(data, mean=column, stddev=row)
    same(data, mean=whole, stddev=row)
    same(data, mean=whole, stddev=whole + 1)
    same(data, mean=whole)
    same([data[0], noise(5, 6, 3)], mean=row, stddev=column + 1)


def test_values_by_sample():
    data = ragged((40, 30, 3))
    numbers = [np.float32(v) for v in (1, 20, 50)]
    means = [noise(1, 1, 3, seed=i) for i in range(3)]
    rows = [noise(40 + i, 1, 1, seed=i) + 1 for i in range(3)]
    same(data, mean=numbers, stddev=3.0)
    same(data, mean=numbers, stddev=[v + 1 for v in numbers])
    same(data, mean=means)
    same(data, stddev=means, axes=(0, 1))
    same(data, mean=means, stddev=rows)
    same(data, mean=numbers, axes=(0,))


def test_shapes_that_differ_by_sample():
    data = ragged((40, 30, 3))
    mixed = [noise(1, 1, 3), np.float32(3).reshape(1, 1, 1), noise(42, 1, 1) + 1]
    same(data, mean=mixed)
    same(data, mean=mixed, stddev=2.0)
    same(data, stddev=mixed)
    same(data, mean=3.0, stddev=mixed)


@pytest.mark.sweep
@pytest.mark.parametrize("axes", [(0,), (0, 1), (0, 2), (0, 1, 2), None])
@pytest.mark.parametrize("dtype", ["uint8", "float32", "int32"])
def test_batch(axes, dtype):
    data = ragged((40, 30, 3), dtype)
    along = {} if axes is None else {"axes": axes}
    same(data, batch=True, **along)
    same(data, batch=True, mean=20.0, ddof=1, **along)
    same(data, batch=True, stddev=20.0, **along)


def test_batch_of_single_numbers():
    found = run_gpu_operator("normalize", [np.int16(1)[()], np.int16(5)[()]], batch=True)
    assert [x.tolist() for x in found] == [-1.0, 1.0]


def test_a_batch_needs_extents_that_agree():
    with pytest.raises(ShapeError, match=r"sample 1 has the shape \(5, 7\)"):
        run_gpu_operator("normalize", [noise(5, 6), noise(5, 7)], axes=(0,), batch=True)


def test_empty_samples():
    data = [noise(0, 6, 3), noise(4, 0, 3), noise(4, 6, 3)]
    same(data)
    same(data, axes=(0,))
    same(data[:2], axes=(1,))
    same(data, mean=1.0, stddev=2.0)
    same([noise(0, 6), noise(4, 6), noise(3, 6)], axes=(0,), batch=True)
    same([noise(0, 600, 2), noise(700, 600, 2)], axes=(0, 1), batch=True)


def test_not_a_number_stays_in_its_group():
    data = noise(6, 6)
    data[1, 2], data[2, 3], data[3, 0], data[4, :2] = np.nan, np.inf, -np.inf, (np.inf, -np.inf)
    with np.errstate(invalid="ignore"):
        found = same([data], axes=1)
        same([data], axes=1, mean=1.0)
        same([data], axes=1, stddev=1.0)
        same([data], batch=True, mean=1.0)
    assert np.isfinite(found[0][[0, 5]]).all()


def test_equal_numbers_become_the_shift():
    for value in (0.1, 250, 3e7):
        data = [np.full((40, 50, 3), value, np.float32)]
        for axes in [(0, 1), (0, 1, 2), (1,)]:
            assert (same(data, axes=axes, shift=7.0)[0] == 7).all()


def test_large_numbers():
    steps = np.arange(3000).reshape(1000, 3) % 13
    same([(steps + 10**9).astype(np.int32)], axes=(0,))
    same([(steps + 10**6).astype(np.float32)], axes=(0,))


def test_axis_names_and_sequences():
    same([noise(3, 20, 30, 3), noise(2, 20, 30, 3)], "FHWC", axis_names="HW")
    same([noise(3, 20, 30), noise(3, 9, 9)], "CHW", axis_names="HW")


def test_errors_name_the_sample():
    data = [noise(4, 1, 3), noise(5, 6, 3), noise(5, 6, 2), noise(4, 1, 3)]
    means = [np.ones((1, 1, n), np.float32) for n in (3, 2, 2, 3)]
    with pytest.raises(ShapeError, match=r"\(1, 1, 2\)[^$]*\(5, 6, 3\)[^$]*sample 1"):
        run_gpu_operator("normalize", data, mean=means)
    constant = means[0]
    for names in (("mean",), ("stddev",), ("mean", "stddev")):
        with pytest.raises(ShapeError, match=r"\(1, 1, 3\)[^$]*\(5, 6, 2\)[^$]*sample 2"):
            run_gpu_operator("normalize", data, **dict.fromkeys(names, constant))
    with pytest.raises(ShapeError, match=r"with 1 in the axes \(0,\)[^$]*sample 1"):
        run_gpu_operator("normalize", data, mean=constant, axes=(0,))


@given(
    st.lists(st.tuples(*[st.integers(0, 3)] * 2), min_size=1, max_size=5),
    st.lists(st.integers(0, 3), max_size=3),
    st.sampled_from([None, (0,), (1,), (0, 1)]),
)
def test_misfits_are_those_of_one_sample(shapes, parameter, axes):
    op = find("normalize").cls({**dict.fromkeys(find("normalize").args), "batch": False})
    op._axes = axes
    found = _misfits(np.array(shapes), tuple(parameter), axes).tolist()
    for shape, wrong in zip(shapes, found, strict=True):
        with pytest.raises(ShapeError) if wrong else contextlib.nullcontext():
            op._check_shapes(shape, tuple(parameter))


def test_launches(emulated_gpu):
    data = ragged((40, 30, 3), "uint8")
    before = len(emulated_gpu.launches)
    run_gpu_operator("normalize", data, axes=(0, 1))
    assert len(emulated_gpu.launches) == before + 2
    run_gpu_operator("normalize", data, axes=(0, 1), batch=True)
    assert len(emulated_gpu.launches) == before + 2 + 4
    run_gpu_operator("normalize", data, mean=1.0, stddev=2.0)
    assert len(emulated_gpu.launches) == before + 2 + 4 + 1


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
@pytest.mark.parametrize("length", [1, 31, 32, 100, 513, 5000, 17_000])
def test_short_rows_by_moments_of_their_own(dtype, length):
    rng = np.random.default_rng(0)
    data = [(rng.random(shape) * 100).astype(dtype) for shape in [(3, length), (9, length), (1, 7)]]
    same(data, axes=[1])
    same(data)
    same(data, axes=[1], ddof=1, epsilon=0.5, scale=3.0, shift=2.0)
    same(data, axes=[1], ddof=length)
    same(data, axes=[1], dtype=DALIDataType.INT16, scale=100.0)
    same([x[..., None] for x in data], axes=[1])


def test_short_rows_of_what_is_not_finite():
    data = np.ones((5, 100), np.float32)
    data[1, 7], data[2, 9], data[3] = np.nan, np.inf, 3e38
    same([data], axes=[1])
