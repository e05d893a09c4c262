"""`debayer` on the GPU, against a pixel at a time of what NPP is documented to do."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ArgumentValueError
from tests.support.gpu.alike import check_same_error
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

_rng = np.random.default_rng(0)
POSITIONS = [(0, 0), (0, 1), (1, 0), (1, 1)]
SHAPES = [(8, 10), (2, 2), (20, 4), (2, 38), (0, 4), (6, 2)]


def mosaics(dtype):
    most = np.iinfo(dtype).max
    images = [_rng.integers(0, most, s, dtype, endpoint=True) for s in SHAPES]
    images[0][2:5] = most  # where both axes are alike
    return images


def expected(image, position):
    """The colours of each pixel, from the 5 x 5 pixels around it."""
    height, width = image.shape
    around = np.pad(image.astype(np.int64), 2, "reflect")
    out = np.empty((height, width, 3), np.int64)
    for y in range(height):
        for x in range(width):
            near = around[y : y + 5, x : x + 5]
            row, column = near[2], near[:, 2]
            blue_row, blue_column = (y + 1) % 2 == position[0], (x + 1) % 2 == position[1]
            if blue_row == blue_column:
                sideways = abs(row[2] - (row[0] + row[4]) // 2)
                down = abs(row[2] - (column[0] + column[4]) // 2)
                axes = [row, column, np.stack([row, column])]
                best = axes[0 if sideways < down else 1 if down < sideways else 2]
                green = best[..., [1, 3]].sum() // (best.size // 5 * 2)
                corners = near[1:4:2, 1:4:2].sum() // 4
                levels = (corners, green, row[2]) if blue_row else (row[2], green, corners)
            else:
                beside, above = row[1:4:2].sum() // 2, column[1:4:2].sum() // 2
                levels = (above, row[2], beside) if blue_row else (beside, row[2], above)
            out[y, x] = levels
    return out.astype(image.dtype)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16])
def test_levels(dtype):
    images = mosaics(dtype)
    each = [np.int32(POSITIONS[k % 4]) for k in range(len(images))]
    for position in (*POSITIONS, each):
        for algorithm in ({}, {"algorithm": "default_npp"}):
            options = {"blue_position": position, **algorithm}
            got = run_gpu_operator("debayer", images, layout="HW", **options)
            channels = [image[..., np.newaxis] for image in images]
            again = run_gpu_operator("debayer", channels, layout="HWC", **options)
            for k, image in enumerate(images):
                at = position[k].tolist() if position is each else position
                if image.size:
                    np.testing.assert_array_equal(got[k], expected(image, at), f"{k} {at}")
                np.testing.assert_array_equal(again[k], got[k])


def test_close_to_the_cpu():
    """Colours are where OpenCV puts them."""
    y, x = np.mgrid[:40, :60]
    smooth = np.stack([40 + 3 * x, 90 + 2 * y, 200 - 2 * x - y], axis=-1).clip(0, 255)
    for row, column in POSITIONS:
        is_blue, is_red = (((y + k) % 2 == row) & ((x + k) % 2 == column) for k in (1, 0))
        plane = np.where(is_blue, 2, np.where(is_red, 0, 1))
        image = np.take_along_axis(smooth, plane[..., np.newaxis], -1)[..., 0].astype(np.uint8)
        options = {"layout": "HW", "blue_position": (row, column)}
        (got,) = run_gpu_operator("debayer", [image], **options)
        (wanted,) = run_cpu_operator_on_batch("debayer", [image], **options)
        inside = np.s_[2:-2, 2:-2]
        np.testing.assert_allclose(got[inside], smooth[inside], atol=2)
        np.testing.assert_allclose(got[inside].astype(int), wanted[inside], atol=2)


def test_sequences_and_errors():
    sequences = [_rng.integers(0, 255, (n, 4, 6), np.uint8) for n in (3, 1, 2)]
    got = run_gpu_operator("debayer", sequences, layout="FHW", blue_position=(0, 1))
    for frames, colors in zip(sequences, got, strict=True):
        for frame, color in zip(frames, colors, strict=True):
            np.testing.assert_array_equal(color, expected(frame, (0, 1)))
    images = [sequences[0][0], sequences[0][0][:3]]
    check_same_error("debayer", images, layout="HW", blue_position=(0, 0), sample=1)
    for name in ("bilinear_ocv", "gray_ocv"):
        with pytest.raises(ArgumentValueError, match=f"{name} algorithm is not supported on GPU"):
            run_gpu_operator(
                "debayer", images[:1], layout="HW", blue_position=(0, 0), algorithm=name
            )
