"""Geometry of a batch of rotations has the bits of that of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels.cpu.sine import sine_and_cosine
from penstock.kernels.gpu import rotations
from penstock.operators.image import rotation


@pytest.fixture(autouse=True)
def gpu_runtime() -> None:
    """Nothing runs on a GPU here."""


_special = st.sampled_from([0.0, -0.0, 45.0, 90.0, -90.0, 180.0, 270.0, 360.0, 1e-7, 1e9, 6876.0])
angles = st.one_of(
    _special, st.floats(-720, 720, width=32), st.floats(-1e6, 1e6), st.floats(-1e-3, 1e-3)
)
extent = st.integers(0, 700)
direction = st.tuples(*[st.one_of(st.floats(-1, 1), st.sampled_from([0.0, 1e-30, 1e30]))] * 3)
directions = direction.filter(lambda axis: any(np.float32(v) for v in axis))


def same(batch, each):
    np.testing.assert_array_equal(np.asarray(batch), np.asarray(each))


@settings(deadline=None)
@given(st.lists(angles, min_size=1, max_size=8))
def test_sines_and_cosines(degrees):
    for angle in map(rotation.radians, degrees):
        found = rotations.sine_and_cosine(angle)
        same(np.array(found, np.float32).view(np.int32), bits(sine_and_cosine(angle)))


def bits(numbers):
    return np.array(numbers, np.float32).view(np.int32)


def few(rows):
    """One row where all are alike, as the engine has it."""
    return np.ascontiguousarray(rows[:1] if (rows == rows[:1]).all() else rows)


@settings(deadline=None)
@given(st.lists(st.tuples(extent, extent, angles), min_size=1, max_size=8))
def test_images(samples):
    extents = np.array([s[:2] for s in samples])
    degrees = np.array([s[2] for s in samples])
    canvases = np.empty_like(extents)
    matrices = np.empty((len(samples), 2, 3), np.float32)
    assert rotations.canvases_of_images(few(extents), few(degrees), rotation.SLACK, canvases)
    assert rotations.image_matrices(few(extents), canvases, few(degrees), matrices)
    for i, (height, width, angle) in enumerate(samples):
        expected = rotation.canvas_of_image((height, width), angle)
        same(canvases[i], rotation.common_canvas([expected]))
        same(matrices[i], rotation.image_matrix((height, width), canvases[i].tolist(), angle))


@settings(deadline=None)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(st.lists(st.tuples(extent, extent, extent, angles, directions), min_size=1, max_size=4))
def test_volumes(samples):
    extents = np.array([s[:3] for s in samples])
    degrees = np.array([s[3] for s in samples])
    axes = np.array([s[4] for s in samples])
    given_ = few(extents), few(degrees), few(axes)
    canvases = np.empty_like(extents)
    matrices = np.empty((len(samples), 3, 4), np.float32)
    assert rotations.canvases_of_volumes(*given_, rotation.SLACK, canvases)
    assert rotations.volume_matrices(few(extents), canvases, *given_[1:], matrices)
    for i, (*size, angle, axis) in enumerate(samples):
        same(canvases[i], rotation.common_canvas([rotation.canvas_of_volume(size, angle, axis)]))
        same(matrices[i], rotation.volume_matrix(size, canvases[i].tolist(), angle, axis))


@pytest.mark.parametrize("angle", [np.inf, -np.inf, np.nan])
def test_angles_that_are_none(angle):
    extents, degrees, axes = np.array([[4, 5]]), np.array([angle]), np.array([[0.0, 0.0, 1.0]])
    canvas, volume = np.array([[4, 5]]), np.array([[3, 4, 5]])
    assert not rotations.canvases_of_images(extents, degrees, rotation.SLACK, canvas.copy())
    assert not rotations.image_matrices(extents, canvas, degrees, np.empty((1, 2, 3), np.float32))
    given_ = volume, degrees, axes
    assert not rotations.canvases_of_volumes(*given_, rotation.SLACK, volume.copy())
    out = np.empty((1, 3, 4), np.float32)
    assert not rotations.volume_matrices(volume, *given_, out)
    assert not rotations.volume_matrices(volume, volume, np.array([30.0]), 0 * axes, out)
