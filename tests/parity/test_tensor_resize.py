"""`tensor_resize` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity, run_graph

_rng = np.random.default_rng(0)
PLANES = [np.arange(12, dtype=np.float32).reshape(3, 4), _rng.random((7, 2), np.float32)]
LINES = [np.arange(8, dtype=np.float32), np.ones(1, np.float32)]
BLOCKS = [_rng.random(s, np.float32) for s in [(3, 4, 5, 6), (1, 2, 7, 3)]]


def check(data, layout="", **given):
    assert_parity(lambda lib, x: lib.fn.tensor_resize(x, **named(lib, given)), data, layouts=layout)


def named(lib, given):
    """Arguments, with names of types made members."""
    types = ("interp_type", "dtype")
    return {k: getattr(lib.types, v) if k in types else v for k, v in given.items()}


def test_sizes_and_scales():
    for given in ({"sizes": 4}, {"scales": 2.0}, {"sizes": (-3.0,)}, {"scales": 0.4}):
        check(LINES, **given)
    for given in (
        {"sizes": 3},
        {"sizes": (0, 2)},
        {"sizes": (0, 2), "mode": "stretch"},
        {"sizes": (-3, 2)},
        {"scales": (0.0, 2.0)},
        {"scales": (-1.0, 2.0)},
        {"sizes": (2, 2), "mode": "not_larger"},
        {"sizes": (6, 6), "max_size": 5},
        {"sizes": (5, 5), "interp_type": "INTERP_NN"},
        {"sizes": (5, 5), "interp_type": "INTERP_CUBIC", "antialias": False},
        {"scales": 2.0, "roi_start": (0, 1), "roi_end": (2, 3)},
        {"sizes": 3, "roi_start": (1, 0.5), "roi_end": (0, 1), "roi_relative": True},
    ):
        check(PLANES, **given)
    check([np.zeros((0, 3), np.float32)], sizes=(2, 2))


def test_axes():
    for given in (
        {"axes": (-1,), "sizes": 3},
        {"axes": (0,), "sizes": 5},
        {"axes": (2, 1), "sizes": (3, 6)},
        {"axes": (1, 3), "scales": (0.5, 2)},
        {"sizes": (3, 3, 4, 5), "axes": (0, 1, 2, 3)},
        {"axes": (), "sizes": ()},
    ):
        check(BLOCKS[:1], **given)
    check(BLOCKS, "ABCD", axis_names="DB", sizes=(3, 2))
    check(BLOCKS, "ABCD", axis_names="A", sizes=4)


def test_axes_that_keep_their_extent_are_left_alone():
    """DALI blurs one of them with a Gaussian, whose window reaches the next element."""
    data = np.zeros((4, 9, 12, 7), np.float32)
    data[2, 4, 6, 3] = 100

    def touched(library, **given):
        def graph(lib, x):
            return lib.fn.tensor_resize(x, **named(lib, {"interp_type": "INTERP_GAUSSIAN"} | given))

        ((output,),) = run_graph(library, graph, [data])
        return [np.unique(places).tolist() for places in np.nonzero(output.samples[0])]

    for given in (
        {"axes": 2, "sizes": 4},
        {"axes": (1, 2), "sizes": (9, 4)},
        {"sizes": (4, 9, 4, 7), "axes": (0, 1, 2, 3)},
    ):
        assert touched("headrace", **given) == [[2], [4], [1, 2], [3]]
        assert touched("dali", **given) == [[2], [4], [1, 2], [2, 3, 4]]
    several = {"axes": (1, 3), "sizes": (3, 2)}
    assert touched("headrace", **several)[2] == [6]
    assert touched("headrace", axes=2, sizes=12, dtype="FLOAT") == [[2], [4], [6], [3]]


def test_rounding_and_alignment():
    for rounding in ("round", "truncate", "ceil"):
        check(PLANES, scales=(0.6, 1.15), size_rounding=rounding)
        check(PLANES, sizes=(2.5, 3.2), size_rounding=rounding, subpixel_scale=False)
    for alignment in (0.0, 0.25, 1.0, (0.0, 1.0), 2.0):
        check(PLANES, scales=0.6, alignment=alignment)
        check(PLANES, scales=0.6, alignment=alignment, roi_start=(0.5, 1), roi_end=(2.5, 2))


def test_by_sample():
    numbers = [np.array(v, np.float32) for v in ((5, 2), (2, 9))]
    corners = [np.array(v, np.float32) for v in ((0, 1), (1, 0))]
    assert_parity(lambda lib, x, n: lib.fn.tensor_resize(x, sizes=n), PLANES, numbers)
    assert_parity(lambda lib, x, n: lib.fn.tensor_resize(x, scales=n * 0.3), PLANES, numbers)
    assert_parity(
        lambda lib, x, a: lib.fn.tensor_resize(x, scales=0.6, alignment=a), PLANES, corners
    )
    with pytest.warns(DeprecationWarning, match="tensor_resize"):
        assert_parity(lambda lib, x: lib.fn.experimental.tensor_resize(x, sizes=3), PLANES)


def test_types():
    for dtype in (np.uint8, np.int16, np.uint16):
        data = [(x * 9).astype(dtype) for x in PLANES]
        check(data, sizes=(2, 3))
        check(data, sizes=(2, 3), dtype="FLOAT")
        check(data, axes=(), sizes=(), dtype="FLOAT")
    for refused in (np.int8, np.int32, np.float64, np.float16, np.bool_):
        assert_both_raise(
            lambda lib, x: lib.fn.tensor_resize(x, sizes=2), [PLANES[0].astype(refused)]
        )


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"sizes": 3, "scales": 2.0},
        {"sizes": (2, 3, 4, 5)},
        {"axes": (0, 3), "sizes": 2},
        {"axes": (1, 1), "sizes": 3},
        {"axes": (4,), "sizes": 3},
        {"axes": (0, 1), "sizes": (3, 3, 3)},
        {"axes": (0, 1), "sizes": 3, "alignment": (0, 1, 0.5)},
        {"axis_names": "A", "axes": (0,), "sizes": 3},
        {"axis_names": "Z", "sizes": 3},
        {"axes": (), "sizes": (3, 3)},
        {"axis_names": "", "scales": (2.0, 2.0)},
        {"axes": 0, "sizes": 2, "size_rounding": "floor"},
        {"axes": 0, "scales": 2, "mode": "not_larger"},
    ],
    ids=str,
)
def test_misuse(given):
    assert_both_raise(lambda lib, x: lib.fn.tensor_resize(x, **given), BLOCKS[:1], layouts="ABCD")


def test_a_scalar_has_no_axis():
    assert_both_raise(lambda lib, x: lib.fn.tensor_resize(x, sizes=3), [np.float32(3)])
