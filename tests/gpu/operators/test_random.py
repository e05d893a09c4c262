"""Random tensors on the GPU have the very numbers of the CPU's."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types
from headrace.kernels.cpu.philox_state import DrawSeed
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

FLOATING = [types.FLOAT16, types.FLOAT, types.FLOAT64]
INTEGERS = [
    types.UINT8,
    types.UINT16,
    types.UINT32,
    types.UINT64,
    types.INT8,
    types.INT16,
    types.INT32,
    types.INT64,
]
SEEDS = [(0, 0), (0x123456789ABCDEF, 3), (2**64 - 1, 2**40 + 5)]


def both(name, *inputs, seed=11, iteration=2, **args):
    """The operator on the GPU; the same numbers as on the CPU are checked."""
    got = run_gpu_operator(name, *inputs, seed=seed, iteration=iteration, **args)
    expected = run_cpu_operator_on_batch(name, *inputs, seed=seed, iteration=iteration, **args)
    assert len(got) == len(expected)
    for sample, reference in zip(got, expected, strict=True):
        assert sample.dtype == reference.dtype
        assert sample.shape == reference.shape
        np.testing.assert_array_equal(sample, reference)
    return got


@pytest.mark.parametrize(("seed", "iteration"), SEEDS)
@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip"])
def test_streams(name, seed, iteration):
    got = both(f"random.{name}", seed=seed, iteration=iteration, shape=[40], batch_size=5)
    assert len({row.tobytes() for row in got}) == 5


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", FLOATING + INTEGERS)
@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_types(name, dtype):
    ends = {"uniform": {"range": [-300.0, 300.0]}, "normal": {"mean": 10.0, "stddev": 100.0}}
    got = both(f"random.{name}", shape=[7, 37], dtype=dtype, batch_size=3, **ends[name])
    assert len(np.unique(got[0])) > 20


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("name", ["uniform", "normal"])
def test_ends_of_integer_types(name, dtype):
    wide = {"uniform": {"range": [-1e21, 1e21]}, "normal": {"stddev": 1e21}}
    got = both(f"random.{name}", shape=[50], dtype=dtype, batch_size=2, **wide[name])
    limits = np.iinfo(types.to_numpy_type(dtype))
    assert {int(v) for v in np.concatenate(got)} >= {limits.min, limits.max}


def test_normals_in_single_precision():
    for dtype in (types.FLOAT16, types.FLOAT):
        got = np.concatenate(both("random.normal", shape=[30000], dtype=dtype, batch_size=3))
        numbers = got.astype(float)
        assert abs(numbers.mean()) < 0.02
        assert abs(numbers.std() - 1) < 0.02
        assert abs((np.abs(numbers) < 1).mean() - 0.6827) < 0.01
    for stddev in (np.inf, 1e-30, 0.0):
        both("random.normal", shape=[50], batch_size=2, stddev=stddev)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize("stddev", [np.inf, np.nan])
def test_what_is_no_number(dtype, stddev):
    both("random.normal", shape=[50], dtype=dtype, batch_size=2, stddev=stddev)


@pytest.mark.parametrize("dtype", [types.BOOL, *FLOATING, *INTEGERS])
def test_coin_flips(dtype):
    got = both("random.coin_flip", probability=0.25, shape=[100], dtype=dtype, batch_size=4)
    assert 0.1 < np.mean([row.astype(float).mean() for row in got]) < 0.4
    for probability in (0.0, 1.0):
        for row in both("random.coin_flip", probability=probability, shape=[9], batch_size=2):
            assert (row == probability).all()


@pytest.mark.parametrize("dtype", [types.FLOAT, types.UINT8, types.INT64, types.FLOAT64])
def test_values(dtype):
    got = both("random.uniform", values=[1.0, 2.5, 7.0], shape=[60], dtype=dtype, batch_size=3)
    assert len(np.unique(np.concatenate(got))) == 3


@pytest.mark.sweep
@pytest.mark.parametrize(
    "shape", [(), [0], [1], [3], [4], [4097], [8192], [16390], [3, 0, 2], [2, 3, 5, 7]]
)
@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip"])
def test_shapes(name, shape):
    args = {"shape": shape} if shape != () else {}
    for row in both(f"random.{name}", batch_size=3, **args):
        assert row.shape == tuple(shape)


@pytest.mark.parametrize("scattered", [False, True])
@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip"])
def test_shape_like(name, scattered):
    shapes = [(3, 5), (0, 4), (1, 1), (30, 70)]
    like = [np.zeros(shape, np.uint8) for shape in shapes]
    got = run_gpu_operator(f"random.{name}", like, scattered=scattered)
    expected = run_cpu_operator_on_batch(f"random.{name}", like)
    for row, reference, shape in zip(got, expected, shapes, strict=True):
        assert row.shape == shape
        np.testing.assert_array_equal(row, reference)


def test_shapes_by_sample():
    both("random.uniform", shape=[np.array([2, i]) for i in range(4)])
    both("random.uniform", shape=[np.array(i) for i in range(4)])
    with pytest.raises(errors.ArgumentValueError, match=r"negative extent[\s\S]*sample 1"):
        run_gpu_operator("random.uniform", shape=[np.array([2]), np.array([-1])])


def test_parameters_by_sample():
    numbers = [np.array(v, np.float32) for v in (0.0, -3.5, 7.25)]
    both("random.normal", mean=numbers, stddev=[np.array([1.5])] * 3, shape=[33])
    ranges = [np.array([v, v + 2], np.float32) for v in (0, -5, 1e6)]
    for dtype in (types.FLOAT, types.FLOAT64, types.INT16):
        both("random.uniform", range=ranges, shape=[33], dtype=dtype)
    both("random.coin_flip", probability=[np.array(p, np.float32) for p in (0, 0.3, 1)], shape=[33])
    tables = [np.arange(n, dtype=np.float32) for n in (1, 5, 2)]
    both("random.uniform", values=tables, shape=[33], dtype=types.INT32)


def test_narrow_ranges_leave_out_their_end():
    low = 16777214.0
    got = both("random.uniform", range=[low, low + 2], shape=[300], batch_size=2)
    assert max(row.max() for row in got) < low + 2


@pytest.mark.parametrize(
    ("name", "args", "message"),
    [
        ("uniform", {"range": [np.array([1.0, 2.0]), np.array([2.0, 2.0])]}, "is empty"),
        ("uniform", {"range": [np.array([1.0, 2.0]), np.array([2.0, np.nan])]}, "is empty"),
        ("uniform", {"range": [np.array([1.0, 2.0]), np.array([2.0])]}, "1 elements"),
        ("uniform", {"values": [np.array([1.0]), np.array([])]}, "nothing to choose"),
        ("coin_flip", {"probability": [np.array(1.0), np.array(np.nan)]}, "from 0 to 1"),
    ],
)
def test_bad_parameters_name_the_sample(name, args, message):
    with pytest.raises(errors.ArgumentValueError) as caught:
        run_gpu_operator(f"random.{name}", **args)
    assert message in str(caught.value)
    assert "sample 1" in str(caught.value)


STATES = [
    [3823634032, 3842641596, 2515673792, 3054873127, 2886210587, 3754282174, 2042657351],
    [0] * 7,
    [2**32 - 1] * 7,
    [5, 6, 2**32 - 2, 2**32 - 1, 2**32 - 1, 2**32 - 1, 1],
]


@pytest.mark.sweep
@pytest.mark.parametrize("words", STATES, ids=range(len(STATES)))
@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip"])
def test_states_of_generators(name, words):
    got = both(f"random.{name}", seed=DrawSeed(words), shape=[700], batch_size=5)
    assert len({row.tobytes() for row in got}) == 5


@pytest.mark.parametrize("count", [1, 5, 1000])
def test_values_by_states_of_generators(count):
    both(
        "random.uniform",
        seed=DrawSeed(STATES[0]),
        values=[float(k) for k in range(count)],
        shape=[300],
        batch_size=3,
    )


@pytest.mark.parametrize("dtype", [types.INT64, types.UINT64, types.UINT8])
def test_numbers_without_axes(dtype):
    spans = [np.float32([k, 90 + k]) for k in range(4)]
    both("random.uniform", range=spans, dtype=dtype, batch_size=4)
    both("random.normal", mean=[np.float32(50 + k) for k in range(4)], dtype=dtype, batch_size=4)


@pytest.mark.parametrize("dtype", [types.UINT8, types.INT16, types.INT32])
def test_halves_and_cut_ends(dtype):
    both("random.uniform", range=[0.7, 90.9], shape=[99999], dtype=dtype, batch_size=2)
    both("random.normal", mean=2.5, stddev=0.0, dtype=dtype, batch_size=2)
    both("random.normal", mean=-2.5, stddev=0.0, dtype=dtype, batch_size=2)


def test_state_of_the_generator():
    words = [np.arange(7, dtype=np.uint32) * k for k in (3, 5)]

    @pipeline_def(batch_size=3, num_threads=2, device_id=0, seed=4)
    def graph():
        state = fn.external_source(lambda i: [words[i % 2]] * 3)
        return tuple(
            fn.random.uniform(_random_state=given, device=device, shape=[9], dtype=types.INT16)
            for device in ("cpu", "gpu")
            for given in (words[0], state)
        )

    pipe = graph()
    rows = []
    for _ in range(3):
        fixed, drawn, *on_gpu = [np.stack([np.asarray(s) for s in o.as_cpu()]) for o in pipe.run()]
        np.testing.assert_array_equal(on_gpu, [fixed, drawn])
        rows.append((fixed, drawn))
    np.testing.assert_array_equal([fixed for fixed, _ in rows], [rows[0][1]] * 3)
    np.testing.assert_array_equal(rows[2], rows[0])
    assert not np.array_equal(rows[1][1], rows[0][1])
