"""`headrace.math` against `nvidia.dali.math`: every function on every type."""

from __future__ import annotations

import inspect
import itertools

import numpy as np
import nvidia.dali.math
import pytest

import headrace.math
from headrace.operators.support.arithmetic.operations import OPERATIONS
from tests.parity.support import assert_both_raise, assert_parity
from tests.support.graph_text import graph_of

TYPES = (
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float32",
    "float64",
)
PUBLIC = sorted(
    name
    for name, value in vars(nvidia.dali.math).items()
    if inspect.isfunction(value) and not name.startswith("_")
)
UNARY = [n for n in PUBLIC if len(inspect.signature(getattr(headrace.math, n)).parameters) == 1]
BINARY = [n for n in PUBLIC if len(inspect.signature(getattr(headrace.math, n)).parameters) == 2]


def numbers(dtype, seed=0):
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "f":
        special = [0.5, -0.5, 0, 1, -1, np.inf, -np.inf, np.nan, 1e6, 1e-6]
        return rng.permutation(np.array([*(rng.standard_normal(50) * 3), *special], dtype))
    limits = np.iinfo(dtype)
    values = [*rng.integers(max(limits.min, -30), 30, 50).tolist(), 0, 1, 2, limits.max]
    values += [limits.min, limits.max // 2, 7, 100, 5, 3]
    rng.shuffle(values)
    return np.array(values, dtype)


def test_the_same_functions_and_parameters():
    assert sorted(headrace.math.__all__) == PUBLIC
    for name in PUBLIC:
        ours = list(inspect.signature(getattr(headrace.math, name)).parameters)
        assert ours == list(inspect.signature(getattr(nvidia.dali.math, name)).parameters)
        (operation,) = [o for o in OPERATIONS.values() if o.math_name == name]
        assert ours == list(operation.parameters)


@pytest.mark.parametrize("name", UNARY)
def test_one_operand(name):
    feeds = [[numbers(t)] for t in TYPES]
    if name == "rsqrt":
        # In float32, DALI's CPU code gives nan for 0 and for infinity, its GPU code and float64
        # the limits.
        feeds = [
            [np.where((f[0] == 0) | np.isinf(f[0]), 3, f[0]).astype(f[0].dtype)] for f in feeds
        ]

    def graph(lib, *nodes):
        return tuple(getattr(lib.math, name)(x) for x in nodes)

    assert_parity(graph, *feeds, max_levels=0, relative=3e-6, absolute=1e-7)


@pytest.mark.parametrize("name", BINARY)
def test_two_operands(name):
    types = ("bool", *TYPES)
    values = [
        {t: rng_bool(seed) if t == "bool" else numbers(t, seed) for t in types} for seed in (1, 2)
    ]
    pairs = [p for p in itertools.product(types, types) if p != ("bool", "bool")]

    def graph(lib, *nodes):
        left = dict(zip(types, nodes, strict=False))
        right = dict(zip(types, nodes[len(types) :], strict=True))
        return tuple(getattr(lib.math, name)(left[a], right[b]) for a, b in pairs)

    feeds = [[v[t]] for v in values for t in types]
    assert_parity(graph, *feeds, max_levels=0, relative=3e-6, absolute=1e-7)


def rng_bool(seed):
    return np.random.default_rng(seed).integers(0, 2, 60).astype(bool)


@pytest.mark.parametrize("dtype", TYPES)
def test_clamp(dtype):
    others = TYPES[::3]

    def graph(lib, x, *bounds):
        found = [lib.math.clamp(x, a, b) for a, b in itertools.product(bounds, bounds)]
        found += [lib.math.clamp(x, 2, 20), lib.math.clamp(x, 0.5, 5.5), lib.math.clamp(x, 5, 1)]
        found += [lib.math.clamp(value=x, hi=9, lo=1), lib.math.clamp(3, x, 100)]
        return tuple(found)

    assert_parity(
        graph, [numbers(dtype)], *([numbers(t, 3)] for t in others), max_levels=0, relative=1e-6
    )


def test_constants_on_either_side():
    def graph(lib, x):
        m = lib.math
        return (
            m.max(5, x),
            m.min(x, 2.5),
            m.pow(2, x),
            m.fpow(x, 2),
            m.atan2(1.0, x),
            m.max(x, np.int64(3)),
            m.min(lib.types.Constant(4).uint8(), x),
        )

    for dtype in ("uint8", "int32", "float32"):
        assert_parity(graph, [numbers(dtype)[:20]], max_levels=0, relative=3e-6)


def test_images_and_layouts():
    image = np.random.default_rng(0).integers(0, 255, (30, 40, 3), np.uint8)
    factors = np.float32([0.5, 1, 2])

    def graph(lib, x, v):
        m = lib.math
        return m.sqrt(x), m.max(x, v), m.clamp(x * v, 0, 255), m.log(x + 1), m.floor(x / 3)

    assert_parity(graph, [image, image[:9]], [factors, factors], layouts=["HWC", "C"])


def test_scalars():
    def graph(lib, x):
        m = lib.math
        return m.sin(x), m.cos(x * 2), m.sqrt(abs(x)), m.floor(x), m.max(x, 0.5), m.exp(-x)

    assert_parity(graph, [np.float32(v) for v in (-2, -0.5, 0, 0.3, 7)], relative=1e-6)


@pytest.mark.parametrize("name", UNARY)
def test_errors_booleans(name):
    graph = lambda lib, x: getattr(lib.math, name)(x)  # noqa: E731
    assert_both_raise(graph, [np.array([True])], match="boolean")


@pytest.mark.parametrize(
    "text",
    [
        "lib.math.sqrt(3.0)",
        "lib.math.max(1, 2)",
        'lib.math.sqrt("a")',
    ],
)
def test_errors_operands(text):
    assert_both_raise(graph_of(text, "x"), [np.float32([1])])
