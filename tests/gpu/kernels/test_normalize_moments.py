"""Moments along any axes: exact where they can be, stable where they cannot, the same each time."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.gpu.normalize_blocks import along
from headrace.kernels.gpu.normalize_moments import estimated, moments
from tests.support.gpu.session import gpu_session


def noise(shape, dtype, low=0, high=100, seed=0):
    return (np.random.default_rng(seed).random(shape) * (high - low) + low).astype(dtype)


def moments_on_gpu(rows, axes, batch=False, scattered=True, **given):
    """Mean and the reciprocal of the deviation, for each sample with all its axes."""
    with gpu_session(scattered=scattered) as session:
        data = session.upload(rows)
        blocks = along(data.shapes, axes)
        parts = moments(session.queue, data, blocks, batch=batch)
        settings = {"ddof": 0, "epsilon": 0.0, "scale": 1.0, **given}
        mean, factor = estimated(session.queue, data.dtype, blocks, parts, None, None, **settings)
        session.synchronize()
        first, last = blocks.axes
        shapes = data.shapes.copy()
        shapes[:, first:last] = 1
        mean_type = np.float64 if rows[0].dtype in (np.int32, np.uint32) else np.float32

        def read(parameter, dtype):
            runtime = session.runtime
            with runtime.using(session.stream):
                return [
                    np.array(
                        runtime.array(int(a), tuple(s), np.dtype(dtype), None, None, 0).tolist(),
                        dtype,
                    ).reshape(s)
                    for a, s in zip(parameter.addresses, shapes.tolist(), strict=True)
                ]

        return read(mean, mean_type), read(factor, np.float32)


def check(rows, axes, **given):
    means, factors = moments_on_gpu(rows, axes, **given)
    for row, mean, factor in zip(rows, means, factors, strict=True):
        exact = row.astype(np.longdouble)
        expected = exact.mean(axis=axes, keepdims=True)
        np.testing.assert_allclose(
            mean, np.broadcast_to(expected, mean.shape).astype(float), rtol=1e-7
        )
        deviation = np.sqrt(((exact - expected) ** 2).mean(axis=axes, keepdims=True))
        expected = np.divide(1, deviation, out=np.zeros_like(deviation), where=deviation != 0)
        expected = np.broadcast_to(expected, factor.shape).astype(float)
        np.testing.assert_allclose(factor, expected, rtol=2e-7)


@pytest.mark.sweep
@pytest.mark.parametrize("columns", [1, 2, 3, 4, 5, 40, 300])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_columns(dtype, columns):
    check([noise((n, columns), dtype) for n in (1100, 2, 777)], (0,))


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int16", "uint32", "int32"])
def test_types(dtype):
    low = 0 if dtype[0] == "u" else -100
    check([noise((900, 3), dtype, low), noise((5, 3), dtype, low, seed=1)], (0,))
    check([noise((900, 7), dtype, low), noise((5, 7), dtype, low, seed=1)], (0,))


def test_several_chunks():
    check([noise((60_000,), "uint8"), noise((49_153,), "uint8"), noise((3,), "uint8")], (0,))
    check([noise((12_289,), "float32"), noise((30_000,), "float32")], (0,))
    check([noise((9_000, 20), "uint8"), noise((3, 20), "uint8")], (0,))


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((4, 5, 6), (0, 2)),
        ((4, 5, 6, 3), (0, 2)),
        ((4, 5, 6, 3), (1, 3)),
        ((2, 3, 4, 5, 6), (0, 2, 4)),
        ((2, 3, 4, 5, 6), (0, 2)),
        ((1, 3, 1, 5, 6), (0, 2, 4)),
        ((2, 400, 3, 100), (1, 3)),
    ],
)
def test_axes_apart(shape, axes):
    check([noise(shape, "float32"), noise(shape, "float32", seed=1)], axes)


def test_largest_numbers():
    for dtype, columns in [("uint16", 1), ("int16", 3), ("uint8", 3), ("int8", 2)]:
        info = np.iinfo(dtype)
        row = np.full((30_000, columns), info.max, dtype)
        row[::2] = info.min
        check([row], (0,))
        check([np.ascontiguousarray(np.repeat(row, 2, axis=1))], (0,))


@pytest.mark.parametrize("value", [0.1, 1e30, -7.25])
def test_equal_numbers_deviate_by_nothing(value):
    for size in (1, 5, 40_000):
        mean, factor = moments_on_gpu([np.full((size,), value, np.float32)], (0,))
        assert mean[0] == np.float32(value)
        assert factor[0] == 0


def test_small_differences_of_large_numbers():
    steps = np.arange(24_000) % 13
    check([(steps + 10**6).astype(np.float32)], (0,))
    check([(steps + 2 * 10**9).astype(np.int32)], (0,))
    outlier = steps.astype(np.float32)
    outlier[0] = 1e15  # what distances are taken from
    check([outlier], (0,))


def test_ddof_epsilon_and_scale():
    row = noise((50, 3), "float32")
    _, (factor,) = moments_on_gpu([row], (0,), ddof=1, epsilon=0.5, scale=3.0)
    expected = 3 / np.sqrt(row.astype(float).var(axis=0, ddof=1) + 0.5)
    np.testing.assert_allclose(factor[0], expected, rtol=2e-7)
    for ddof in (50, 60):
        _, (factor,) = moments_on_gpu([row], (0,), ddof=ddof, epsilon=0.25)
        assert (factor == 2).all()


def test_batch():
    for axes in [(0,), (0, 1), (0, 2)]:
        extents = [(n, m, 4) for n, m in zip((50, 3, 400), (7, 7, 7), strict=True)]
        rows = [noise(s, "float32", seed=i) for i, s in enumerate(extents)]
        whole = np.concatenate(rows).astype(float)
        means, factors = moments_on_gpu(rows, axes, batch=True)
        for mean, factor in zip(means, factors, strict=True):
            expected = whole.mean(axis=axes, keepdims=True)
            np.testing.assert_allclose(mean, np.broadcast_to(expected, mean.shape), rtol=1e-7)
            expected = 1 / whole.std(axis=axes, keepdims=True)
            np.testing.assert_allclose(factor, np.broadcast_to(expected, factor.shape), rtol=2e-7)


def test_the_same_wherever_samples_lie():
    rows = [noise((n, 3), "float32", seed=n) for n in (5000, 4001, 7)]
    together = moments_on_gpu(rows, (0,), scattered=False)
    apart = moments_on_gpu(rows, (0,), scattered=True)
    for a, b in zip(together, apart, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-7)
    again = moments_on_gpu(rows, (0,), scattered=False)
    np.testing.assert_equal(together, again)
