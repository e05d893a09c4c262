"""`fn.filter` against DALI; its volumes, which DALI's CPU does not have, against SciPy."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import scipy.ndimage

from tests.parity.support import assert_both_raise, assert_parity, run_graph

BORDERS = ("reflect_101", "reflect_1001", "wrap", "clamp", "constant")
ALIASES = ("101", "1001", "reflect", "edge", "fill")
SHAPES = {"HWC": (13, 17, 3), "HW": (13, 17), "CHW": (3, 13, 17), "FHWC": (2, 13, 17, 3)}
WINDOWS = ((3, 3), (1, 1), (2, 5), (13, 12))


def levels(*shape, dtype="uint8"):
    return (np.random.default_rng(len(shape)).random(shape) * 200).astype(dtype)


def weights(*shape):
    return np.random.default_rng(1).standard_normal(shape).astype(np.float32)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=1e-6, absolute=1e-6, **options)


@pytest.mark.sweep
@pytest.mark.parametrize("layout", SHAPES)
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "int16", "float32"])
@pytest.mark.parametrize("border", BORDERS)
@pytest.mark.parametrize("mode", ["same", "valid"])
def test_borders_modes_types_and_layouts(layout, dtype, border, mode):
    data = [levels(*SHAPES[layout], dtype=dtype)] * 2

    def graph(lib, x, *filters):
        found = []
        for window, own in zip(WINDOWS, filters, strict=True):
            options = {"border": border, "mode": mode}
            found.append(lib.fn.filter(x, own, **options))
            found.append(lib.fn.filter(x, own, anchor=(window[0] - 1, 0), **options))
        return [*found, lib.fn.filter(x, filters[0], dtype=lib.types.FLOAT, anchor=0, **options)]

    feeds = [[weights(*window)] * 2 for window in WINDOWS]
    exact(graph, data, *feeds, layouts=(layout, *("",) * len(feeds)))


def test_small_and_wide_samples():
    batch = [levels(1, 1, 1), levels(2, 3, 1), levels(1, 9, 1)]
    for border in (*BORDERS, *ALIASES):
        exact(
            lambda lib, x, w, b=border: lib.fn.filter(x, w, border=b),
            batch,
            [weights(5, 7)] * 3,
            layouts=("HWC", ""),
        )
    exact(
        lambda lib, x, w: lib.fn.filter(x, w),
        [levels(4, 5, 70)],
        [weights(3, 3)],
        layouts=("HWC", ""),
    )


def test_a_filter_anchor_and_fill_for_each_sample():
    batch, own = [levels(9, 8, 3), levels(7, 6, 3)], [weights(3, 3), weights(2, 1)]
    exact(
        lambda lib, x, w, a: lib.fn.filter(x, w, anchor=a),
        batch,
        own,
        [np.int32([1, 2]), np.int32([0, 0])],
        layouts=("HWC", "", ""),
    )
    exact(
        lambda lib, x, w, v: (lib.fn.filter(x, w, v, border="constant"), lib.fn.filter(x, w, v)),
        batch,
        own,
        [np.uint8(9), np.uint8(200)],
        layouts=("HWC", "", ""),
    )


def test_a_filter_for_each_frame():
    videos, own = [levels(2, 9, 8, 3), levels(3, 7, 6, 3)], [weights(2, 3, 3), weights(3, 2, 2)]
    anchors = [np.int32([[0, 0], [1, 1]]), np.int32([[0, 0], [1, 1], [1, 0]])]
    exact(
        lambda lib, x, w, a: (
            lib.fn.filter(x, w),
            lib.fn.filter(x, w, anchor=lib.fn.per_frame(a)),
            lib.fn.filter(lib.fn.reshape(x[0], layout="HWC"), w),
        ),
        videos,
        own,
        anchors,
        layouts=("FHWC", "FHW", ""),
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_former_name():
    exact(
        lambda lib, x, w: lib.fn.experimental.filter(x, w),
        [levels(9, 8, 3)],
        [weights(3, 3)],
        layouts=("HWC", ""),
    )


@pytest.mark.parametrize(
    ("layout", "shape", "window", "given"),
    [
        ("HWC", (6, 7, 2), (3, 3), {"border": "x"}),
        ("HWC", (6, 7, 2), (3, 3), {"mode": "full"}),
        ("HWC", (6, 7, 2), (3, 3), {"anchor": (3, 3)}),
        ("HWC", (6, 7, 2), (3, 3), {"anchor": (-2, 0)}),
        ("HWC", (6, 7, 2), (3, 3), {"anchor": (1, 1, 1)}),
        ("HWC", (6, 7, 2), (7, 9), {"mode": "valid"}),
        ("HWC", (6, 7, 2), (3, 3, 3), {}),
        ("HWC", (6, 7, 2), (0, 3), {}),
        ("", (6, 7, 2), (3, 3), {}),
        ("", (6, 7, 2, 2), (3, 3), {}),
        ("W", (7,), (3,), {}),
        ("HCW", (3, 3, 3), (3, 3), {}),
        ("HFWC", (3, 2, 3, 3), (3, 3), {}),
        ("HWF", (3, 3, 2), (3, 3), {}),
    ],
)
def test_wrong_arguments(layout, shape, window, given):
    def graph(lib, x, w):
        return lib.fn.filter(x, w, **given)

    filters = [np.ones(window, np.float32)]
    assert_both_raise(graph, [levels(*shape)], filters, layouts=(layout, ""))


def test_wrong_types():
    image, filters = levels(6, 7, 3), weights(3, 3)
    for dtype in ("int32", "float64", "bool"):
        data = [image.astype(dtype)]
        assert_both_raise(lambda lib, x, w: lib.fn.filter(x, w), data, [filters])
        given = [filters.astype(dtype)]
        assert_both_raise(
            lambda lib, x, w: lib.fn.filter(x, w), [image], given, layouts=("HWC", "")
        )
    assert_both_raise(
        lambda lib, x, w: lib.fn.filter(x, w, dtype=lib.types.INT16),
        [image],
        [filters],
        layouts=("HWC", ""),
    )
    assert_both_raise(
        lambda lib, x, w: lib.fn.filter(x, w, 9.0, border="constant"),
        [image],
        [filters],
        layouts=("HWC", ""),
    )


def test_volumes_and_types_that_dali_has_on_the_gpu_only():
    names = dict(zip(BORDERS, ("mirror", "reflect", "wrap", "nearest", "constant"), strict=True))
    volume, own = levels(5, 6, 7, dtype="float32"), weights(3, 2, 4)
    for border, dtype in itertools.product(BORDERS, ("float32", "float16", "int8", "uint8")):
        data = volume.astype(dtype)

        def graph(lib, x, w, border=border):
            return lib.fn.filter(x, w, border=border)

        [[found]] = run_graph("headrace", graph, [data], [own], layouts=("DHW", ""))
        wanted = scipy.ndimage.correlate(data.astype(np.float32), own, mode=names[border])
        if data.dtype.kind != "f":
            limits = np.iinfo(dtype)
            wanted = np.clip(np.rint(wanted), limits.min, limits.max)
        tolerance = 1 if dtype in ("int8", "uint8", "float16") else 1e-2
        np.testing.assert_allclose(found.samples[0].astype(float), wanted, atol=tolerance)
        assert found.samples[0].dtype == dtype
