"""`resize_crop_mirror` and `fast_resize_crop_mirror` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import types
from tests.parity.support import assert_both_raise, assert_parity, run_graph

SHAPES = [(40, 57, 3), (61, 33, 3), (25, 80, 3), (90, 64, 3)]


def _images(shapes=SHAPES, dtype=np.float32):
    rng = np.random.default_rng(0)
    return [rng.uniform(0, 255, s).astype(dtype) for s in shapes]


def _resize(**kwargs):
    return lambda lib, data: lib.fn.resize_crop_mirror(data, **kwargs)


@pytest.mark.sweep
@pytest.mark.parametrize("mirror", [0, 1, 2, 3, 4, 9, -1])
@pytest.mark.parametrize(
    "kwargs",
    [
        {"size": [31, 44], "crop": (20, 23), "crop_pos_x": 0.3, "crop_pos_y": 0.9},
        {"resize_shorter": 30.5, "crop_h": 17, "crop_w": 21.7},
        {"size": [31, -44], "crop": (0, 21), "rounding": "truncate"},
        {"size": [21, 17]},
        {"size": [21, 17], "crop": (30, 11), "interp_type": types.INTERP_CUBIC},
        {"size": [21, 18], "crop": (3, 5, 7), "roi_start": [2, 9], "roi_end": [22, 3]},
        {"size": [21, 18], "crop": (11, 40), "antialias": False, "dtype": types.FLOAT},
    ],
    ids=str,
)
def test_images(kwargs, mirror):
    assert_parity(_resize(**kwargs, mirror=mirror), _images(), layouts="HWC")


@pytest.mark.parametrize(
    ("layout", "mirror"),
    [
        ("DHWC", 0),
        ("DHWC", 5),
        ("DHWC", 7),
        # Where the first axis is not a spatial one, DALI 2.4 takes the bits for other axes than it
        # documents (1 mirrors rows of CHW), so only images that are not mirrored can be compared.
        ("CDHW", 0),
        ("FDHWC", 0),
        ("CHW", 0),
        ("FHWC", 0),
        ("CFHW", 0),
    ],
)
def test_layouts(layout, mirror):
    shape = {"H": 20, "W": 31, "C": 3, "D": 7, "F": 2}
    data = _images([tuple(shape[axis] for axis in layout)])
    for kwargs in (
        {"crop": (4, 9, 11)},
        {"crop": (9, 11)},
        {"crop_d": 2, "crop_h": 9, "crop_w": 8},
    ):
        size = [5, 15, 21] if "D" in layout else [15, 21]
        assert_parity(_resize(size=size, mirror=mirror, **kwargs), data, layouts=layout)


def test_mirrored_planes():
    planes = [np.arange(8, dtype=np.float32).reshape(2, 2, 2)]
    graph = _resize(size=[2, 2], crop=(2, 2), mirror=1)
    found = {}
    for library in ("dali", "headrace"):
        ((output,),) = run_graph(library, graph, planes, layouts="CHW")
        found[library] = output.samples[0]
    np.testing.assert_array_equal(found["dali"], planes[0][:, ::-1])
    np.testing.assert_array_equal(found["headrace"], planes[0][:, :, ::-1])


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16])
def test_types(dtype):
    assert_parity(
        _resize(resize_longer=41, crop=(11, 13), mirror=3),
        _images(dtype=dtype),
        layouts="HWC",
        differing=0.002,
    )


def test_arguments_by_sample():
    mirrors = [np.array(k, np.int32) for k in range(4)]
    crops = [np.array([11 + k, 9 - k], np.float32) for k in range(4)]
    places = [np.array(v, np.float32) for v in (0.1, 0.4, 1.0, 0.0)]
    assert_parity(
        lambda lib, x, m, c, p: lib.fn.resize_crop_mirror(
            x, size=[27, 19], mirror=m, crop=c, crop_pos_x=p
        ),
        _images(),
        mirrors,
        crops,
        places,
        layouts=["HWC", "", "", ""],
    )


def test_former_name():
    with pytest.warns(DeprecationWarning, match="resize_crop_mirror"):
        assert_parity(
            lambda lib, x: lib.fn.fast_resize_crop_mirror(
                x, size=[17, 21], crop=(11, 12), mirror=1
            ),
            _images(),
            layouts="HWC",
        )


def test_empty():
    for shape in ((0, 20, 3), (20, 0, 3)):
        assert_parity(_resize(size=[5, 6]), _images([shape]), layouts="HWC")


@pytest.mark.parametrize(
    "kwargs",
    [
        {"crop": (5, 5)},
        {"size": 9, "crop_h": 5},
        {"size": 9, "crop": (5, 5), "crop_h": 5, "crop_w": 5},
        {"size": 9, "crop": (5, 5), "crop_pos_x": 1.5},
        {"size": 9, "crop": (5, 5), "rounding": "up"},
    ],
    ids=str,
)
def test_wrong_arguments(kwargs):
    assert_both_raise(_resize(**kwargs), _images(), layouts="HWC")
