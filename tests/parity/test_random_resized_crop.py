"""`random_resized_crop` against DALI: the distribution of windows, and what is made of them."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import errors, types
from tests.parity.support import assert_both_raise, assert_parity, run_graph


def _crop(**kwargs):
    return lambda lib, data: lib.fn.random_resized_crop(data, **kwargs)


def _coordinates(height, width):
    """An image whose two channels are the coordinates of its pixels."""
    return np.stack(
        np.meshgrid(np.arange(height) + 0.5, np.arange(width) + 0.5, indexing="ij"), -1
    ).astype(np.float32)


def _windows(library, height, width, iterations=8, **kwargs):
    """Height, width, row and column of windows that `library` chose, a row each."""
    size = 3
    graph = _crop(size=size, antialias=False, **kwargs)
    images = [_coordinates(height, width)] * 64
    runs = run_graph(library, graph, images, layouts="HWC", iterations=iterations)
    found = []
    for (output,) in runs:
        for sample in output.samples:
            # The middle of three pixels is the centre of the window, a third of it from the next.
            centre = sample[1, 1].astype(np.float64)
            extent = 3 * np.abs(sample[2, 2] - sample[1, 1]).astype(np.float64)
            found.append([*extent, *(centre - extent / 2)])
    return np.array(found)


@pytest.mark.parametrize(
    ("shape", "kwargs"),
    [
        ((300, 400), {}),
        ((300, 400), {"random_area": [0.5, 1.0]}),
        ((300, 400), {"random_area": [0.1, 0.2], "random_aspect_ratio": [0.5, 3.0]}),
        ((300, 400), {"random_area": [0.9, 1.0], "num_attempts": 1}),
        ((200, 900), {"random_area": [0.05, 0.1]}),
    ],
)
def test_distribution(shape, kwargs):
    ours = _windows("headrace", *shape, **kwargs)
    theirs = _windows("dali", *shape, **kwargs)
    # Kolmogorov-Smirnov on each number; 512 against 512 windows differ by 0.12 once in 1000.
    for name, a, b in zip(("height", "width", "row", "column"), ours.T, theirs.T, strict=True):
        grid = np.sort(np.concatenate([a, b]))
        # Extents are whole pixels, but were measured: take equal ones as equal.
        grid = np.unique(np.round(grid)) + 0.5
        ranks = [np.searchsorted(np.sort(values), grid) / len(values) for values in (a, b)]
        assert np.abs(ranks[0] - ranks[1]).max() < 0.13, name


@pytest.mark.parametrize(
    ("shape", "kwargs"),
    [
        # No window has the area and the aspect ratio: the largest that has the ratio is taken.
        ((40, 400), {"random_area": [0.9, 1.0]}),
        ((400, 40), {"random_area": [0.9, 1.0]}),
        ((100, 100), {"random_area": [1.0, 1.0], "random_aspect_ratio": [1.0, 1.0]}),
        ((50, 80), {"random_area": [1.0, 1.0], "random_aspect_ratio": [1.6, 1.6]}),
    ],
)
def test_extents_that_are_certain(shape, kwargs):
    ours = _windows("headrace", *shape, iterations=1, **kwargs)
    theirs = _windows("dali", *shape, iterations=1, **kwargs)
    np.testing.assert_allclose(ours[:, :2], theirs[:1, :2].repeat(64, 0), atol=0.02)


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "FCHW", "CFHW"])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_whole_image(layout, dtype):
    # The one window that can be chosen is the image, so that values can be compared.
    shape = {"H": 40, "W": 40, "C": 3, "F": 2}
    rng = np.random.default_rng(0)
    data = rng.integers(0, 256, [shape[axis] for axis in layout]).astype(dtype)
    for kwargs in (
        {"size": [23, 17]},
        {"size": 61, "interp_type": types.INTERP_CUBIC},
        {"size": [11, 83], "min_filter": types.INTERP_NN, "antialias": False},
        {"size": [30, 30], "dtype": types.FLOAT, "mag_filter": types.INTERP_GAUSSIAN},
    ):
        assert_parity(
            _crop(**kwargs, random_area=[1.0, 1.0], random_aspect_ratio=[1.0, 1.0]),
            [data, data[..., ::-1].copy()],
            layouts=layout,
            differing=0.002,
        )


@pytest.mark.parametrize(
    "kwargs",
    [
        {},
        {"size": [3, 4, 5]},
        {"size": [-2, 4]},
        {"size": 4, "random_area": [0.5, 0.1]},
        {"size": 4, "random_aspect_ratio": [2.0, 1.0]},
        {"size": 4, "dtype": types.INT16},
    ],
    ids=str,
)
def test_wrong_arguments(kwargs):
    assert_both_raise(_crop(**kwargs), [np.zeros((20, 30, 3), np.uint8)], layouts="HWC")


@pytest.mark.parametrize(
    ("kwargs", "argument"),
    [
        ({"size": [0, 4]}, "size"),
        ({"size": 4, "random_area": [-1.0, 0.0]}, "random_area"),
        ({"size": 4, "random_aspect_ratio": [0.0, 1.0]}, "random_aspect_ratio"),
    ],
)
def test_arguments_that_dali_takes_and_makes_nothing_of(kwargs, argument):
    with pytest.raises(errors.ArgumentValueError, match=argument):
        run_graph("headrace", _crop(**kwargs), [np.zeros((20, 30, 3), np.uint8)], layouts="HWC")


@pytest.mark.parametrize("layout", ["DHWC", "HW"])
def test_wrong_layouts(layout):
    data = np.zeros((5, 6, 7, 3)[: len(layout)], np.uint8)
    assert_both_raise(_crop(size=4), [data], layouts=layout, match=layout)
