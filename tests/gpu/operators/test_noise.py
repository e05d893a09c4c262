"""Noise on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.gpu.alike import check_alike, check_same_error
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

_rng = np.random.default_rng(0)
SHAPES = [(30, 41, 3), (9, 12, 3), (1, 1, 3), (0, 4, 3)]


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int64, np.float32])
def test_noise(dtype):
    rows = [_rng.integers(0, 100, shape).astype(dtype) for shape in SHAPES]
    shares = [np.float32(share) for share in (0.3, 0.5, 1.0, 0.0)]
    for layout, options in (
        ("HWC", {"prob": 0.4}),
        ("CHW", {"prob": shares, "salt_vs_pepper": 0.2, "salt_val": shares}),
        ("", {"prob": 0.4, "per_channel": True, "pepper_val": -3.0}),
    ):
        check_alike("noise.salt_and_pepper", rows, layout=layout, seed=5, iteration=2, **options)
    wrong = [np.float32(share) for share in (0.3, 1.5, 1.0, 0.0)]
    check_same_error("noise.salt_and_pepper", rows, prob=wrong, sample=1)
    for name, options in (
        ("gaussian", {"stddev": 20.0}),
        ("gaussian", {"stddev": shares, "mean": shares}),
        ("shot", {}),
        ("shot", {"factor": shares}),
    ):
        options = {"seed": 5, "iteration": 2, **options}
        got = run_gpu_operator(f"noise.{name}", rows, **options)
        wanted = run_cpu_operator_on_batch(f"noise.{name}", rows, **options)
        for one, other in zip(got, wanted, strict=True):
            far = np.abs(one.astype(np.float64) - other)
            if name == "shot":  # normal numbers on the edge of two Poisson numbers
                assert not far.size or (far > 0).mean() < 0.01
            elif dtype is np.float32:
                assert far.max(initial=0) < 1e-3
            else:  # what is on the edge of two levels
                assert far.max(initial=0) <= 1
                assert (far > 0).mean() < 0.01 if far.size else True
