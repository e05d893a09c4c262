"""`rotate` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, ShapeError
from headrace.types import DALIDataType, DALIInterpType
from tests.support.gpu.alike import check_alike, each
from tests.support.gpu.run_operator import run_gpu_operator

same = partial(check_alike, "rotate", layout="HWC")

SHAPES = [(31, 44), (1, 1), (9, 70), (64, 5)]


def noise(*shape, dtype="uint8"):
    return (np.random.default_rng(0).random(shape) * 200).astype(dtype)


def images(dtype="uint8", channels=3):
    return [noise(*shape, channels, dtype=dtype) for shape in SHAPES]


def volumes():
    return [noise(*shape, 1) for shape in [(4, 9, 12), (1, 1, 1), (3, 20, 7), (2, 2, 2)]]


@pytest.mark.parametrize("angle", [0.0, 90.0, -90.0, 180.0, 270.0, 1e-4, 33.0, 1234.5])
def test_angles(angle):
    same(images(), angle=angle)


def test_quarter_turns_move_pixels():
    for turns in range(-3, 4):
        for image, turned in zip(images(), same(images(), angle=90.0 * turns), strict=True):
            np.testing.assert_array_equal(turned, np.rot90(image, turns))


@pytest.mark.parametrize("interpolation", [DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
def test_types(dtype, interpolation):
    given = {"angle": each(10, -20, 30, 170), "interp_type": interpolation}
    same(images(dtype), **given)
    same(images(dtype), dtype=DALIDataType.FLOAT, fill_value=3.5, **given)


def test_angles_and_sizes_by_sample():
    same(
        images(),
        angle=each(10, [-20], 30, 170),
        size=each((20, 30), (4, 5), (0, 7), (33.7, 3.2)),
        fill_value=11,
    )
    same(images(), angle=each(10, -20, 30, 170), keep_size=True)
    same(images(), angle=35.0, size=(20.5, 30.2))


def test_volumes():
    directions = each((0, 0, 1), (1, 2, 3), (-1, 0.5, 0), (1e-30, 0, 0))
    same(volumes(), layout="DHWC", angle=each(10, 20, 90, -45), axis=directions)
    same(volumes(), layout="DHWC", angle=33.0, axis=(1, 1, 1), fill_value=9)
    same(volumes(), layout="DHWC", angle=33.0, axis=(1, 1, 1), keep_size=True)
    same(
        volumes(),
        layout="DHWC",
        angle=33.0,
        axis=(1, 1, 1),
        size=each(*[(3, 4, 5)] * 4, dtype="int32"),
    )


def test_sequences():
    data = [noise(3, 12, 17, 3), noise(1, 8, 9, 3), noise(2, 5, 5, 3)]
    same(data, layout="FHWC", angle=each(20, 40, 60))
    by_frame = [np.array(v, np.float32) for v in ([10, 20, 70], [5], [0, 90])]
    same(data, layout="FHWC", angle=by_frame, arg_layouts={"angle": "F"})
    same(data, layout="FHWC", angle=by_frame, arg_layouts={"angle": "F"}, keep_size=True)
    same(
        [x[:, None] for x in data],
        layout="FDHWC",
        angle=by_frame,
        arg_layouts={"angle": "F"},
        axis=(1, 2, 3),
    )


def test_empty_images():
    empty = [np.zeros(s, np.uint8) for s in [(0, 4, 3), (4, 0, 3), (4, 4, 0)]]
    same(empty, angle=30.0, keep_size=True)
    same(empty, angle=30.0, size=(2, 5), fill_value=7)
    with pytest.raises(ShapeError, match=r"\(4, 0, 3\).*`fill_value`[^$]*sample 1"):
        run_gpu_operator(
            "rotate", [noise(3, 3, 3), np.zeros((4, 0, 3), np.uint8)], layout="HWC", angle=30.0
        )


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"angle": each(0, 0, np.nan, 0)}, r"`angle` must be a finite number, got nan"),
        ({"angle": 1.0, "size": each((2, 2), (2, 2), (-1, 3), (2, 2))}, "must not be negative"),
        ({"angle": 1.0, "size": each((2, 2), (2, 2), (1, 3, 4), (2, 2))}, "`size` has 3 numbers"),
    ],
)
def test_errors_name_the_sample(given, message):
    with pytest.raises(ArgumentValueError, match=rf"{message}[^$]*sample 2"):
        run_gpu_operator("rotate", images(), layout="HWC", **given)


def test_axes_that_are_none():
    for axis in ((0, 0, 0), (0, np.inf, 0), (1, 2)):
        with pytest.raises(ArgumentValueError, match=r"`axis` must be 3 finite"):
            run_gpu_operator("rotate", volumes(), layout="DHWC", angle=1.0, axis=axis)


def test_values_of_different_lengths_that_are_all_right():
    same(
        volumes(),
        layout="DHWC",
        angle=3.0,
        axis=each((0, 0, 1), ((0, 0, 1),), (1, 2, 3), (3, 2, 1)),
    )
