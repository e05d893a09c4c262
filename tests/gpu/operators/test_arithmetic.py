"""Expressions on the GPU: shapes, types, constants, operands on the host, errors."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, math, types
from headrace.errors import ArgumentValueError, OperatorError, ShapeError
from headrace.types import DALIDataType as T
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

X, Y, Z = (("input", k) for k in range(3))
ARITHMETIC = "_arithmetic_generic_op"


def real(value):
    return ("const", value, T.FLOAT)


def whole(value):
    return ("const", value, T.INT32)


def check(expression, *inputs, exact=True, **options):
    got = run_gpu_operator(ARITHMETIC, *inputs, expression=expression, **options)
    want = run_cpu_operator_on_batch(ARITHMETIC, *inputs, expression=expression)
    for a, b in zip(got, want, strict=True):
        assert a.dtype == b.dtype
        assert a.shape == b.shape
        if exact:
            np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_allclose(a, b, rtol=2e-6)


SHAPES = [(33, 47, 3), (1, 1, 3), (20, 0, 3), (90, 100, 3)]
_rng = np.random.default_rng(0)
IMAGES = [_rng.integers(0, 256, s, np.uint8) for s in SHAPES]
OTHERS = [_rng.standard_normal(s).astype(np.float32) for s in SHAPES]
UNIFORM = [_rng.integers(0, 256, (24, 17, 3), np.uint8) for _ in range(5)]
PER_CHANNEL = [_rng.standard_normal(3).astype(np.float32) for _ in SHAPES]
PER_SAMPLE = [np.asarray(v, np.float32) for v in (0.5, -1.0, 3.0, 0.0)]


@pytest.mark.parametrize("scattered", [False, True])
def test_in_step(scattered):
    check(("add", ("mul", X, real(1.5)), Y), IMAGES, OTHERS, scattered=scattered)
    check(("sub", X, X), IMAGES, scattered=scattered)


@pytest.mark.parametrize("scattered", [False, True])
def test_numbers_a_channel_and_a_sample(scattered):
    expression = ("mul", ("sub", X, Y), Z)
    check(expression, IMAGES, PER_CHANNEL, PER_SAMPLE, scattered=scattered)


def test_what_is_the_same_for_a_sample_is_computed_once():
    expression = ("mul", ("sin", ("add", Y, real(0.5))), X)
    check(expression, IMAGES, PER_SAMPLE, exact=False)


def masks(*shapes):
    return [np.random.default_rng(1).random(s, np.float32) for s in shapes]


@pytest.mark.parametrize("pattern", ["HW1", "WC", "W1", "H1C", "H11", "111", "21W1"])
def test_broadcasting(pattern):
    def of_sample(h, w, c):
        return tuple({"H": h, "W": w, "C": c, "1": 1, "2": 2}[axis] for axis in pattern)

    check(("mul", X, Y), IMAGES, masks(*[of_sample(*s) for s in SHAPES]))
    check(("mul", X, Y), UNIFORM, masks(*[of_sample(24, 17, 3)] * 5))


def test_all_operands_broadcast():
    rows = masks((5, 1), (3, 1), (1, 1))
    columns = masks((7,), (1,), (4,))
    check(("add", X, Y), rows, columns)


def test_samples_that_broadcast_along_other_axes():
    check(("add", X, Y), masks((4, 5), (1, 5), (4, 1)), masks((1, 5), (4, 5), (1, 1)))


@pytest.mark.parametrize("ranks", [(0, 0), (1, 0), (6, 2), (2, 6), (4, 4)])
def test_ranks(ranks):
    shapes = [(2, 1, 3, 4, 2, 3)[6 - r :] for r in ranks]
    check(("add", X, Y), *(masks(*[s] * 3) for s in shapes))


def test_samples_without_elements(emulated_gpu):
    empty = [np.empty((0, 4), np.uint8)] * 3
    check(("add", X, Y), empty, [np.zeros(4, np.uint8)] * 3)
    assert not emulated_gpu.launches


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("left", "right"),
    [("u1", "i1"), ("u8", "i8"), ("i8", "f2"), ("u2", "i4"), ("?", "i2"), ("f4", "f8")],
)
@pytest.mark.parametrize("name", ["sub", "lt"])
def test_types(name, left, right):
    rng = np.random.default_rng(2)
    values = [(rng.standard_normal(50) * 100).astype(np.int64) for _ in range(3)]
    check((name, X, Y), [v.astype(left) for v in values], [v[::-1].astype(right) for v in values])


@pytest.mark.parametrize(
    "expression",
    [
        ("gt", X, whole(128)),
        ("gt", X, whole(300)),
        ("gt", X, whole(-1)),
        ("gt", X, real(128.5)),
        ("and", ("gt", X, whole(3)), ("invert", ("eq", X, whole(7)))),
        ("floordiv", X, whole(7)),
        ("mod", ("sub", X, whole(100)), whole(-7)),
        ("pow", X, whole(2)),
        ("rshift", X, whole(3)),
        ("clamp", X, whole(3), real(np.inf)),
        ("add", X, ("const", 2**62, T.INT64)),
        ("add", X, ("mul", whole(3), ("const", 0.1, T.FLOAT64))),
        ("rsqrt", ("add", X, ("const", 1, T.FLOAT16))),
    ],
    ids=str,
)
def test_constants(expression):
    check(expression, IMAGES)


def test_plus_is_the_input_itself(emulated_gpu):
    check(("pos", X), IMAGES)
    assert not emulated_gpu.launches


def test_one_launch(emulated_gpu):
    check(("add", ("mul", X, real(1.5)), Y), UNIFORM, [PER_CHANNEL[0]] * 5)
    assert list(emulated_gpu.launches) == ["pointwise<Body>"]


def test_shapes_that_do_not_fit():
    with pytest.raises(OperatorError, match="sample 1") as caught:
        run_gpu_operator(
            ARITHMETIC, IMAGES, masks((3,), (4,), (3,), (3,)), expression=("add", X, Y)
        )
    assert isinstance(caught.value, ShapeError)
    assert "(1, 1, 3), (4,)" in str(caught.value)


def test_division_by_a_constant_zero():
    with pytest.raises(ArgumentValueError, match="division by zero"):
        run_gpu_operator(ARITHMETIC, IMAGES, expression=("mod", X, whole(0)))


def test_quotients_by_zero_are_zero():
    divisors = [np.uint8([1, 2, 0]), np.uint8([0, 3, 3])]
    got = run_gpu_operator(
        ARITHMETIC, [np.uint8([7, 7, 7])] * 2, divisors, expression=("floordiv", X, Y)
    )
    assert [g.tolist() for g in got] == [[7, 3, 0], [0, 2, 2]]


def computed(define, source, **settings):
    pipe = Pipeline(batch_size=len(source), num_threads=2, device_id=0, **settings)
    with pipe:
        pipe.set_outputs(define(fn.external_source(source=lambda: source)))
    (out,) = pipe.run()
    host = out.as_cpu()
    return [host.at(i) for i in range(len(host))]


def test_operands_on_the_host():
    numbers = iter(range(1000))

    def define(x):
        scale = fn.external_source(source=lambda info: np.float32(next(numbers)), batch=False)
        table = fn.external_source(source=lambda info: np.float32([1, 2, 3]), batch=False)
        return x.gpu() * scale + table

    got = computed(define, IMAGES)
    for i, (g, image) in enumerate(zip(got, IMAGES, strict=True)):
        np.testing.assert_array_equal(g, image * np.float32(i) + np.float32([1, 2, 3]))


def test_functions_of_math():
    got = computed(lambda x: math.clamp(math.sqrt(x.gpu()), 2, 10), IMAGES)
    for g, image in zip(got, IMAGES, strict=True):
        np.testing.assert_array_equal(g, np.clip(np.sqrt(image.astype(np.float32)), 2, 10))


def test_constant_arrays():
    got = computed(lambda x: x.gpu() - types.Constant(np.float32([1, 2, 3])), IMAGES)
    for g, image in zip(got, IMAGES, strict=True):
        np.testing.assert_array_equal(g, image - np.float32([1, 2, 3]))
