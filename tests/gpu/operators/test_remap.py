"""`experimental.remap`, `jitter` and `experimental.resize` on the GPU against the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIInterpType
from tests.support.gpu.alike import check_alike, check_same_error
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

_rng = np.random.default_rng(0)
SHAPES = [(20, 31, 3), (9, 14, 1), (1, 1, 1), (5, 7, 6), (0, 4, 3)]


def images(dtype, shapes=SHAPES):
    return [(_rng.random(shape) * 200).astype(dtype) for shape in shapes]


def maps(shapes=SHAPES):
    return [[np.float32(_rng.random(s[:2]) * (s[k] + 4) - 2) for s in shapes] for k in (1, 0)]


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_maps(dtype):
    for kind in ("NN", "LINEAR", "CUBIC"):
        for origin in ("corner", "center"):
            options = {"interp": DALIInterpType[f"INTERP_{kind}"], "pixel_origin": origin}
            inputs = images(dtype), *maps()
            got = run_gpu_operator("experimental.remap", *inputs, layout="HWC", **options)
            wanted = run_cpu_operator_on_batch(
                "experimental.remap", *inputs, layout="HWC", **options
            )
            for a, b in zip(got, wanted, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                far = np.abs(a.astype(np.float64) - b.astype(np.float64))
                assert far.max(initial=0) <= (1 if dtype == np.uint8 and kind != "NN" else 1e-3)
                assert (far > 1e-3).mean() < 0.01 if far.size else True
    frames = images(dtype, [(3, 6, 8, 3), (1, 5, 4, 3)])
    each = [np.stack([np.float32(_rng.random(f.shape[1:3]) * 6) for _ in f]) for f in frames]
    options = {"layout": ("FHWC", "FHW", "FHW"), "interp": DALIInterpType.INTERP_NN}
    check_alike("experimental.remap", frames, each, each, **options)
    rows, (x, y) = images(dtype), maps()
    check_same_error("experimental.remap", rows[:2], x[:2], [y[0], y[0]], layout="HWC", sample=1)


def test_jitter():
    for dtype in (np.uint8, np.float32):
        rows = images(dtype)
        masks = [np.int32(k % 2) for k in range(len(rows))]
        for options in ({}, {"nDegree": 7}, {"mask": masks, "nDegree": 3}):
            check_alike("jitter", rows, layout="HWC", seed=3, **options)
            check_alike("jitter", rows, layout="HWC", seed=3, iteration=2, **options)


def test_the_other_resize():
    rows = images(np.uint8)[:4]
    for options in ({"size": [9, 7]}, {"resize_x": [np.float32(k) for k in (3, 9, 4, 30)]}):
        got, wanted = (
            run_gpu_operator(name, rows, layout="HWC", **options)
            for name in ("experimental.resize", "resize")
        )
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(a, b)
