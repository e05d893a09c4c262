"""`lookup_table` and `equalize` on the GPU give what they give on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIDataType
from tests.support.gpu.alike import check_alike


@pytest.mark.parametrize(
    ("source", "dtype"),
    [("uint8", "UINT8"), ("int16", "FLOAT"), ("int64", "FLOAT"), ("uint32", "INT16")],
)
def test_lookup_table(source, dtype):
    numbers = [np.arange(300).reshape(3, 100), np.array([[-1, 65535, 65536, 40000, 5]])]
    data = [n.astype(source) for n in numbers] + [np.zeros((0, 2), source)]
    keys, values = [0, 5, 200, 40000, 65535], [1.5, -3, 1e9, 4, 5]
    check_alike(
        "lookup_table",
        data,
        keys=keys,
        values=values,
        default_value=7.5,
        dtype=DALIDataType[dtype],
    )


@pytest.mark.parametrize("layout", ["HW", "HWC", "CHW", "FHW", "FHWC", "FCHW"])
def test_equalize(layout):
    extents = {"H": 11, "W": 13, "C": 3, "F": 2}
    shape = tuple(extents[letter] for letter in layout)
    rng = np.random.default_rng(0)
    data = [(rng.random(shape) ** 3 * top).astype(np.uint8) for top in (255, 90)]
    data += [np.full(shape, 9, np.uint8), np.zeros([0 if n == 11 else n for n in shape], np.uint8)]
    check_alike("equalize", data, layout=layout)


def test_large_images_are_equalized_in_parts():
    rng = np.random.default_rng(1)
    shapes = [(150, 130, 3), (2, 3, 3)]
    check_alike(
        "equalize", [(rng.random(s) ** 2 * 255).astype(np.uint8) for s in shapes], layout="HWC"
    )
