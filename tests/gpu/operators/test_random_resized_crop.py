"""`random_resized_crop` on the GPU shows the windows that it shows on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ShapeError
from headrace.types import DALIInterpType
from tests.support.gpu.alike import check_alike, each, random_rows
from tests.support.gpu.run_operator import run_gpu_operator

SHAPES = [(40, 57, 3), (61, 33, 3), (100, 80, 3), (30, 30, 3), (1, 90, 3)]


@pytest.mark.parametrize("iteration", [0, 3])
@pytest.mark.parametrize(
    "arguments",
    [
        {"size": (23, 29)},
        {"size": 40, "random_area": (0.9, 1.0), "interp_type": DALIInterpType.INTERP_CUBIC},
        {"size": 16, "random_aspect_ratio": (0.1, 10.0), "num_attempts": 1},
        {"size": 16, "random_area": 0.3, "antialias": False},
        {"size": 16, "random_aspect_ratio": 3.0, "random_area": (1.0, 1.0)},
    ],
)
def test_windows(arguments, iteration):
    check_alike(
        "random_resized_crop",
        random_rows(*SHAPES),
        layout="HWC",
        seed=7,
        iteration=iteration,
        **arguments,
    )


@pytest.mark.parametrize(
    ("layout", "shapes"),
    [
        ("CHW", [(3, 21, 37), (2, 30, 11)]),
        ("FHWC", [(3, 21, 17, 3), (2, 14, 30, 3)]),
        ("FCHW", [(2, 3, 21, 17), (4, 3, 9, 12)]),
        ("CFHW", [(3, 2, 21, 17), (3, 4, 9, 12)]),
    ],
)
def test_layouts(layout, shapes):
    check_alike("random_resized_crop", random_rows(*shapes), layout=layout, size=(9, 13), seed=3)


def test_filters_by_sample():
    kinds = each(0, 1, 2, 3, 4, dtype=np.int32)
    check_alike(
        "random_resized_crop",
        random_rows(*SHAPES),
        layout="HWC",
        size=20,
        interp_type=kinds,
        seed=1,
    )


def test_an_empty_image_is_an_error():
    with pytest.raises(ShapeError, match="no window to choose") as raised:
        run_gpu_operator(
            "random_resized_crop", random_rows((4, 4, 3), (0, 4, 3)), layout="HWC", size=9
        )
    assert "sample 1" in str(raised.value)
