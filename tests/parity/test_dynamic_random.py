"""`ndd.random` against DALI's: the same generator gives the same values."""

from __future__ import annotations

import inspect

import numpy as np
import nvidia.dali.experimental.dynamic as dali
import pytest

import headrace.experimental.dynamic as ndd

LIBRARIES = [dali, ndd]
DTYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def both(call, *, seed=1, rtol=1e-6, atol=1e-6):
    """Compare what `call` draws in both libraries, and that it takes equally many words."""
    results = []
    for lib in LIBRARIES:
        rng = lib.random.RNG(seed)
        result = call(lib, rng)
        results.append((result, str(rng.get_state())))
    (theirs, their_state), (ours, our_state) = results
    assert our_state == their_state
    assert type(ours).__name__ == type(theirs).__name__
    assert str(ours.dtype) == str(theirs.dtype)
    assert ours.layout == theirs.layout
    if isinstance(theirs, dali.Batch):
        assert ours.shape == theirs.shape
        pairs = list(zip(theirs, ours, strict=True))
    else:
        pairs = [(theirs, ours)]
    for expected, actual in pairs:
        np.testing.assert_allclose(np.asarray(actual), np.asarray(expected), rtol=rtol, atol=atol)


@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip", "beta", "choice"])
def test_signatures(name):
    theirs = inspect.signature(getattr(dali.random, name)).parameters
    ours = inspect.signature(getattr(ndd.random, name)).parameters
    assert set(theirs) <= set(ours)
    assert [n for n, p in theirs.items() if p.kind is not p.KEYWORD_ONLY] == [
        n for n, p in ours.items() if p.kind is not p.KEYWORD_ONLY
    ]


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip", "beta"])
@pytest.mark.parametrize("batch_size", [None, 1, 5])
@pytest.mark.parametrize("shape", [None, (), (3,), (2, 3), (0,)])
def test_shapes(name, batch_size, shape):
    def call(lib, rng):
        return getattr(lib.random, name)(batch_size=batch_size, shape=shape, rng=rng)

    both(call)


@pytest.mark.parametrize("name", ["uniform", "normal", "beta"])
def test_float64(name):
    both(
        lambda lib, rng: getattr(lib.random, name)(
            batch_size=3, shape=(7,), dtype=lib.float64, rng=rng
        ),
        rtol=1e-11,
        atol=1e-13,
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_integers(dtype):
    low = 0 if dtype.startswith("u") else -100

    def uniform(lib, rng):
        return lib.random.uniform(
            batch_size=3, shape=(50,), range=(low, 100), dtype=getattr(lib, dtype), rng=rng
        )

    def normal(lib, rng):
        return lib.random.normal(
            batch_size=3, shape=(50,), mean=50, stddev=30, dtype=getattr(lib, dtype), rng=rng
        )

    both(uniform, rtol=0, atol=0)
    both(normal, rtol=0, atol=0)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32"])
@pytest.mark.parametrize("probability", [0.0, 0.3, 0.9, 1.0])
def test_coins(dtype, probability):
    both(
        lambda lib, rng: lib.random.coin_flip(
            batch_size=3,
            shape=(50,),
            probability=probability,
            dtype=getattr(lib, dtype),
            rng=rng,
        ),
        rtol=0,
        atol=0,
    )


def test_values():
    both(
        lambda lib, rng: lib.random.uniform(
            batch_size=4, shape=(9,), values=[1, 2.5, 7, 11, 13], rng=rng
        ),
        rtol=0,
        atol=0,
    )


@pytest.mark.parametrize("p", [None, [0.1, 0.2, 0.3, 0.4]])
def test_choice(p):
    both(lambda lib, rng: lib.random.choice(4, p=p, batch_size=6, rng=rng))
    both(lambda lib, rng: lib.random.choice([1.5, 2.5, 3.5, 9], p=p, shape=[5], rng=rng))
    both(
        lambda lib, rng: lib.random.choice(
            lib.tensor([[1, 2], [3, 4], [5, 6], [7, 8]]), p=p, shape=[3], batch_size=2, rng=rng
        )
    )


def test_arguments_of_each_sample():
    ranges = [np.float32([0, 1]), np.float32([5, 6])]
    both(lambda lib, rng: lib.random.uniform(range=lib.batch(ranges), rng=rng))
    means = [np.float32(3), np.float32(100)]
    both(lambda lib, rng: lib.random.normal(mean=lib.batch(means), shape=[4], rng=rng), rtol=1e-5)


def test_shapes_of_other_data():
    data = [np.zeros((2, 3)), np.zeros((1, 2))]
    both(lambda lib, rng: lib.random.uniform(lib.batch(data), rng=rng))
    both(lambda lib, rng: lib.random.normal(lib.tensor(data[0]), rng=rng))


def test_calls_in_a_row():
    def call(lib, rng):
        lib.random.coin_flip(batch_size=7, rng=rng)
        lib.random.normal(rng=rng)
        rng()
        return lib.random.uniform(batch_size=3, rng=rng)

    both(call, seed=1234)


def test_the_default_generator():
    values = []
    for lib in LIBRARIES:
        lib.random.set_seed(17)
        values.append([lib.random.uniform().item(), lib.random.normal().item()])
        assert lib.random.get_default_rng().get_state is not None
    np.testing.assert_allclose(values[0], values[1], rtol=1e-6)


@pytest.mark.parametrize(
    ("arguments", "error"), [({"rng": "x"}, ValueError), ({"seed": 5}, TypeError)]
)
def test_errors(arguments, error):
    for lib in LIBRARIES:
        with pytest.raises(error):
            lib.random.uniform(**arguments)


def test_modes_draw_the_same():
    drawn = []
    for mode in ndd.EvalMode:
        rng = ndd.random.RNG(5)
        with mode:
            values = [ndd.random.uniform(batch_size=3, shape=(2,), rng=rng) for _ in range(4)]
            drawn.append(np.stack([np.asarray(s) for b in reversed(values) for s in b]))
    for other in drawn[1:]:
        np.testing.assert_array_equal(other, drawn[0])
