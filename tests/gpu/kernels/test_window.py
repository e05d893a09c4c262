"""Windows that leave the data or change its type: the kernels of the CPU are the reference."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.pad import pad_window
from headrace.kernels.gpu.window import window
from headrace.tensors.gpu.batch import StridedBatch
from tests.support.gpu.session import gpu_session

POLICIES = ["constant", "edge", "reflect_1001", "reflect_101", "wrap"]
INTEGERS = [np.dtype(kind + str(size)) for kind in "ui" for size in (1, 2, 4, 8)]
TYPES = [np.dtype(np.bool_), *INTEGERS, *(np.dtype(f"f{size}") for size in (2, 4, 8))]
TARGETS = [np.dtype(np.uint8), np.dtype(np.float16), np.dtype(np.float32)]


def check(rows, anchors, shapes, policy="constant", target=None, fill=(0,), fill_axis=-1):
    source = rows[0].dtype
    target = source if target is None else np.dtype(target)
    fill = np.array(fill).astype(target)
    convert = None if source == target else converter(source, target, rounded=False)
    ndim = rows[0].ndim
    with gpu_session(scattered=True) as session:
        batch = StridedBatch.of(session.upload(rows))
        out = session.queue.empty(np.array(shapes, np.int64).reshape(len(rows), ndim), target)
        places = np.array(anchors, np.int64).reshape(len(rows), ndim)
        window(session.queue, batch, places, out, policy=policy, fill=fill, fill_axis=fill_axis)
        found = session.download(out)
    for row, anchor, got in zip(rows, anchors, found, strict=True):
        expected = np.empty(got.shape, target)
        if not ndim:
            (convert or _copy)(row, expected)
        else:
            extents = [1] * ndim
            extents[fill_axis] = len(fill)
            colour = fill.reshape(extents) if policy == "constant" else None
            pad_window(row, anchor, expected, policy=policy, fill=colour, move=convert)
        np.testing.assert_array_equal(got, expected)


def _copy(source, out):
    np.copyto(out, source)


def random_case(ndim, *, dtype=np.uint8, empty=False, seed=0, scale=300.0):
    """Data, anchors and shapes of a ragged batch."""
    rng = np.random.default_rng(seed)
    rows, anchors, shapes = [], [], []
    for index in range(4):
        extents = rng.integers(1, 9, ndim)
        if ndim and empty and index == 3:
            extents[0] = 0
        values = np.asarray(rng.standard_normal(tuple(extents)) * scale)
        if np.dtype(dtype).kind == "u":
            values = np.abs(values)
        rows.append(values.astype(dtype))
        anchors.append(tuple(rng.integers(-12, 12, ndim).tolist()))
        shapes.append(tuple(rng.integers(0, 20, ndim).tolist()))
    return rows, anchors, shapes


@pytest.mark.sweep
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("ndim", range(7))
def test_ranks(ndim, policy):
    seed = ndim
    rows, anchors, shapes = random_case(ndim, empty=policy == "constant", seed=seed)
    if ndim > 4:
        shapes = [tuple(min(extent, 4) for extent in shape) for shape in shapes]
    check(rows, anchors, shapes, policy, fill=(7,))


@pytest.mark.sweep
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("itemsize", [2, 4, 8])
def test_sizes_of_elements(itemsize, policy):
    check(*random_case(3, dtype=f"u{itemsize}", seed=itemsize), policy, fill=(9,))


@pytest.mark.sweep
@pytest.mark.parametrize("target", TARGETS, ids=str)
@pytest.mark.parametrize("source", TYPES, ids=str)
def test_conversions(source, target):
    if source == target:
        return
    check(*random_case(2, dtype=source, seed=3), target=target, fill=(5,))
    special = [np.array([0.4, 0.6, 1.5, 254.5, 255.5, -0.6]).astype(source)]
    if source.kind == "f":
        with np.errstate(over="ignore"):
            special += [
                np.array([np.nan, np.inf, -np.inf, 65519.0, 65520.0, -1e30]).astype(source),
                np.array([1e300, -1e300, 3.4e38, 1e-7, 6e-8, -0.0]).astype(source),
            ]
    elif source.kind in "iu":
        info = np.iinfo(source)
        special += [np.array([info.min, info.max, 0, 1, 255 % (info.max + 1), 100], source)]
    check(special, [(0,)] * len(special), [(6,)] * len(special), target=target)


@pytest.mark.parametrize("target", [None, np.float32])
def test_a_fill_value_a_channel(target):
    rng = np.random.default_rng(0)
    rows = [rng.integers(0, 256, (20, 30, 3), np.uint8), rng.integers(0, 256, (5, 9, 3), np.uint8)]
    shapes = [(40, 50, 3), (3, 3, 3)]
    places = [(-5, -7, 0), (3, 8, 0)]
    check(rows, places, shapes, target=target, fill=(1, 2, 3), fill_axis=2)
    planes = [np.ascontiguousarray(row.transpose(2, 0, 1)) for row in rows]
    shapes = [(3, 40, 50), (3, 3, 3)]
    places = [(0, -5, -7), (0, 3, 8)]
    check(planes, places, shapes, target=target, fill=(1, 2, 3), fill_axis=0)
    check(planes, places, [(3, 40, 50), (3, 3, 3)], target=target, fill=(4,))
    shapes = [(3, 40, 3), (3, 3, 3)]
    check(planes, [(0, -5, 7), (0, 3, 8)], shapes, target=target, fill=(1, 2, 3), fill_axis=2)
    check(planes, [(0, -5, 7), (0, 3, 8)], [(2, 3, 9)] * 2, fill=(1, 2, 3), fill_axis=1)


@pytest.mark.parametrize("policy", POLICIES)
def test_rows_longer_than_a_piece(policy):
    rows = [np.arange(6001, dtype=np.uint32).astype(np.uint8), np.arange(7, dtype=np.uint8)]
    check(rows, [(-1001,), (-3000,)], [(9000,), (6005,)], policy, fill=(3,))
    wide = [np.random.default_rng(0).integers(0, 256, (3, 1500, 3), np.uint8)]
    check(wide, [(-1, -5, 0)], [(5, 1600, 3)], policy, fill=(3,))
    check(wide, [(0, 5, 0)], [(3, 1400, 3)], policy, np.float32, fill=(3,))


@pytest.mark.sweep
@pytest.mark.parametrize("far", [1 << 40, -(1 << 40), 1 << 61, -(1 << 61)])
@pytest.mark.parametrize("policy", POLICIES)
def test_far_away(policy, far):
    rows = [np.arange(12, dtype=np.uint8).reshape(3, 4)]
    if abs(far) > 1 << 41 and policy not in ("constant", "edge"):
        far >>= 10  # NumPy's own arithmetic ends there
    check(rows, [(far, 1)], [(5, 6)], policy, fill=(9,))
    check(rows, [(1, far)], [(5, 6)], policy, fill=(9,))


@pytest.mark.parametrize("policy", POLICIES)
def test_views(policy):
    rng = np.random.default_rng(1)
    rows = [rng.integers(0, 256, shape, np.uint8) for shape in ((30, 20, 3), (9, 14, 3))]
    with gpu_session() as session:
        batch = StridedBatch.of(session.upload(rows)).flipped(1, np.array([True, False]))
        batch = batch.permuted((2, 0, 1))
        out = session.queue.empty(np.array([[3, 40, 35], [3, 8, 20]]), np.float32)
        anchors = np.array([[0, -3, -9], [0, 2, -2]])
        fill = np.array([8], np.float32)
        window(session.queue, batch, anchors, out, policy=policy, fill=fill)
        found = session.download(out)
    views = [rows[0][:, ::-1].transpose(2, 0, 1), rows[1].transpose(2, 0, 1)]
    for view, anchor, got in zip(views, anchors.tolist(), found, strict=True):
        expected = np.empty(got.shape, np.float32)
        pad_window(
            view.astype(np.float32), anchor, expected, policy=policy, fill=fill.reshape(1, 1, 1)
        )
        np.testing.assert_array_equal(got, expected)
