"""`copy_view`: samples with gaps between short runs of elements."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.strided import copy_view


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_runs_of_all_lengths(dtype):
    data = np.random.default_rng(0).integers(0, 255, (40, 60, 35)).astype(dtype)
    views = [data[3:, 1::2, k : 2 * k + 1] for k in range(18)]
    for view in [
        *views,
        data[:, ::-1, 1:4],
        data[::-1, :, :3],
        data[:, :, 1],
        data[1],
        data[..., ::-1],
    ]:
        out = np.empty(view.shape, dtype)
        copy_view(view, out)
        np.testing.assert_array_equal(out, view)


@pytest.mark.parametrize("turned", [np.s_[::-1], np.s_[:, ::-1], np.s_[::-1, ::-1]])
def test_a_view_of_the_memory_that_is_written_to(turned):
    """As of an image that is decoded to its place in the batch, and mirrored there."""
    out = np.arange(40 * 70 * 3, dtype=np.uint8).reshape(40, 70, 3)
    expected = out[turned].copy()
    copy_view(out[turned], out)
    np.testing.assert_array_equal(out, expected)
