"""What detectors are trained with against DALI: boxes, canvases, masks and windows."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tests.parity.support import LIBRARIES, assert_both_raise, assert_parity, run_graph

_rng = np.random.default_rng(3)


def random_boxes(count: int) -> np.ndarray:
    corners = np.sort(_rng.random((count, 2, 2)).astype(np.float32), axis=1)
    return np.ascontiguousarray(corners.reshape(count, 4))


BOXES = [random_boxes(k) for k in (7, 1, 0, 3)]
LABELS = [np.arange(1, len(boxes) + 1, dtype=np.int32) for boxes in BOXES]
ANCHORS = random_boxes(60).reshape(-1).tolist()
SQUARES = [0.0, 0.0, 0.5, 0.5, 0.5, 0.5, 1.0, 1.0, 0.0, 0.5, 0.5, 1.0, 0.25, 0.25, 0.75, 0.75]
IMAGES = [_rng.integers(0, 255, s, np.uint8) for s in [(7, 9, 3), (20, 31, 3), (1, 1, 3)]]


def floats(*each):
    return [np.float32(number) for number in each]


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, differing=0, **options)


@pytest.mark.parametrize("ltrb", [False, True])
def test_boxes_on_a_canvas(ltrb):
    exact(
        lambda lib, x, r: (
            *(lib.fn.bbox_paste(x, ratio=ratio, ltrb=ltrb) for ratio in (1.0, 1.7, 4.0, 0.5)),
            lib.fn.bbox_paste(x, ratio=3, ltrb=ltrb, paste_x=0.2, paste_y=0.9),
            lib.fn.bbox_paste(x, ratio=3, ltrb=ltrb, paste_x=1.2, paste_y=-0.9),
            lib.fn.bbox_paste(x, ratio=r, ltrb=ltrb, paste_x=r / 8, paste_y=r * 0.1),
        ),
        BOXES,
        floats(1, 2.5, 3, 4),
    )
    exact(lambda lib, x: lib.fn.bbox_paste(x, ratio=2), [random_boxes(2).reshape(2, 1, 4)])
    for boxes in (np.zeros((2, 3), np.float32), np.zeros((2, 4)), np.zeros((2, 4), np.int32)):
        assert_both_raise(lambda lib, x: lib.fn.bbox_paste(x, ratio=2), [boxes], match="boxes|mult")


@pytest.mark.parametrize("anchors", [ANCHORS, SQUARES], ids=["drawn", "squares"])
def test_anchors(anchors):
    exact(
        lambda lib, b, n: tuple(
            output
            for options in (
                {},
                {"criteria": 0.0},
                {"criteria": 0.2},
                {"criteria": 1.0},
                {"criteria": 0.3, "offset": True},
                {
                    "criteria": 0.3,
                    "offset": True,
                    "scale": 300,
                    "means": [0.1, 0.2, 0.3, 0.4],
                    "stds": [0.5, 0.6, 0.7, 0.8],
                },
            )
            for output in lib.fn.box_encoder(b, n, anchors=anchors, **options)
        ),
        [boxes for boxes in BOXES if len(boxes)],
        [labels for labels in LABELS if len(labels)],
    )


def test_anchors_of_no_boxes_and_of_equal_ones():
    graph = lambda lib, b, n: tuple(lib.fn.box_encoder(b, n, anchors=SQUARES, criteria=0.1))  # noqa: E731
    exact(graph, BOXES, LABELS)
    equal = [np.float32([[0, 0, 1, 1]] * 2), np.float32([[0, 0, 0.5, 0.5]] * 3)]
    outside = [np.float32([[2, 2, 3, 3], [0, 0, 0.1, 0.1]]), np.float32([[2, 2, 2, 2]])]
    for boxes in (equal, outside):
        exact(graph, boxes, [np.arange(1, len(b) + 1, dtype=np.int32) for b in boxes])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"criteria": 1.2}, "criteria"),
        ({"criteria": -0.2}, "criteria"),
        ({"anchors": [0.0, 0.1, 0.2]}, "divisible by 4"),
        ({"means": [1.0]}, "means"),
        ({"stds": [1.0] * 3}, "stds"),
        ({"stds": [0.0, 1.0, 1.0, 1.0]}, "stds"),
    ],
)
def test_wrong_anchors(arguments, match):
    given = {"anchors": SQUARES, **arguments}
    assert_both_raise(
        lambda lib, b, n: tuple(lib.fn.box_encoder(b, n, **given)), BOXES, LABELS, match=match
    )


def test_wrong_types_of_boxes():
    for boxes, labels in (
        ([b.astype(np.float64) for b in BOXES], LABELS),
        (BOXES, [n.astype(np.int64) for n in LABELS]),
    ):
        assert_both_raise(
            lambda lib, b, n: tuple(lib.fn.box_encoder(b, n, anchors=SQUARES)),
            boxes,
            labels,
            match="type",
        )


def test_images_on_a_canvas():
    exact(
        lambda lib, x, r: (
            *(
                lib.fn.paste(x, ratio=ratio, fill_value=(9, 8, 7), paste_x=at, paste_y=1 - at)
                for ratio in (1.0, 1.3, 2.0, 3.7)
                for at in (0.0, 0.3, 0.77, 1.0)
            ),
            lib.fn.paste(x, ratio=2, fill_value=5),
            lib.fn.paste(x, ratio=2, fill_value=(300, -1, 2)),
            *(lib.fn.paste(x, ratio=2, fill_value=1, min_canvas_size=m) for m in (9, 30.6)),
            lib.fn.paste(x, ratio=r, fill_value=1, paste_x=r / 4, min_canvas_size=r * 4),
            lib.fn.paste(lib.fn.flip(x), ratio=r, fill_value=1, paste_y=r / 4),
        ),
        IMAGES,
        floats(1, 2.3, 3.9),
        layouts=["HWC", ""],
    )
    gray = [image[..., :1].copy() for image in IMAGES]
    exact(lambda lib, x: lib.fn.paste(x, ratio=2, fill_value=7, n_channels=1), gray)
    exact(lambda lib, x: lib.fn.paste(x, ratio=2, fill_value=7), [IMAGES[0][:0]])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"ratio": 0.9}, "ratio"),
        ({"fill_value": (1, 2)}, "fill_value"),
        ({"fill_value": (1, 2, 3, 4)}, "fill_value"),
        ({"paste_x": 1.5}, "paste_x"),
        ({"paste_y": -0.1}, "paste_y"),
        ({"min_canvas_size": -1}, "min_canvas_size"),
    ],
)
def test_wrong_canvases(arguments, match):
    given = {"ratio": 2.0, "fill_value": 1, **arguments}
    assert_both_raise(lambda lib, x: lib.fn.paste(x, **given), IMAGES, layouts="HWC", match=match)


def test_images_that_cannot_be_pasted():
    for image, layout in (
        (IMAGES[0].astype(np.float32), "HWC"),
        (IMAGES[0], "CHW"),
        (IMAGES[0][None], "FHWC"),
        (IMAGES[0][0], ""),
    ):
        assert_both_raise(
            lambda lib, x: lib.fn.paste(x, ratio=2, fill_value=1), [image], layouts=layout
        )


@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
def test_grids(dtype):
    assert_parity(
        lambda lib, x, r: (
            *(
                lib.fn.grid_mask(x, tile=tile, ratio=ratio, angle=angle, shift_x=1.3, shift_y=-7)
                for tile, ratio in ((1, 0.4), (4, 0.5), (7, 0.25), (9, 1.0), (9, 0.0), (9, -1))
                for angle in (0.0, 0.4, -2.2)
            ),
            lib.fn.grid_mask(x),
            lib.fn.grid_mask(x, tile=5, ratio=r, angle=r * 2, shift_x=r * 9, shift_y=r),
        ),
        [image.astype(dtype) + 1 for image in IMAGES],
        floats(0.2, 0.5, 0.7),
        layouts=["HWC", ""],
        max_levels=256,  # pixels on the very edge of a square
        differing=0.001,
    )


def test_grids_of_other_layouts_and_wrong_ones():
    for layout in ("", "CHW"):
        exact(lambda lib, x: lib.fn.grid_mask(x, tile=4), IMAGES, layouts=layout)
    exact(lambda lib, x: lib.fn.grid_mask(x), [IMAGES[0][:0]])
    for tile in (0, -3):
        assert_both_raise(lambda lib, x, t=tile: lib.fn.grid_mask(x, tile=t), IMAGES, match="tile")
    for dtype in ("float64", "bool", "int64"):
        assert_both_raise(lambda lib, x: lib.fn.grid_mask(x), [IMAGES[0].astype(dtype)])


@pytest.mark.parametrize(
    ("arguments", "given"),
    [
        ({"crop_shape": [2, 3], "roi_start": [1, 2], "roi_end": [4, 6]}, False),
        ({"crop_shape": [4, 5], "roi_start": [1, 2], "roi_shape": [2, 2]}, False),
        ({"crop_shape": [4, 5], "roi_start": 1, "roi_shape": 2}, False),
        ({"crop_shape": 3, "roi_start": 1, "roi_end": 2}, False),
        ({"crop_shape": [3, 2], "roi_start": [1, 2], "roi_end": [4, 4]}, False),
        (
            {"crop_shape": [6, 4], "roi_start": [1, 2], "roi_shape": 1, "in_shape": [7, 5]},
            False,
        ),
        ({"crop_shape": [6, 4, 3], "roi_start": [1, 2, 0], "roi_shape": [1, 1, 3]}, True),
        ({"crop_shape": [6, 4], "roi_start": [1, 2], "roi_shape": [1, 1]}, True),
    ],
)
def test_places_of_windows(arguments, given):
    """Both draw the same places, each about as often."""
    counts = {}
    for library in LIBRARIES:
        feeds = [[np.zeros((7, 5, 3), np.uint8)] * 60] if given else []

        def graph(lib, *data):
            return lib.fn.roi_random_crop(*data, seed=11, **arguments)

        found = run_graph(library, graph, *feeds, batch_size=60, iterations=20)
        assert found[0][0].samples[0].dtype == np.int64
        counts[library] = Counter(tuple(s.tolist()) for batch in found for s in batch[0].samples)
    assert counts["dali"].keys() == counts["headrace"].keys()
    expected = 1200 / len(counts["dali"])
    assert all(abs(n - expected) < 6 * expected**0.5 for n in counts["headrace"].values())


@pytest.mark.parametrize(
    "axis",
    [(0, 1, 2, 7), (6, 7, 2, 7), (0, 2, 7, 7), (0, 0, 2, 7), (2, 3, 2, 3), (0, 2, 2, 7)],
    ids=str,
)
def test_an_axis_without_choice_takes_as_many_numbers(axis):
    start, end, crop, extent = axis
    exact(
        lambda lib, x: lib.fn.roi_random_crop(
            x, crop_shape=[crop, 5], roi_start=[start, 0], roi_end=[end, 60], seed=3
        ),
        [np.zeros((extent, 60), np.uint8)] * 20,
    )


def test_places_of_windows_a_sample():
    shapes = [np.int32([3, 4, 2]), np.int32([2, 2, 1])]
    exact(
        lambda lib, x, shape: lib.fn.roi_random_crop(
            x, crop_shape=shape, roi_start=shape - shape, roi_end=shape
        ),
        [np.zeros((3, 4, 3), np.uint8)] * 2,
        shapes,
    )


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "roi_end"),
        ({"roi_end": [3, 4], "roi_shape": [1, 1]}, "roi_end"),
        ({"roi_end": [3, 4], "crop_shape": [5]}, "roi_start"),
        ({"roi_end": [3, 4], "in_shape": [4, 9]}, "bigger"),
        ({"roi_end": [3, 14], "in_shape": [9, 9]}, "out of bounds"),
        ({"roi_end": [3, 4], "roi_start": [-1, 0], "in_shape": [9, 9]}, "out of bounds"),
    ],
)
def test_wrong_windows(arguments, match):
    given = {"crop_shape": [5, 6], "roi_start": [1, 2], **arguments}
    assert_both_raise(lambda lib: lib.fn.roi_random_crop(**given), match=match)
