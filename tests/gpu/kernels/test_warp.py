"""`warp` gives what the CPU's does, to the last bit."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.warp import Warp
from headrace.kernels.gpu.warp import warp
from tests.support.gpu.session import gpu_session

TYPES = [
    ("uint8", "uint8"),
    ("int16", "int16"),
    ("int32", "int32"),
    ("float32", "float32"),
    ("uint8", "float32"),
    ("int32", "float32"),
    ("float32", "uint8"),
    ("float32", "int32"),
]
IMAGES = [(40, 70), (1, 1), (33, 300), (5, 2)], [(50, 61), (3, 3), (40, 310), (1, 130)]
VOLUMES = [(4, 10, 20), (1, 1, 1), (3, 9, 70)], [(5, 12, 22), (2, 3, 3), (7, 20, 30)]


def noise(shape, dtype, seed=0):
    values = np.random.default_rng(seed).random(shape) * 300 - 20
    return np.clip(values, 0, 255).astype(dtype) if dtype == "uint8" else values.astype(dtype)


def matrices(rank, count, seed=0):
    random = np.random.default_rng(seed)
    linear = np.eye(rank) + random.normal(size=(count, rank, rank)) * 0.3
    offset = random.normal(size=(count, rank, 1)) * 3
    return np.concatenate([linear, offset], axis=2).astype(np.float32)


def warp_on_gpu(rows, shapes, dtype, matrices, scattered=True, **given):
    with gpu_session(scattered=scattered) as session:
        out = session.queue.empty(np.array(shapes), dtype)
        warp(session.queue, session.upload(rows), out, matrices, **given)
        return session.download(out)


def check(rows, shapes, dtype, matrices, **given):
    found = warp_on_gpu(rows, shapes, dtype, matrices, **given)
    for row, shape, matrix, got in zip(rows, shapes, matrices, found, strict=True):
        expected = np.empty(shape, dtype)
        Warp(row.dtype, expected.dtype, **given)(row, expected, matrix)
        np.testing.assert_array_equal(got, expected)


@pytest.mark.sweep
@pytest.mark.parametrize("fill", [None, 7.5, -300.0])
@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("types", TYPES, ids=" to ".join)
def test_types(types, nearest, fill):
    rows = [noise((*shape, 3), types[0]) for shape in IMAGES[0]]
    shapes = [(*shape, 3) for shape in IMAGES[1]]
    check(rows, shapes, types[1], matrices(2, 4), nearest=nearest, fill=fill)


@pytest.mark.sweep
@pytest.mark.parametrize("fill", [None, 7.5])
@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("channels", [1, 2, 4, 5])
def test_channels(channels, nearest, fill):
    rows = [noise((*shape, channels), "uint8") for shape in IMAGES[0]]
    shapes = [(*shape, channels) for shape in IMAGES[1]]
    check(rows, shapes, "uint8", matrices(2, 4, seed=1), nearest=nearest, fill=fill)


def test_samples_of_different_channels():
    channels = [1, 3, 4, 17]
    rows = [noise((*s, c), "uint8") for s, c in zip(IMAGES[0], channels, strict=True)]
    shapes = [(*s, c) for s, c in zip(IMAGES[1], channels, strict=True)]
    check(rows, shapes, "uint8", matrices(2, 4), nearest=False, fill=None)


@pytest.mark.sweep
@pytest.mark.parametrize("fill", [None, 7.5])
@pytest.mark.parametrize("nearest", [False, True])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_volumes(dtype, channels, nearest, fill):
    rows = [noise((*shape, channels), dtype) for shape in VOLUMES[0]]
    shapes = [(*shape, channels) for shape in VOLUMES[1]]
    check(rows, shapes, dtype, matrices(3, 3), nearest=nearest, fill=fill)


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_points_far_outside(dtype):
    rows = [noise((4, 5, 1), dtype)] * 2
    far = np.array([[[1e12, 0, -3e18], [0, -1e12, 1]]] * 2, np.float32)
    for fill in (None, 3.0):
        for nearest in (False, True):
            check(rows, [(7, 9, 1)] * 2, dtype, far, nearest=nearest, fill=fill)


def turned(degrees, shape, out, zoom=1.0):
    """A rotation about the centres of both images."""
    angle = np.deg2rad(degrees)
    linear = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]) / zoom
    centre, target = np.array(shape[1::-1]) / 2, np.array(out[1::-1]) / 2
    return np.column_stack([linear, centre - linear @ target]).astype(np.float32)


@pytest.mark.parametrize("fill", [None, 7.5])
@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_turned_bytes(channels, fill):
    angles = [0, 10, -26.5, 45, 63, 90, 180, 271]
    shapes = [(75 + k, 290 + k, channels) for k in range(8)]
    outs = [(*shape[1::-1], channels) if k % 3 else shape for k, shape in enumerate(shapes)]
    maps = np.stack([turned(*args) for args in zip(angles, shapes, outs, strict=True)])
    rows = [noise(shape, "uint8", k) for k, shape in enumerate(shapes)]
    check(rows, outs, "uint8", maps, nearest=False, fill=fill)


@pytest.mark.parametrize("fill", [None, 7.5])
@pytest.mark.parametrize("zoom", [0.3, 0.9, 20])
def test_scaled_bytes(zoom, fill):
    shapes = [(150, 160, 3), (41, 43, 3), (4, 4, 3)]
    maps = np.stack([turned(20, shape, shapes[0], zoom) for shape in shapes])
    rows = [noise(shape, "uint8", k) for k, shape in enumerate(shapes)]
    check(rows, [shapes[0]] * 3, "uint8", maps, nearest=False, fill=fill)


@pytest.mark.parametrize("fill", [None, 7.5])
def test_narrow_bytes(fill):
    shapes = [(9, 3, 3), (50, 60, 3)]
    maps = np.stack([turned(20, shape, shapes[1]) for shape in shapes])
    rows = [noise(shape, "uint8") for shape in shapes]
    check(rows, [shapes[1]] * 2, "uint8", maps, nearest=False, fill=fill)


def test_not_a_number_is_blended_where_it_is_a_neighbour():
    row = noise((9, 9, 1), "float32")
    row[4, 4], row[2, 2] = np.nan, np.inf
    for dtype in ("float32", "int32", "uint8"):
        for nearest in (False, True):
            check([row], [(9, 9, 1)], dtype, matrices(2, 1), nearest=nearest, fill=None)


def test_empty_inputs_are_filled_and_empty_outputs_left():
    rows = [np.zeros((0, 4, 3), np.uint8), noise((6, 7, 3), "uint8"), noise((2, 2, 3), "uint8")]
    shapes = [(3, 5, 3), (0, 4, 3), (5, 4, 3)]
    for nearest in (False, True):
        check(rows, shapes, "uint8", matrices(2, 3), nearest=nearest, fill=2.5)
        check(rows, [(3, 0, 3)] * 3, "uint8", matrices(2, 3), nearest=nearest, fill=None)


def test_an_empty_input_is_filled_without_its_type():
    rows = [np.zeros((0, 4, 1), np.uint8), noise((1, 1, 1), "uint8")]
    check(rows, [(3, 5, 1)] * 2, "float32", matrices(2, 2), nearest=False, fill=0.25)


def test_one_launch(emulated_gpu):
    with gpu_session() as session:
        before = len(emulated_gpu.launches)
        rows = [noise((*shape, 3), "uint8") for shape in IMAGES[0]]
        out = session.queue.empty(np.array([(9, 9, 3)] * 4), "uint8")
        batch = session.upload(rows)
        warp(session.queue, batch, out, matrices(2, 4), nearest=True, fill=None)
        assert len(emulated_gpu.launches) == before + 1
