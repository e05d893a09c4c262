"""`tensor_resize` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import INTERP_GAUSSIAN
from headrace.types import DALIDataType as T
from tests.support.gpu.alike import check_alike
from tests.support.gpu.run_operator import run_gpu_operator

_rng = np.random.default_rng(0)
BLOCKS = [_rng.integers(0, 256, s, np.uint8) for s in [(3, 4, 5, 6), (1, 2, 7, 3), (3, 4, 5, 6)]]
ALIKE = [BLOCKS[0], BLOCKS[2]]


@pytest.mark.parametrize("data", [BLOCKS, ALIKE], ids=["ragged", "alike"])
@pytest.mark.parametrize(
    "given",
    [
        {"axes": (-1,), "sizes": 4},
        {"axes": (0,), "sizes": 5},
        {"axes": (1, 2), "scales": (0.5, 2)},
        {"axes": (0, 2), "sizes": (2, -4), "alignment": 0.0},
        {"axes": (2,), "sizes": 3, "interp_type": INTERP_GAUSSIAN},
    ],
    ids=str,
)
def test_axes(data, given):
    check_alike("tensor_resize", data, **given)


def test_nothing_changes():
    check_alike("tensor_resize", ALIKE, axes=(), sizes=())
    check_alike("tensor_resize", ALIKE, axes=(1,), sizes=4, dtype=T.FLOAT)
    check_alike("tensor_resize", [np.empty((0, 3), np.uint8)], sizes=(2, 2))


def test_too_many_axes():
    with pytest.raises(ValueError, match="at most 3"):
        run_gpu_operator("tensor_resize", ALIKE, sizes=2)
