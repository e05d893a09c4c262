"""`slice` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIDataType as T
from tests.support.gpu.alike import check_alike, check_same_error, each

_rng = np.random.default_rng(0)
IMAGES = [_rng.integers(0, 256, (*s, 3), np.uint8) for s in [(30, 41), (9, 12), (24, 9), (17, 17)]]
SIGNALS = [_rng.standard_normal(n).astype(np.float32) for n in (100, 1, 37, 2000)]


@pytest.mark.parametrize(
    "arguments",
    [
        {"start": (2,), "end": (9,), "axes": (0,)},
        {"start": (2, 3), "shape": (4, 5), "axes": (1, 0)},
        {"rel_start": (0.1, 0.2), "rel_end": (0.7, 0.9), "axis_names": "HW"},
        {"rel_start": (0.1, 0.2), "rel_shape": (0.6, 0.7), "axis_names": "WH"},
        {"start": (1, 0, 1), "end": (5, 5, 3), "axes": ()},
        {"rel_shape": (0.5,), "axes": (-1,)},
        {"start": (2,), "rel_shape": (0.5,), "axes": (0, 1)},
        {"end": (3,), "axis_names": "C"},
    ],
)
def test_named_arguments(arguments):
    check_alike("slice", IMAGES, layout="HWC", **arguments)
    check_alike("slice", IMAGES, layout="HWC", dtype=T.FLOAT, **arguments)


def test_arguments_by_sample():
    check_alike("slice", IMAGES, layout="HWC", start=each(1, 2, 3, 4, dtype=np.int32), axes=(0,))
    check_alike(
        "slice",
        IMAGES,
        layout="HWC",
        rel_start=each((0, 0.5), (0.2, 0.3), (0.4, 0.1), (0, 0)),
        rel_shape=each((1, 0.5), (0.2, 0.3), (0.4, 0.1), (0, 1)),
        axis_names="HW",
    )
    axes = each((0, 1), (1, 0), (2, 0), (0, 2), dtype=np.int32)
    check_alike("slice", IMAGES, layout="HWC", start=(1, 2), end=(3, 3), axes=axes)


@pytest.mark.parametrize("normalized", [True, False])
def test_positional_inputs(normalized):
    anchors = each((0.1, 0.2), (0.5, 0.5), (0, 0), (0.25, 0.125))
    shapes = each((0.5, 0.2), (0.5, 0.5), (1, 1), (0.5, 0.5))
    arguments = {"normalized_anchor": normalized, "normalized_shape": normalized}
    check_alike("slice", IMAGES, anchors, shapes, layout=("HWC", "", ""), **arguments)
    whole = [(10 * value).astype(np.int32) for value in anchors]
    sizes = [(4 * value).astype(np.int32) for value in shapes]
    check_alike("slice", IMAGES, whole, sizes, layout=("HWC", "", ""))


@pytest.mark.parametrize(
    "policy", ["pad", "edge", "reflect", "reflect_101", "wrap", "trim_to_shape"]
)
def test_signals(policy):
    arguments = {"axes": (0,), "out_of_bounds_policy": policy, "fill_values": (0.5,)}
    check_alike("slice", SIGNALS, start=(-30,), shape=(150,), **arguments)
    check_alike("slice", SIGNALS, start=(-3,), end=(3,), dtype=T.FLOAT16, **arguments)
    check_alike("slice", SIGNALS, start=each(20, 0, 10, -5, dtype=np.int32), **arguments)


def test_ranks():
    for rank in range(1, 7):
        rows = [_rng.integers(0, 256, [3 + k for k in range(rank)], np.uint8) for _ in range(2)]
        check_alike("slice", rows, start=(1,) * rank, end=(3,) * rank, axes=())
        check_alike(
            "slice",
            rows,
            start=(-1,) * rank,
            end=(4,) * rank,
            axes=tuple(range(rank)),
            out_of_bounds_policy="pad",
            fill_values=(9,),
        )


def test_numbers_without_axes():
    rows = each(1, 2, 3)
    check_alike("slice", rows, start=(), axes=())
    check_alike("slice", rows, start=(), axes=(), dtype=T.UINT8)


def test_errors_name_the_sample():
    check_same_error("slice", IMAGES, layout="HWC", start=(2,), end=(20,), axes=(0,), sample=1)
    start = each(0, 1, 9, 2, dtype=np.int32)
    check_same_error("slice", IMAGES, layout="HWC", start=start, end=(5,), axes=(0,), sample=2)
    shape = each(0, 1, -9, 2, dtype=np.int32)
    check_same_error("slice", IMAGES, layout="HWC", shape=shape, axes=(0,), sample=2)
    axes = each((0, 1), (1, 0), (2, 2), (0, 2), dtype=np.int32)
    check_same_error("slice", IMAGES, layout="HWC", start=(1, 2), axes=axes, sample=2)
    check_same_error("slice", IMAGES, layout="HWC", start=(1, 2, 3), axes=(0, 1), sample=0)
    pair = [each((0.1, 0.2), (0.5, 0.5), (0, 0), (0.1, np.nan)), each(*[(0.5, 0.5)] * 4)]
    check_same_error("slice", IMAGES, *pair, layout=("HWC", "", ""), sample=3)
    pair = [each((0.1,), (0.5,), (0,), (0.1,)), each(*[(0.5, 0.5)] * 4)]
    check_same_error("slice", IMAGES, *pair, layout=("HWC", "", ""), sample=0)
