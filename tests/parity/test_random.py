"""Random operators against DALI: types, shapes and distributions; the numbers differ by design."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from tests.parity.support import assert_both_raise, run_graph
from tests.support.graph_text import graph_of

TYPES = [
    "UINT8",
    "INT8",
    "UINT16",
    "INT16",
    "UINT32",
    "INT32",
    "UINT64",
    "INT64",
    "FLOAT",
    "FLOAT64",
]
IMAGES = [np.zeros((4, n, 3), np.uint8) for n in (5, 6, 7)]
COUNT = 20000


def outputs(graph, *feeds, **options):
    """Outputs of one iteration of DALI and of Headrace."""
    return [run_graph(library, graph, *feeds, **options)[0] for library in ("dali", "headrace")]


def assert_alike(graph, *feeds, **options):
    """The same types, layouts and shapes."""
    for want, got in zip(*outputs(graph, *feeds, **options), strict=True):
        assert got.dtype == want.dtype
        assert got.layout == want.layout
        assert [s.shape for s in got.samples] == [s.shape for s in want.samples]


def assert_same_distribution(graph, *feeds, **options):
    """Samples of both could be from one distribution (two-sample tests, fixed seeds)."""
    for want, got in zip(*outputs(graph, *feeds, **options), strict=True):
        assert got.dtype == want.dtype
        for a, b in zip(want.samples, got.samples, strict=True):
            assert a.shape == b.shape
            values = np.unique(a)
            if len(values) > 50:
                assert stats.ks_2samp(a.ravel(), b.ravel()).pvalue > 1e-4
                continue
            assert set(np.unique(b)) <= set(values)
            table = [[np.count_nonzero(x == v) for v in values] for x in (a, b)]
            if len(values) > 1:
                assert stats.chi2_contingency(table).pvalue > 1e-4


@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip", "beta"])
def test_shapes(name):
    shapes = [np.int32([1, 2]), np.int32([3, 1]), np.int32([0, 4])]
    lengths = [np.int32(n) for n in (1, 2, 3)]

    def graph(lib, x, shape, length):
        draw = getattr(lib.fn.random, name)
        return (
            draw(),
            draw(shape=3),
            draw(shape=[]),
            draw(shape=[2, 3]),
            draw(shape=[0, 2]),
            draw(shape=shape),
            draw(shape=length),
            draw(x),
            draw(lib.fn.cast(x, dtype=lib.types.FLOAT64)),
        )

    assert_alike(graph, IMAGES, shapes, lengths, layouts=["HWC", "", ""])


@pytest.mark.parametrize("dtype", TYPES)
def test_uniform_types(dtype):
    def graph(lib):
        kind = getattr(lib.types, dtype)
        uniform = lib.fn.random.uniform
        return (
            uniform(range=[0, 10], shape=[COUNT], dtype=kind),
            uniform(values=[1, 2.5, 99], shape=[COUNT], dtype=kind),
        )

    assert_same_distribution(graph, batch_size=1)


def test_uniform():
    def graph(lib):
        uniform = lib.fn.random.uniform
        return (
            uniform(shape=[COUNT]),
            uniform(shape=[COUNT], range=[5.0, 5.5]),
            uniform(shape=[COUNT], range=(-300, 300), dtype=lib.types.INT32),
            uniform(shape=[COUNT], values=7.0),
            uniform(shape=[COUNT], range=[-1e30, 1e30], dtype=lib.types.FLOAT64),
        )

    assert_same_distribution(graph, batch_size=1)


def test_uniform_arguments_a_sample():
    ranges = [np.float32([0, 1]), np.float32([5, 6]), np.float32([-1000, 1000])]
    values = [np.float32([0, 1]), np.float32([5]), np.float32([1, 2, 3, 300])]

    def graph(lib, r, v):
        uniform = lib.fn.random.uniform
        return (
            uniform(range=r, shape=[COUNT]),
            uniform(values=v, shape=[COUNT]),
            uniform(values=v, shape=[COUNT], dtype=lib.types.UINT8),
        )

    assert_same_distribution(graph, ranges, values)


@pytest.mark.parametrize("dtype", TYPES)
def test_normal_types(dtype):
    def graph(lib):
        kind = getattr(lib.types, dtype)
        return lib.fn.random.normal(mean=30, stddev=60, shape=[COUNT], dtype=kind)

    assert_same_distribution(graph, batch_size=1)


def test_normal_arguments_a_sample():
    means = [np.float32(1000), np.float32(-5), np.float32(0)]
    deviations = [np.float32(1), np.float32(0), np.float32(20)]

    def graph(lib, m, s):
        normal = lib.fn.random.normal
        return normal(mean=m, shape=[COUNT]), normal(mean=m, stddev=s, shape=[COUNT])

    assert_same_distribution(graph, means, deviations)


@pytest.mark.parametrize("dtype", ["BOOL", "UINT8", "INT32"])
def test_coin_flip(dtype):
    probabilities = [np.float32(p) for p in (0, 0.2, 1)]

    def graph(lib, p):
        flip = lib.fn.random.coin_flip
        kind = getattr(lib.types, dtype)
        return (
            flip(shape=[COUNT]),
            flip(shape=[COUNT], probability=0.7, dtype=kind),
            flip(shape=[COUNT], probability=p, dtype=kind),
        )

    assert_same_distribution(graph, probabilities)


def test_beta():
    alphas = [np.float32(a) for a in (0.3, 1, 40)]

    def graph(lib, a):
        beta = lib.fn.random.beta
        return (
            beta(shape=[COUNT]),
            beta(shape=[COUNT], alpha=0.2, beta=0.2, dtype=lib.types.FLOAT64),
            beta(shape=[COUNT], alpha=a, beta=2.0),
        )

    assert_same_distribution(graph, alphas)


@pytest.mark.parametrize(
    ("alpha", "beta"), [(0.003, 0.002), (3e-5, 2e-5), (1e-24, 2e-24), (3e-37, 1e-37)]
)
def test_beta_with_tiny_parameters(alpha, beta):
    def graph(lib):
        draw = lib.fn.random.beta
        return (
            draw(shape=[COUNT], alpha=alpha, beta=beta),
            draw(shape=[COUNT], alpha=alpha, beta=beta, dtype=lib.types.FLOAT64),
        )

    for found in outputs(graph):
        for batch in found:
            values = np.stack(batch.samples)
            assert np.count_nonzero((values < 0) | (values > 1)) == 0
            # Nearly all are 0 or 1, as often as the parameters say.
            assert abs(values.mean() - alpha / (alpha + beta)) < 0.015


def test_choice():
    counts = [np.int16(n) for n in (1, 2, 9)]
    rows = [np.arange(2 * n, dtype=np.float32).reshape(n, 2) for n in (1, 2, 5)]
    p = [np.float32([1]), np.float32([0.25, 0.75]), np.float32([0.1, 0.2, 0.3, 0.4, 0])]

    def graph(lib, n, a, p):
        choice = lib.fn.random.choice
        return (
            choice(n, shape=[COUNT]),
            choice(5, shape=[COUNT], p=[0.5, 0.2, 0, 0.2, 0.1]),
            choice([1.5, 2.5, 3.5], shape=[COUNT]),
            choice(a, shape=[COUNT]),
            choice(a, shape=[COUNT], p=p),
        )

    assert_same_distribution(graph, counts, rows, p, layouts=["", "", ""])


@pytest.mark.parametrize("dtype", ["uint8", "int64", "float16", "float64", "bool"])
def test_choice_types_shapes_and_layouts(dtype):
    lines = [np.array([1, 0, 3], dtype)] * 3
    planes = [np.array([[1, 0, 3], [4, 5, 6]], dtype)] * 3

    def graph(lib, line, plane, like):
        choice = lib.fn.random.choice
        return (
            choice(line),
            choice(line, shape=[4]),
            choice(line, like),
            choice(plane, shape=[4]),
            choice(plane),
            choice(plane, shape=[2, 2]),
        )

    assert_alike(graph, lines, planes, IMAGES, layouts=["W", "HW", "HWC"])


def test_the_same_seed_gives_the_same_numbers_and_other_iterations_others():
    def graph(lib):
        normal = lib.fn.random.normal
        return normal(seed=5, shape=[9]), normal(seed=5, shape=[9]), normal(seed=6, shape=[9])

    for library in ("dali", "headrace"):
        first, second = run_graph(library, graph, iterations=2)
        for iteration in (first, second):
            for a, b, c in zip(*(output.samples for output in iteration), strict=True):
                np.testing.assert_array_equal(a, b)
                assert (a != c).any()
        assert (first[0].samples[0] != second[0].samples[0]).any()


@pytest.mark.parametrize(
    "text",
    [
        "lib.fn.random.uniform(x, shape=[2])",
        "lib.fn.random.uniform(shape=[-1])",
        "lib.fn.random.uniform(range=[2, 1])",
        "lib.fn.random.uniform(range=[1, 1])",
        "lib.fn.random.uniform(range=[1])",
        "lib.fn.random.uniform(range=[1, 2, 3])",
        'lib.fn.random.uniform(range=[float("nan"), 1])',
        "lib.fn.random.uniform(dtype=lib.types.BOOL)",
        "lib.fn.random.normal(dtype=lib.types.BOOL)",
        "lib.fn.random.normal(x, shape=[2])",
        "lib.fn.random.beta(alpha=0.0)",
        "lib.fn.random.beta(beta=-1.0)",
        "lib.fn.random.beta(alpha=1e100)",
        "lib.fn.random.beta(dtype=lib.types.INT32)",
        "lib.fn.random.choice(0)",
        "lib.fn.random.choice(2.5)",
        "lib.fn.random.choice(3, p=[0.5, 0.5])",
        "lib.fn.random.choice(3, p=[1.0, 1.0, 1.0])",
    ],
)
def test_errors(text):
    assert_both_raise(graph_of(text, "x"), IMAGES, layouts="HWC")


@pytest.mark.parametrize(
    ("old", "new"),
    [("uniform", "uniform"), ("normal_distribution", "normal"), ("coin_flip", "coin_flip")],
)
def test_old_names_warn(old, new):
    for library in ("dali", "headrace"):
        with pytest.warns(DeprecationWarning, match=rf"random\.{new}"):
            run_graph(library, lambda lib: getattr(lib.fn, old)())
