"""`resize_crop_mirror` and `fast_resize_crop_mirror` on the GPU give what they give on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ArgumentValueError
from tests.support.gpu.alike import check_alike, each, random_rows
from tests.support.gpu.run_operator import run_gpu_operator

SHAPES = [(40, 57, 3), (61, 33, 3), (100, 80, 3), (30, 30, 3)]


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("name", ["resize_crop_mirror", "fast_resize_crop_mirror"])
@pytest.mark.parametrize("crop", [(25, 28), (28, 25), (75, 78)])
@pytest.mark.parametrize("mirror", [0, 1, 2, 3])
def test_windows(name, crop, mirror):
    rows = random_rows(*SHAPES)
    check_alike(name, rows, layout="HWC", resize_shorter=30, crop=crop, mirror=mirror)


@pytest.mark.parametrize("name", ["resize_crop_mirror", "fast_resize_crop_mirror"])
def test_arguments_by_sample(name):
    check_alike(
        name,
        random_rows(*SHAPES),
        layout="HWC",
        resize_shorter=each(30, 44, 20, 17),
        crop=each((25, 28), (10, 11), (20, 20), (7, 9)),
        crop_pos_x=each(0, 1, 0.3, 0.7),
        crop_pos_y=each(1, 0, 0.9, 0.1),
        mirror=each(0, 1, 2, 3, dtype=np.int32),
    )


@pytest.mark.parametrize(
    ("layout", "shapes"),
    [
        ("CHW", [(3, 21, 37), (2, 30, 11)]),
        ("FHWC", [(3, 21, 17, 3), (2, 14, 30, 3)]),
        ("CFHW", [(3, 2, 21, 17), (3, 4, 9, 12)]),
    ],
)
def test_layouts(layout, shapes):
    rows = random_rows(*shapes)
    check_alike("resize_crop_mirror", rows, layout=layout, size=(20, 22), crop=(9, 30), mirror=3)


def test_volumes():
    rows = random_rows((9, 21, 17, 3), (5, 14, 12, 3))
    for crop in ((3, 9, 10), (20, 30, 5)):
        check_alike(
            "resize_crop_mirror", rows, layout="DHWC", size=(7, 20, 22), crop=crop, mirror=5
        )
        # Slices are those of the source, though the window may leave it.
        check_alike(
            "resize_crop_mirror",
            rows,
            layout="DHWC",
            resize_y=20,
            mode="stretch",
            crop=crop,
            mirror=4,
        )


def test_empty_images():
    rows = random_rows((40, 57, 3), (0, 33, 3), (4, 0, 3))
    check_alike("resize_crop_mirror", rows, layout="HWC", size=(9, 7), crop=(5, 5), mirror=1)


def test_without_a_window():
    check_alike("resize_crop_mirror", random_rows(*SHAPES), layout="HWC", size=(9, 17), mirror=1)


def test_an_error_names_the_sample():
    with pytest.raises(ArgumentValueError, match="out of range") as raised:
        run_gpu_operator(
            "resize_crop_mirror",
            random_rows((4, 5, 3), (5, 4, 3)),
            layout="HWC",
            size=9,
            crop=(5, 5),
            crop_pos_x=each(0, 1.5),
        )
    assert "sample 1" in str(raised.value)
