"""Random operators: types, shapes, ranges, and numbers that do not depend on how they are drawn."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, DataTypeError, ShapeError
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.registry import find
from headrace.types import DALIDataType as T
from headrace.types import to_numpy_type
from tests.support.run_operator import PlainContext, draw_seed, run_operator

REALS = [T.FLOAT16, T.FLOAT, T.FLOAT64]
INTEGERS = [T.UINT8, T.UINT16, T.UINT32, T.UINT64, T.INT8, T.INT16, T.INT32, T.INT64]
LIKE = np.zeros((2, 3), np.uint8)


def made(name, **args):
    schema = find(name)
    constants = {a.name: a.default for a in schema.args.values()}
    constants.update({k: schema.args[k].type.constant(v) for k, v in args.items()})
    op = schema.cls(constants)
    op.infer()
    return op


def drawn(op, seed, iteration, size, first=0):
    """The draws of samples that are planned at once; `None` where each is drawn alone."""
    places = range(first, first + size)
    planned = op.plan(PlanContext(op.args, {}, places, draw_seed(seed), iteration))
    return None if planned is None else planned.values[0]


CASES = [
    ("random.uniform", {}),
    ("random.uniform", {"shape": [2, 3], "range": [2, 5]}),
    ("random.uniform", {"shape": [5], "range": [-300, 300], "dtype": T.INT8}),
    ("random.uniform", {"shape": [5], "dtype": T.FLOAT16}),
    ("random.uniform", {"shape": [5], "dtype": T.FLOAT64}),
    ("random.uniform", {"values": [1, 2.5, 300], "shape": 4, "dtype": T.UINT8}),
    ("random.uniform", {"values": [1.5]}),
    ("random.uniform", {"shape": [0, 3]}),
    ("random.normal", {}),
    ("random.normal", {"mean": 4, "stddev": 100, "shape": [7], "dtype": T.INT16}),
    ("random.normal", {"shape": [3], "dtype": T.FLOAT64}),
    ("random.coin_flip", {}),
    ("random.coin_flip", {"probability": 0.9, "shape": [4, 2], "dtype": T.BOOL}),
    ("random.coin_flip", {"shape": [4], "dtype": T.FLOAT}),
    ("random.beta", {}),
    ("random.beta", {"alpha": 0.4, "beta": 2, "shape": [3], "dtype": T.FLOAT64}),
]


@pytest.mark.parametrize(("name", "args"), CASES, ids=str)
def test_batch_at_once_gives_what_samples_give(name, args):
    op = made(name, **args)
    batch = drawn(op, 11, 5, 6)
    assert batch is not None
    assert len(batch) == 6
    for index in range(6):
        context = PlainContext(op.args, index=index, seed=11)
        context.iteration = 5
        sample = op.cpu(context)
        assert sample.dtype == batch.dtype
        assert sample.shape == batch.shape[1:]
        np.testing.assert_array_equal(sample, batch[index])


def test_large_samples_are_drawn_one_by_one():
    assert drawn(made("random.normal", shape=[100, 100]), 1, 0, 4) is None


def test_other_samples_of_a_batch_change_nothing():
    op = made("random.normal", shape=[3])
    whole = drawn(op, 1, 2, 9)
    np.testing.assert_array_equal(whole[:4], drawn(op, 1, 2, 4))
    np.testing.assert_array_equal(whole[3:7], drawn(op, 1, 2, 4, first=3))


@pytest.mark.parametrize("name", ["random.uniform", "random.normal", "random.coin_flip"])
def test_no_batch_at_once_where_samples_differ(name):
    schema = find(name)
    constants = {a.name: a.default for a in schema.args.values()}
    from headrace.operators.support.schema import Spec

    op = schema.cls(constants)
    op.infer(Spec(T.UINT8, 2, "HW"))
    assert drawn(op, 1, 0, 2) is None
    op = schema.cls({**constants, "shape": None}, {"shape": Spec(T.INT32, 1)})
    op.infer()
    assert drawn(op, 1, 0, 2) is None


@pytest.mark.parametrize("name", ["random.uniform", "random.normal", "random.coin_flip"])
def test_shapes(name):
    assert run_operator(name).shape == ()
    assert run_operator(name, shape=3).shape == (3,)
    assert run_operator(name, shape=[]).shape == ()
    assert run_operator(name, shape=[2, 0]).shape == (2, 0)
    assert run_operator(name, shape=np.int32([2, 3])).shape == (2, 3)
    assert run_operator(name, shape=np.asarray(4, np.int32)).shape == (4,)
    assert run_operator(name, LIKE, layout="HW").shape == (2, 3)


@pytest.mark.parametrize("name", ["random.uniform", "random.normal", "random.coin_flip"])
def test_shape_errors(name):
    with pytest.raises(ArgumentValueError, match="shape_like"):
        run_operator(name, LIKE, shape=[2])
    with pytest.raises(ArgumentValueError, match="negative"):
        run_operator(name, shape=[2, -1])
    with pytest.raises(ArgumentValueError, match="negative"):
        run_operator(name, shape=np.int32([-2]))


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [*REALS, *INTEGERS], ids=str)
@pytest.mark.parametrize("name", ["random.uniform", "random.normal"])
def test_types(name, dtype):
    assert run_operator(name, shape=[4], dtype=dtype).dtype == to_numpy_type(dtype)


def test_default_types():
    assert run_operator("random.uniform").dtype == np.float32
    assert run_operator("random.normal").dtype == np.float32
    assert run_operator("random.coin_flip").dtype == np.int32
    assert run_operator("random.uniform", LIKE).dtype == np.float32


@pytest.mark.parametrize("name", ["random.uniform", "random.normal"])
def test_types_that_cannot_be_drawn(name):
    with pytest.raises(DataTypeError, match="BOOL"):
        run_operator(name, dtype=T.BOOL)
    with pytest.raises(DataTypeError, match="STRING"):
        run_operator(name, dtype=T.STRING)


def test_uniform_range():
    values = run_operator("random.uniform", shape=[10000])
    assert -1 <= values.min() < -0.99
    assert 0.99 < values.max() < 1
    values = run_operator("random.uniform", shape=[10000], range=np.float32([5, 6]))
    assert 5 <= values.min() < values.max() < 6


def test_uniform_integers_are_rounded_and_saturated():
    values = run_operator("random.uniform", shape=[20000], range=[-3.9, 3.9], dtype=T.INT8)
    numbers, counts = np.unique(values, return_counts=True)
    assert numbers.tolist() == [-3, -2, -1, 0, 1, 2, 3]
    assert counts[1:-1].max() < 1.15 * counts[1:-1].min()
    assert counts[[0, -1]].max() < 0.6 * counts[1:-1].min()
    values = run_operator("random.uniform", shape=[2000], range=[-100, 400], dtype=T.UINT8)
    assert values.min() == 0
    assert values.max() == 255
    assert 0.1 < (values == 0).mean() < 0.3
    for dtype in (T.INT64, T.UINT64):
        limits = np.iinfo(to_numpy_type(dtype))
        values = run_operator("random.uniform", shape=[100], range=[-1e30, 1e30], dtype=dtype)
        assert set(values.tolist()) == {limits.min, limits.max}


def test_uniform_values():
    values = run_operator("random.uniform", values=[1, 2, 3.5], shape=[3000])
    assert values.dtype == np.float32
    numbers, counts = np.unique(values, return_counts=True)
    assert numbers.tolist() == [1, 2, 3.5]
    assert counts.min() > 900
    values = run_operator("random.uniform", values=[1, 2.5, 99], shape=[50], dtype=T.INT64)
    assert set(values.tolist()) == {1, 3, 99}
    values = run_operator(
        "random.uniform", values=np.float32([1.5, 2.5, 300, -4]), shape=[50], dtype=T.UINT8
    )
    assert set(values.tolist()) == {2, 3, 255, 0}


@pytest.mark.parametrize("value", [[2, 1], [1, 1], [1], [1, 2, 3], [float("nan"), 1]], ids=str)
def test_uniform_range_errors(value):
    with pytest.raises(ArgumentValueError, match="range"):
        run_operator("random.uniform", range=value)
    with pytest.raises(ArgumentValueError, match="range"):
        run_operator("random.uniform", range=np.float32(value))


def test_uniform_values_errors():
    with pytest.raises(ArgumentValueError, match="empty"):
        run_operator("random.uniform", values=[])
    with pytest.raises(ArgumentValueError, match="exclude"):
        run_operator("random.uniform", values=[1], range=[0, 1])


def test_normal_moments():
    values = run_operator("random.normal", shape=[20000], mean=5, stddev=2)
    assert abs(values.mean() - 5) < 0.05
    assert abs(values.std() - 2) < 0.05
    per_sample = run_operator(
        "random.normal", mean=np.asarray(1000, np.float32), stddev=np.asarray(0, np.float32)
    )
    assert per_sample == 1000


def test_coin_flip():
    values = run_operator("random.coin_flip", shape=[20000], probability=0.25)
    assert set(values.tolist()) == {0, 1}
    assert abs(values.mean() - 0.25) < 0.01
    assert run_operator("random.coin_flip", shape=[9], probability=np.asarray(1.0)).all()
    assert run_operator("random.coin_flip", shape=[9], dtype=T.BOOL).dtype == bool


@pytest.mark.parametrize(("probability", "value"), [(-0.1, 0), (1.1, 1)])
def test_coin_flips_that_never_or_always_succeed(probability, value):
    for given in (probability, np.asarray(probability)):
        assert run_operator("random.coin_flip", probability=given, shape=[9]).min() == value


def test_coin_flip_errors():
    probability = float("nan")
    with pytest.raises(ArgumentValueError, match="probability"):
        run_operator("random.coin_flip", probability=probability)
    with pytest.raises(ArgumentValueError, match="probability"):
        run_operator("random.coin_flip", probability=np.asarray(probability))


def test_beta():
    values = run_operator("random.beta", shape=[10000], alpha=2, beta=np.asarray(5.0))
    assert values.dtype == np.float32
    assert abs(values.mean() - 2 / 7) < 0.01
    for bad in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ArgumentValueError, match="alpha"):
            run_operator("random.beta", alpha=bad)
        with pytest.raises(ArgumentValueError, match="beta"):
            run_operator("random.beta", beta=np.asarray(bad))
    with pytest.raises(DataTypeError, match="INT32"):
        run_operator("random.beta", dtype=T.INT32)


def chosen(a, **args):
    return run_operator("random.choice", np.asarray(a), **args)


def test_choice_of_a_range():
    values = chosen(np.uint8(5), shape=[5000])
    assert values.dtype == np.uint8
    assert np.bincount(values).min() > 900
    assert chosen(np.int32(1)) == 0


def test_choice_of_elements():
    assert set(chosen([1.5, 2.5], shape=[50]).tolist()) == {1.5, 2.5}
    rows = chosen([[1, 2], [3, 4]], shape=[20])
    assert rows.shape == (20, 2)
    assert set(map(tuple, rows.tolist())) == {(1, 2), (3, 4)}
    like = run_operator("random.choice", np.int32([7, 8]), LIKE)
    assert like.shape == (2, 3)
    assert chosen(np.array([True, False]), shape=[3]).dtype == bool


def test_choice_probabilities():
    assert chosen(np.int32(3), p=[0, 1, 0], shape=[50]).tolist() == [1] * 50
    values = chosen(np.int32(4), p=np.float32([0.1, 0.6, 0.3, 0.0]), shape=[10000])
    np.testing.assert_allclose(
        np.bincount(values, minlength=4) / 10000, [0.1, 0.6, 0.3, 0], atol=0.02
    )
    assert (values < 3).all()


@pytest.mark.parametrize(
    ("p", "match"),
    [
        ([0.5, 0.5], r"\{3\}"),
        ([1, 1, 1], "Sum"),
        ([-1, 1, 1], "at index 0"),
        ([0.5, 0.4, 0], "Sum"),
    ],
)
def test_choice_probability_errors(p, match):
    with pytest.raises(ArgumentValueError, match=match):
        chosen(np.int32(3), p=p)


def test_choice_errors():
    for nothing in (np.int32(0), np.int32(-3), np.zeros(0)):
        with pytest.raises(ShapeError, match="nothing"):
            chosen(nothing)
    with pytest.raises(DataTypeError, match="type float is"):
        chosen(np.float32(3))


@pytest.mark.parametrize("old", ["uniform", "normal_distribution", "coin_flip"])
def test_old_names(old):
    schema = find(old)
    assert schema.deprecated is not None
    new = find(schema.deprecated)
    assert schema.args == new.args
    assert schema.hidden
    np.testing.assert_array_equal(run_operator(old, shape=[5]), run_operator(new.name, shape=[5]))
