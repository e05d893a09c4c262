"""Geometry of a batch of rotations has the bits of that of each."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from penstock.kernels.cpu.sine import sine_and_cosine, sines_and_cosines
from penstock.operators.image import rotation, rotation_batch

_special = st.sampled_from([0.0, -0.0, 45.0, 90.0, -90.0, 180.0, 270.0, 360.0, 1e-7, 1e9, 6876.0])
angles = st.one_of(
    _special, st.floats(-720, 720, width=32), st.floats(-1e6, 1e6), st.floats(-1e-3, 1e-3)
)
extent = st.integers(0, 700)
direction = st.tuples(*[st.one_of(st.floats(-1, 1), st.sampled_from([0.0, 1e-30, 1e30]))] * 3)
directions = direction.filter(lambda axis: any(np.float32(v) for v in axis))


def same(batch, each):
    np.testing.assert_array_equal(np.asarray(batch), np.asarray(each))


@given(st.lists(angles, min_size=1, max_size=8))
def test_sines_and_cosines(degrees):
    values = rotation_batch.radians(np.array(degrees))
    same(values, [rotation.radians(d) for d in degrees])
    sines, cosines = sines_and_cosines(values)
    expected = [sine_and_cosine(v) for v in values]
    same(sines, [s for s, _ in expected])
    same(cosines, [c for _, c in expected])
    assert sines.dtype == cosines.dtype == np.float32


@given(st.lists(st.tuples(extent, extent, angles), min_size=1, max_size=8))
def test_images(samples):
    extents = np.array([s[:2] for s in samples])
    degrees = np.array([s[2] for s in samples])
    canvases = rotation_batch.canvases_of_images(extents, degrees)
    own = rotation_batch.own_canvases(canvases)
    matrices = rotation_batch.image_matrices(extents, own, degrees)
    for i, (height, width, angle) in enumerate(samples):
        tight, parity = expected = rotation.canvas_of_image((height, width), angle)
        same(canvases[0][i], tight)
        same(canvases[1][i], parity)
        same(own[i], rotation.common_canvas([expected]))
        same(matrices[i], rotation.image_matrix((height, width), own[i].tolist(), angle))


@settings(deadline=None)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@given(st.lists(st.tuples(extent, extent, extent, angles, directions), min_size=1, max_size=4))
def test_volumes(samples):
    extents = np.array([s[:3] for s in samples])
    degrees = np.array([s[3] for s in samples])
    axes = np.array([s[4] for s in samples])
    canvases = rotation_batch.canvases_of_volumes(extents, degrees, axes)
    own = rotation_batch.own_canvases(canvases)
    matrices = rotation_batch.volume_matrices(extents, own, degrees, axes)
    for i, (*size, angle, axis) in enumerate(samples):
        tight, parity = expected = rotation.canvas_of_volume(size, angle, axis)
        same(canvases[0][i], tight)
        same(canvases[1][i], parity)
        same(own[i], rotation.common_canvas([expected]))
        same(matrices[i], rotation.volume_matrix(size, own[i].tolist(), angle, axis))
