"""Arithmetic of edges against DALI: operators on all pairs of types, shapes, layouts, errors."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity, run_graph
from tests.support.graph_text import graph_of

INTEGERS = ("uint8", "uint16", "uint32", "uint64", "int8", "int16", "int32", "int64")
REALS = ("float32", "float64")
TYPES = ("bool", *INTEGERS, *REALS)
IMAGES = [
    np.random.default_rng(n).integers(0, 255, (20 + n, 30 - n, 3), np.uint8) for n in range(3)
]

ARITHMETIC = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
}
COMPARISONS = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
BITWISE = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
SHIFTS = {"<<": operator.lshift, ">>": operator.rshift}


def numbers(dtype, seed, edges=True):
    """Values of every kind; with `edges` also the ends of the type's range."""
    rng = np.random.default_rng(seed)
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.integers(0, 2, 40).astype(bool)
    if dtype.kind == "f":
        special = [0, -0.0, 1, -1, np.inf, -np.inf, np.nan, 1e10] if edges else [0.5] * 8
        return rng.permutation(np.array([*(rng.standard_normal(32) * 5), *special], dtype))
    limits = np.iinfo(dtype)
    values = rng.integers(max(limits.min, -20), 20, 32).tolist()
    values += [0, 1, 2, limits.max, limits.min, limits.max - 1, 100, 3] if edges else [5] * 8
    rng.shuffle(values)
    return np.array([int(v) for v in values], dtype)


def pairs_of(function, lefts, rights, pairs, **options):
    """One pipeline with an output for each pair of types."""
    names = list(dict.fromkeys(a for a, _ in pairs)), list(dict.fromkeys(b for _, b in pairs))

    def graph(lib, *nodes):
        left = dict(zip(names[0], nodes, strict=False))
        right = dict(zip(names[1], nodes[len(names[0]) :], strict=True))
        return tuple(function(left[a], right[b]) for a, b in pairs)

    feeds = [[lefts[a]] for a in names[0]] + [[rights[b]] for b in names[1]]
    assert_parity(graph, *feeds, max_levels=0, relative=2e-6, absolute=0, **options)


def all_pairs(types=TYPES):
    return [p for p in itertools.product(types, types) if p != ("bool", "bool")]


@pytest.mark.parametrize("symbol", ARITHMETIC)
def test_arithmetic(symbol):
    # DALI computes the remainder of an integer and a float32 in float64.
    edges = symbol != "%"
    left = {t: numbers(t, 1, edges) for t in TYPES}
    right = {t: numbers(t, 2, edges) for t in TYPES}
    if symbol in ("//", "%"):
        for name, values in right.items():
            if values.dtype.kind in "iu":
                # No zeros, and no lowest number divided by -1, which traps in DALI.
                right[name] = np.where((values == 0) | (values + 1 == 0), 3, values).astype(name)
            elif values.dtype.kind == "b":
                right[name] = np.ones_like(values)
    pairs = all_pairs()
    if symbol == "*":
        pairs.append(("bool", "bool"))
    pairs_of(ARITHMETIC[symbol], left, right, pairs)


@pytest.mark.parametrize("symbol", COMPARISONS)
def test_comparisons(symbol):
    left = {t: numbers(t, 1) for t in TYPES}
    # DALI 2.4 takes integers below zero for less than real ones below zero and than nan.
    right = {
        t: np.abs(np.nan_to_num(numbers(t, 2))) if t in REALS else numbers(t, 2) for t in TYPES
    }
    pairs = [p for p in itertools.product(TYPES, TYPES) if p[0] not in REALS or p[1] in REALS]
    pairs_of(COMPARISONS[symbol], left, right, pairs)


@pytest.mark.parametrize("symbol", BITWISE)
def test_bitwise(symbol):
    types = ("bool", *INTEGERS)
    left, right = ({t: numbers(t, seed) for t in types} for seed in (1, 2))
    pairs_of(BITWISE[symbol], left, right, list(itertools.product(types, types)))


@pytest.mark.parametrize("symbol", SHIFTS)
def test_shifts(symbol):
    types = ("bool", *INTEGERS)
    left = {t: numbers(t, 1) for t in types}
    right = {
        t: np.arange(40).astype(t) if t == "bool" else (np.arange(40) % 32).astype(t) for t in types
    }
    pairs_of(SHIFTS[symbol], left, right, list(itertools.product(types, types)))


@pytest.mark.parametrize("dtype", TYPES)
def test_unary(dtype):
    def graph(lib, x):
        outputs = [+x]
        if dtype != "bool":
            outputs += [-x, abs(x)]
        if dtype not in REALS:
            outputs += [~x]
        return tuple(outputs)

    assert_parity(graph, [numbers(dtype, 1)], max_levels=0, relative=0, absolute=0)


CONSTANTS = [3, -2, 0, 300, 2**31 - 1, -(2**31), 1.5, -0.1, 0.0, True]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint32", "uint64", "int64", *REALS])
def test_python_constants(dtype):
    def graph(lib, x):
        outputs = []
        for constant in CONSTANTS:
            outputs += [x + constant, constant - x, x * constant, x < constant, constant == x]
        return tuple(outputs)

    values = np.abs(numbers(dtype, 1)) if dtype in REALS else numbers(dtype, 1)
    if np.dtype(dtype).kind == "i":
        values = values[values >= 0]  # see `test_comparisons`
    assert_parity(graph, [values], max_levels=0, relative=2e-6, absolute=0)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("divisor", [1, 2, 3, 7, -3, 100])
def test_division_by_constants(dtype, divisor):
    def graph(lib, x):
        return x // divisor, x % divisor, x / divisor, x**2, x**3, 2**x

    assert_parity(graph, [numbers(dtype, 1)], max_levels=0, relative=2e-6, absolute=0)


def test_typed_constants():
    def graph(lib, x):
        constant = lib.types.Constant
        return (
            x + constant(3).uint8(),
            x + constant(3).int16(),
            x + constant(2**40).int64(),
            x + constant(3).float32(),
            x + constant(3).float64(),
            x + constant(True),
            x + np.uint16(9),
            x + np.int64(2**40),
            x * np.float32(0.5),
            x == constant(3, dtype=lib.types.UINT32),
        )

    assert_parity(graph, IMAGES, layouts="HWC", max_levels=0)


def test_arrays_and_lists_are_constants():
    def graph(lib, x):
        return x + np.array([1, 2, 3]), x * [0.5, 1.5, 2.5], x - np.float32([1.5, 2, 3])

    assert_parity(graph, IMAGES, layouts="HWC", max_levels=0)


def test_images():
    def graph(lib, x):
        return (
            x * 1.5 + 2,
            (x - 128.0) / 64,
            x > 128,
            x // 3,
            x % 7,
            x + x,
            -x,
            x & 15,
            (x > 100) & (x < 200),
            1 - x / 255,
        )

    assert_parity(graph, IMAGES, layouts="HWC", max_levels=0)


def test_values_a_sample():
    scale = [np.float32(1.5), np.float32(0.25), np.float32(3)]
    offset = [np.int32(4), np.int32(-5), np.int32(6)]

    def graph(lib, x, a, b):
        return x * a + b, (x + b) * a, a * b, a + 1, a > b, -b

    assert_parity(graph, IMAGES, scale, offset, layouts=["HWC", "", ""], max_levels=0)


def test_a_node_read_twice():
    def graph(lib, x):
        y = x * 0.5
        return y, y + 1, y * y

    assert_parity(graph, IMAGES, layouts="HWC")


SHAPES = [
    ((3,), (2, 3)),
    ((2, 1), (1, 3)),
    ((), (2, 3)),
    ((1,), (4, 1)),
    ((5, 1, 3), (4, 1)),
    ((20, 30, 3), (20, 30, 1)),
    ((20, 30, 3), (1, 30, 3)),
    ((3, 20, 30), (3, 1, 1)),
    ((0, 3), (3,)),
    ((0,), (1,)),
    ((1, 1, 1), (1,)),
]


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
def test_broadcasting(shapes):
    rng = np.random.default_rng(0)
    a, b = (np.asarray(rng.integers(0, 99, s), np.int16) for s in shapes)
    c = np.asarray(rng.random(shapes[1]), np.float32)

    def graph(lib, x, y, z):
        return x + y, x * z - 1, z > x

    assert_parity(graph, [a, a], [b, b], [c, c])


@pytest.mark.parametrize(
    ("left", "right"),
    [("HW", "W"), ("HW", ""), ("HW", "HW"), ("HWC", "C"), ("", "HW"), ("HWC", "WC")],
)
def test_layouts(left, right):
    a, b = (np.ones((2,) * max(len(layout), 2), np.uint8) for layout in (left, right))
    if len(left) == 1 or len(right) == 1:
        b = np.ones(2, np.uint8)

    def graph(lib, x, y):
        return x + y, y * x, x > y, x * 2, lib.math.clamp(x, y, 3)

    assert_parity(graph, [a], [b], layouts=[left, right])


def test_layout_of_higher_rank_without_layout():
    a, b = np.ones((2, 3), np.uint8), np.ones((1, 2, 3), np.uint8)
    assert_parity(lambda lib, x, y: (x + y, y + x), [a], [b], layouts=["HW", ""])


def test_sequences():
    video = np.random.default_rng(0).integers(0, 255, (4, 5, 6, 3), np.uint8)
    assert_parity(lambda lib, x: (x * 0.5, x + x), [video, video[:2]], layouts="FHWC")


@pytest.mark.parametrize(
    "text",
    [
        "x + y",
        "x - y",
        "x / y",
        "x // y",
        "x % y",
        "x**y",
        "-x",
        "abs(x)",
        "x + True",
        "lib.math.min(x, y)",
        "lib.math.clamp(x, y, y)",
        "lib.math.fpow(x, y)",
    ],
)
def test_errors_booleans(text):
    flags = [np.array([True, False])]
    assert_both_raise(graph_of(text, "x", "y"), flags, flags, match="boolean")


@pytest.mark.parametrize(
    "text",
    [
        "x & x",
        "x | 1",
        "x ^ x",
        "~x",
        "x << 1",
    ],
)
def test_errors_bits_of_real_numbers(text):
    assert_both_raise(graph_of(text, "x"), [np.float32([1, 2])], match="bitwise")


@pytest.mark.parametrize("dtype", INTEGERS)
def test_errors_division_by_zero(dtype):
    x, zero = [np.array([7], dtype)], [np.array([0], dtype)]
    for graph in (lambda lib, x, y: x // y, lambda lib, x, y: x % y, lambda lib, x, y: x // 0):
        assert_both_raise(graph, x, zero, match="zero")


@pytest.mark.parametrize("shapes", [((3,), (2,)), ((0,), (2,)), ((3, 2), (3, 1, 3))], ids=str)
def test_errors_broadcasting(shapes):
    a, b = (np.zeros(s, np.uint8) for s in shapes)
    assert_both_raise(lambda lib, x, y: x + y, [a], [b], match="broadcast")


@pytest.mark.parametrize(("left", "right"), [("HW", "H"), ("HW", "WH"), ("XY", "HW")])
def test_errors_layouts(left, right):
    a, b = (np.zeros((2,) * len(layout), np.uint8) for layout in (left, right))
    assert_both_raise(lambda lib, x, y: x + y, [a], [b], layouts=[left, right], match="layout")


@pytest.mark.parametrize(
    "text",
    [
        "x + 2**31",
        "x + lib.types.Constant(300).uint8()",
        "x + lib.types.Constant(-1).uint16()",
        'x + "1"',
        "x + None",
        "x + 1j",
    ],
)
def test_errors_constants(text):
    assert_both_raise(graph_of(text, "x"), IMAGES)


def test_numbers_of_numpy_on_the_left_are_python_s():
    numbers = [np.int64(3), np.uint8(3), np.float64(2.5), np.array(2), np.array(2.5, np.float16)]
    operations = [
        lambda a, x: a + x,
        lambda a, x: a - x,
        lambda a, x: a * x,
        lambda a, x: a / (x + 1),
        lambda a, x: a // (x + 1),
    ]
    assert_parity(lambda lib, x: tuple(f(n, x) for n in numbers for f in operations), IMAGES)


def test_truth_values_of_numpy():
    def graph(lib, x):
        made = []
        for value in (np.array(True), np.array(False), np.bool_(True), np.array([True])):
            made += [x + value, x < value, x == value, lib.math.max(x, value)]
            if np.ndim(value) == 0:  # on the left, DALI takes no array
                made += [value * x, value & x, value | (x > 5)]
        return tuple(made)

    assert_parity(graph, IMAGES)


def test_more_groups_of_axes_than_dali_broadcasts():
    """DALI has at most six; six are compared, and seven are NumPy's."""
    for rank in (6, 7):
        shapes = [tuple(1 + (k + first) % 2 for k in range(rank)) for first in (0, 1)]
        feeds = [[np.arange(np.prod(s), dtype=np.int32).reshape(s)] for s in shapes]

        def graph(lib, x, y):
            return (x + y) * x, x < y, lib.math.clamp(x, y, y + 3)

        if rank == 6:
            assert_parity(graph, *feeds)
            continue
        ((a,), (b,)) = feeds
        [outputs] = run_graph("headrace", graph, *feeds)
        for output, expected in zip(
            outputs, ((a + b) * a, a < b, np.clip(a, b, b + 3)), strict=True
        ):
            assert np.array_equal(output.samples[0], expected)
