"""`fn.laplacian` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity
from tests.parity.words import check_words, on

SHAPES = {
    "HWC": (17, 40, 3),
    "HW": (17, 40),
    "CWH": (3, 17, 20),
    "W": (80,),
    "DHWC": (6, 7, 10, 3),
    "": (6, 7, 8),
    "FHWC": (3, 6, 20, 3),
    "FCHW": (3, 2, 6, 7),
    "FDHWC": (2, 3, 4, 5, 2),
    "FCDHW": (2, 3, 4, 5, 6),
}
_draw = np.random.default_rng(0)


def noise(*shape, dtype="uint8"):
    return (_draw.random(shape) * 250).astype(dtype)


def graph(axes):
    def define(lib, x, sizes, smoothing, scales):
        laplacian, to = lib.fn.laplacian, {"dtype": lib.types.FLOAT}
        return (
            laplacian(x),
            laplacian(x, window_size=7, normalized_kernel=True, **to),
            laplacian(x, window_size=5, smoothing_size=1, scale=0.3, **to),
            laplacian(x, window_size=[5, 9, 3][:axes], smoothing_size=[1, 3, 5][:axes]),
            laplacian(x, window_size=sizes, smoothing_size=smoothing, normalized_kernel=True, **to),
            laplacian(x, window_size=sizes, smoothing_size=1, scale=scales, **to),
        )

    return define


@pytest.mark.parametrize("layout", SHAPES)
def test_layouts(layout):
    shape = SHAPES[layout]
    axes = len([k for k in layout if k not in "FC"]) or len(shape)
    sizes = [np.int32([3, 9, 5][:axes]), np.int32([11, 3, 7][:axes])]
    smoothing = [np.int32([1, 5, 11][:axes]), np.int32([3, 1, 1][:axes])]
    scales = [np.float32([0.5, 2, -1][:axes]), np.float32([0.125, 1, 3][:axes])]
    data = [noise(*shape), noise(*(max(n - 1, 1) for n in shape))]
    assert_parity(graph(axes), data, sizes, smoothing, scales, layouts=[layout, "", "", ""])


@pytest.mark.parametrize(
    "dtype", ["int8", "uint16", "int16", "uint32", "int32", "uint64", "int64", "float16", "float32"]
)
def test_element_types(dtype):
    float16 = {"relative": 3e-3, "absolute": 3e-3} if dtype == "float16" else {}
    assert_parity(
        lambda lib, x: (
            lib.fn.laplacian(x, scale=0.2),
            lib.fn.laplacian(x, window_size=5, normalized_kernel=True, dtype=lib.types.FLOAT),
        ),
        [noise(20, 30, 3, dtype=dtype), noise(1, 2, 3, dtype=dtype)],
        layouts="HWC",
        **float16,
    )


def test_frames():
    data = [noise(3, 9, 8, 1), noise(2, 9, 8, 1)]

    def graph(lib, x, sizes, scales):
        return lib.fn.laplacian(
            x,
            window_size=lib.fn.per_frame(sizes),
            smoothing_size=1,
            scale=lib.fn.per_frame(scales),
            dtype=lib.types.FLOAT,
        )

    sizes = [np.int32([[3, 5], [5, 7], [9, 3]]), np.int32([[3, 3], [5, 3]])]
    scales = [np.float32([1, 2, 3]), np.float32([0.5, 0.1])]
    assert_parity(graph, data, sizes, scales, layouts=["FHWC", "", ""])


def test_errors():
    data = [noise(9, 8, 3)] * 2
    wrong = "window size must be an odd integer between"
    rows = [
        (on(data, lambda lib, x, s=size: lib.fn.laplacian(x, window_size=s), "HWC"), wrong)
        for size in (-3, 10, 33)
    ]
    rows += [
        (on(data, lambda lib, x, s=size: lib.fn.laplacian(x, smoothing_size=s), "HWC"), wrong)
        for size in (-1, 33, [3, 6])
    ]
    scales = {"scale": 1.0, "normalized_kernel": True}
    rows += [
        (on(data, lambda lib, x: lib.fn.laplacian(x, **scales), "HWC"), "cannot be specified"),
        (
            on(data, lambda lib, x: lib.fn.laplacian(x, dtype=lib.types.UINT16), "HWC"),
            "data type must be same as input",
        ),
        (
            on(data, lambda lib, x: lib.fn.laplacian(x, scale=[3, 7, 3]), "HWC"),
            'argument "scale" expects either a single value or a list of 2 elements. 3 given',
        ),
        (on(data, lambda lib, x: lib.fn.laplacian(x, window_size=[3, 7, 3]), "HWC"), "3 given"),
        *(
            (on([noise(*[2] * len(layout))], lambda lib, x: lib.fn.laplacian(x), layout), words)
            for layout, words in (
                ("DHCW", "only channel-first or channel-last layouts"),
                ("FWXYZC", "too many dimensions, found: 4 data axes"),
                ("FCHCW", "only channel-first or channel-last layouts"),
                ("HFWC", "layout should begin with"),
                ("HFW", "layout should begin with"),
                ("FCCHW", "more the one occurrence of 'f' or 'c'"),
                ("CF", "no spatial axes found"),
            )
        ),
    ]
    check_words(rows)
    assert_both_raise(lambda lib, x: lib.fn.laplacian(x > 1), data, layouts="HWC")
