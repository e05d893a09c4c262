"""`fn.bbox_rotate` against DALI."""

from __future__ import annotations

import numpy as np

from tests.parity.support import assert_parity
from tests.parity.words import check_words, on

BOXES = np.float32([[0.1, 0.2, 0.5, 0.6], [0.7, 0.7, 1, 1], [0.4, 0, 0.45, 0.9]])
LABELS = np.int32([3, 4, 5])


def drawn(count):
    """Boxes and arguments of many calls."""
    draw = np.random.default_rng(1)
    for k in range(count):
        boxes = np.sort(draw.random((4, 2, 2)), axis=1).reshape(4, 4).astype(np.float32)
        given = {
            "angle": float(draw.uniform(-400, 400)) if k % 4 else float(draw.integers(-8, 8) * 90),
            "mode": ("expand", "fixed", "halfway")[k % 3],
            "keep_size": k % 2 == 0,
            "input_shape": tuple(draw.integers(1, 300, 2).tolist()),
            "remove_threshold": (0, 0.1, 0.3, 0.6, 0.9)[k % 5],
            "shape_layout": ("HW", "WH")[k % 7 > 2],
        }
        if k % 2 and k % 5 == 0:
            given["size"] = tuple(draw.uniform(20, 300, 2).tolist())
        if k % 7 == 0:
            boxes[:, 2:] -= boxes[:, :2]
            given["bbox_layout"] = "xyWH"
        if k % 3 == 0:
            boxes, given["bbox_normalized"] = boxes * 200, False
        yield boxes, given


def test_boxes():
    for boxes, given in drawn(60):
        assert_parity(
            lambda lib, x, g=given: tuple(lib.fn.bbox_rotate(x, np.int32([1, 2, 3, 4]), **g)),
            [boxes],
            absolute=2e-5,
        )


def test_arguments_by_sample():
    feeds = [BOXES, BOXES[:0], BOXES[:1] - 1], [LABELS, LABELS[:0], LABELS[:1]]
    angles = [np.float32(k) for k in (30, 40, -90.5)]
    shapes = [np.int64([100, 200, 3]), np.int64([5, 6, 3]), np.int64([70, 60, 3])]
    sizes = [np.float32([90, 80.6]), np.float32([1, 2]), np.float32([30, 200])]

    def graph(lib, boxes, labels, angle, shape, size):
        given = {"angle": angle, "input_shape": shape}
        return (
            *lib.fn.bbox_rotate(boxes, labels, keep_size=True, **given),
            *lib.fn.bbox_rotate(boxes, labels, shape_layout="HWC", size=size, **given),
            lib.fn.bbox_rotate(boxes, **given),
        )

    assert_parity(graph, *feeds, angles, shapes, sizes)
    columns = [feeds[0], [k[:, None] for k in feeds[1]]]
    assert_parity(graph, *columns, angles, shapes, sizes)


def test_turns_of_45_degrees():
    # The outline is a square: what is above or below the diagonal is exchanged, or not.
    boxes = np.float32([[10, 20, 40, 60], [32, 48, 96, 80], [30, 30, 90, 90], [50, 50, 50, 60]])

    def graph(lib, x):
        given = {"input_shape": (128, 128), "bbox_normalized": False, "keep_size": True}
        return tuple(
            lib.fn.bbox_rotate(x, angle=angle, mode=mode, remove_threshold=threshold, **given)
            for angle in (45.0, 315.0, -45.0, 405.0, 44.9, 45.1, 0.0, 90.0)
            for mode in ("expand", "halfway", "fixed")
            for threshold in (0.0, 0.1)
        )

    assert_parity(graph, [boxes], absolute=1e-4)


def test_errors():
    given = {"angle": 30.0, "input_shape": (100, 200)}

    def rotate(labels=None, boxes=BOXES, **more):
        def graph(lib, x):
            inputs = (x,) if labels is None else (x, labels)
            found = lib.fn.bbox_rotate(*inputs, **{**given, **more})
            return tuple(found) if labels is not None else found

        return on([boxes], graph)

    check_words(
        [
            (rotate(mode="xx"), "unknown mode: xx. supported modes are: expand, halfway, fixed"),
            (rotate(bbox_layout="WHxy"), "unknown bbox_layout: whxy. supported layouts are"),
            (rotate(shape_layout="H", input_shape=(9,)), "does not contain 'w' and/or 'h'"),
            (rotate(remove_threshold=1.0), "out of range"),
            (rotate(size=(5, 6), keep_size=True), "is mutually exclusive with `size`"),
            (rotate(size=(5, 6, 3)), "must be exactly two elements (hw)"),
            (rotate(np.int32([3])), "number of labels must match number of boxes. got: 1 and 3"),
            (rotate(np.int32([[3, 4]] * 3)), "should be [n] or [n, 1]"),
            (rotate(boxes=BOXES.astype(np.float16)), "float"),
        ]
    )
