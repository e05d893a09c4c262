"""`fn.random_bbox_crop` against DALI: other numbers of the same distributions, the same rules."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from headrace.errors import ArgumentValueError
from tests.parity.support import LIBRARIES, assert_both_raise, run_graph

COUNT = 700
BOXES = np.float32([[0.1, 0.1, 0.4, 0.4], [0.5, 0.45, 0.9, 0.9], [0.05, 0.6, 0.3, 0.95]])
LABELS = np.int32([7, 8, 9])
FREE = {"allow_no_crop": False, "scaling": [0.3, 0.9], "aspect_ratio": [0.5, 2.0]}


def drawn(library, boxes=BOXES, labels=LABELS, **arguments):
    """Samples of all outputs: anchors, shapes, boxes, labels, and the numbers of boxes."""

    def graph(lib, *data):
        return tuple(
            lib.fn.random_bbox_crop(*data, output_bbox_indices=True, quiet=True, **arguments)
        )

    feeds = [[boxes] * COUNT, [labels] * COUNT]
    (found,) = run_graph(library, graph, *feeds, seed=3)
    assert [o.samples[0].dtype.name for o in found] == ["float32"] * 3 + ["int32"] * 2
    return [o.samples for o in found]


def check_alike(*batches):
    """Check that columns of both are of one distribution."""
    one, other = (np.stack(batch) for batch in batches)
    for column in range(one.shape[1]):
        assert ks_2samp(one[:, column], other[:, column], method="asymp").pvalue > 1e-4


@pytest.mark.parametrize(
    "arguments",
    [
        FREE,
        {**FREE, "aspect_ratio": [1.0, 1.0]},
        {**FREE, "aspect_ratio": [2.0, 2.0], "input_shape": [300, 200]},
        {**FREE, "aspect_ratio": [0.4, 0.4]},
        {**FREE, "input_shape": [200, 300], "aspect_ratio": [0.9, 1.1]},
        {**FREE, "input_shape": [300, 200], "shape_layout": "HW", "aspect_ratio": [0.9, 1.1]},
        {**FREE, "scaling": [0.5, 1.5]},
        {**FREE, "thresholds": [0.05, 0.1], "num_attempts": 3},
        {**FREE, "thresholds": [0.5], "threshold_type": "overlap", "num_attempts": 3},
        {
            **FREE,
            "thresholds": [0.9],
            "threshold_type": "overlap",
            "all_boxes_above_threshold": False,
        },
        {**FREE, "bbox_prune_threshold": 0.5},
        {**FREE, "thresholds": [0.9], "total_num_attempts": 12},
        {**FREE, "allow_no_crop": True, "thresholds": [0.0, 0.05]},
        {"crop_shape": [4, 7], "input_shape": [6, 9], "allow_no_crop": False},
        {"crop_shape": [9, 8], "input_shape": [9, 6], "shape_layout": "HW"},
        {},
    ],
    ids=str,
)
def test_windows_and_boxes(arguments):
    found = {library: drawn(library, **arguments) for library in LIBRARIES}
    for outputs in zip(*(found[library][:2] for library in LIBRARIES), strict=True):
        check_alike(*outputs)
    counts = [np.bincount([len(n) for n in found[lib][4]], minlength=4) for lib in LIBRARIES]
    assert (np.abs(counts[0] - counts[1]) < 7 * np.sqrt(np.maximum(*counts)) + 1).all()
    scale = np.float32(1)
    if "crop_shape" in arguments:
        order = 1 if arguments.get("shape_layout") != "HW" else -1
        scale = np.float32(arguments["input_shape"][::order])
    for library in LIBRARIES:  # the same rules hold for both
        for anchor, shape, boxes, labels, numbers in zip(*found[library], strict=True):
            low, size = anchor / scale, shape / scale
            part = np.clip((BOXES - np.tile(low, 2)) / np.tile(size, 2), 0, 1)
            np.testing.assert_allclose(boxes, part[numbers], atol=1e-5)
            np.testing.assert_array_equal(labels, LABELS[numbers])
            middles = (BOXES[:, :2] + BOXES[:, 2:]) / 2
            inside = ((middles >= low - 1e-6) & (middles <= low + size + 1e-6)).all(axis=1)
            if (prune := arguments.get("bbox_prune_threshold")) is not None:
                area = np.prod(part[:, 2:] - part[:, :2], axis=1) * np.prod(size)
                inside = area >= (prune - 1e-5) * np.prod(BOXES[:, 2:] - BOXES[:, :2], axis=1)
            np.testing.assert_array_equal(np.flatnonzero(inside), numbers)


def test_layouts_of_boxes():
    extents = np.hstack([BOXES[:, :2], BOXES[:, 2:] - BOXES[:, :2]])
    for layout, boxes in (("xyWH", extents), ("YyXx", BOXES[:, [3, 1, 2, 0]])):
        order = [layout.index(letter) for letter in ("xyWH" if "W" in layout else "xyXY")]
        for library in LIBRARIES:
            arguments = {**FREE, "bbox_layout": layout}
            found = drawn(library, np.ascontiguousarray(boxes), **arguments)
            for anchor, shape, own, _, numbers in zip(*found, strict=True):
                part = np.clip((BOXES - np.tile(anchor, 2)) / np.tile(shape, 2), 0, 1)[numbers]
                if "W" in layout:
                    part[:, 2:] -= part[:, :2]
                np.testing.assert_allclose(own[:, order], part, atol=1e-5)


def test_volumes_and_no_boxes():
    volumes = np.float32([[0.1, 0.1, 0.1, 0.6, 0.5, 0.7], [0.4, 0.3, 0.2, 0.9, 0.9, 0.9]])
    none, labels = np.zeros((0, 4), np.float32), np.zeros(0, np.int32)
    for boxes, own, arguments in (
        (volumes, LABELS[:2], FREE),
        (volumes, LABELS[:2], {**FREE, "aspect_ratio": [1.0, 1.0]}),
        (volumes, LABELS[:2], {**FREE, "aspect_ratio": [0.8, 1.2, 0.5, 2.0, 0.7, 1.4]}),
        (none, labels, FREE),
        (none, labels, {**FREE, "thresholds": [0.5]}),
    ):
        found = [drawn(library, boxes, own, **arguments) for library in LIBRARIES]
        for outputs in zip(*(each[:2] for each in found), strict=True):
            check_alike(*outputs)
        assert found[0][2][0].shape[1] == found[1][2][0].shape[1]


def test_outputs():
    def graph(lib, boxes, labels):
        crop = lib.fn.random_bbox_crop
        assert len(crop(boxes)) == 3
        assert len(crop(boxes, labels)) == 4
        assert len(crop(boxes, output_bbox_indices=True)) == 4
        return (*crop(boxes), *crop(boxes, labels), *crop(boxes, labels, output_bbox_indices=True))

    found = [run_graph(lib, graph, [BOXES], [LABELS])[0] for lib in LIBRARIES]
    for one, other in zip(*found, strict=True):  # without `scaling` there is nothing to draw
        np.testing.assert_array_equal(one.samples[0], other.samples[0])


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"thresholds": []}, "threshold"),
        ({"thresholds": [1.5]}, "threshold"),
        ({"threshold_type": "x"}, "threshold_type"),
        ({"num_attempts": 0}, "num_attempts"),
        ({"total_num_attempts": 0}, "total_num_attempts"),
        ({"bbox_prune_threshold": 1.5}, "bbox_prune_threshold"),
        ({"scaling": [0.5]}, "scaling"),
        ({"scaling": [0.5, 0.3]}, "scaling"),
        ({"aspect_ratio": [1.0]}, "aspect_ratio"),
        ({"aspect_ratio": [2.0, 1.0]}, "aspect_ratio"),
        ({"crop_shape": [4, 7]}, "input_shape"),
        ({"crop_shape": [4, 7], "input_shape": [9, 9], "scaling": [0.3, 0.4]}, "scaling"),
        ({"crop_shape": [4, 7], "input_shape": [9, 9], "aspect_ratio": [1, 2]}, "aspect_ratio"),
        ({"input_shape": [4, 7, 3]}, "input_shape"),
        ({"input_shape": [4, 7], "shape_layout": "HH"}, "shape_layout"),
        ({"bbox_layout": "xyWX"}, "bbox_layout"),
        ({"bbox_layout": "xyWH"}, "out of bounds"),
        ({"bbox_layout": "xyXY", "ltrb": True}, "ltrb"),
    ],
)
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_errors(arguments, match):
    def graph(lib, boxes, labels):
        return tuple(lib.fn.random_bbox_crop(boxes, labels, **arguments))

    assert_both_raise(graph, [BOXES], [LABELS], match=match)


def test_wrong_boxes():
    for boxes, labels in (
        (BOXES.astype(np.float64), LABELS),
        (BOXES, LABELS.astype(np.int64)),
        (np.ascontiguousarray(BOXES[:, :3]), LABELS),
        (BOXES[0], LABELS[:1]),
        (BOXES * 2, LABELS),
        (BOXES - 0.2, LABELS),
    ):
        assert_both_raise(lambda lib, b, n: tuple(lib.fn.random_bbox_crop(b, n)), [boxes], [labels])


@pytest.mark.in_threads  # a worker process tells it on its own standard error
def test_the_best_window_is_told():
    def graph(lib, boxes):
        return tuple(
            lib.fn.random_bbox_crop(boxes, **FREE, thresholds=[0.95], total_num_attempts=3)
        )

    with pytest.warns(UserWarning, match="quiet"):
        run_graph("headrace", graph, [BOXES])


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("attempts", [1, 20])
def test_the_former_operator(attempts):
    y, x = np.mgrid[:100, :200]
    image = np.stack([y, x, x * 0], -1).astype(np.uint8)
    found, kinds = {}, set()
    for library in LIBRARIES:

        def graph(lib, images, boxes, labels):
            return tuple(lib.fn.ssd_random_crop(images, boxes, labels, num_attempts=attempts))

        feeds = [image] * COUNT, [BOXES[:2]] * COUNT, [LABELS[:2]] * COUNT
        (outputs,) = run_graph(library, graph, *feeds, layouts=["HWC", "", ""], seed=4)
        kinds.add(tuple((o.dtype, o.layout) for o in outputs))
        found[library] = [o.samples for o in outputs]
        for window, boxes, labels in zip(*found[library], strict=True):
            kept = BOXES[labels - LABELS[0]]
            low = np.tile(window[0, 0, 1::-1] / np.float32([200, 100]), 2)
            size = np.tile(np.float32(window.shape[1::-1]) / np.float32([200, 100]), 2)
            np.testing.assert_allclose(boxes, np.clip((kept - low) / size, 0, 1), atol=0.06)
    check_alike(*([np.array(window.shape[:2]) for window in found[lib][0]] for lib in LIBRARIES))
    assert len(kinds) == 1
    graph = lambda lib, *data: tuple(lib.fn.ssd_random_crop(*data))  # noqa: E731
    feeds = [image], [np.zeros((0, 4), np.float32)], [np.zeros(0, np.int32)]
    for library in LIBRARIES:
        (outputs,) = run_graph(library, graph, *feeds, layouts=["HWC", "", ""])
        assert [o.samples[0].shape for o in outputs] == [(100, 200, 3), (0, 4), (0,)]
    for wrong in (image.astype(np.float32), BOXES[:2]), (image, BOXES[:2].astype(np.float64)):
        feeds = [[each] * 40 for each in (*wrong, LABELS[:2])]  # DALI notices if it crops
        assert_both_raise(graph, *feeds, layouts=["HWC", "", ""])


F = [0.001, 1000.0]
FIXED_RATIOS = [
    [2.0, 2.0, *F, *F],
    [*F, 0.7, 0.7, *F],
    [*F, *F, 3.0, 3.0],
    [2.0, 2.0, 3.0, 3.0, 0.1, 9.0],
    [2.0, 2.0, 0.5, 2.0, 0.25, 1.0],
    [0.5, 2.0, 2.0, 2.0, 0.5, 2.0],
    [0.5, 2.0, 0.5, 2.0, 2.0, 2.0],
    [2.0, 2.0, 3.0, 3.0, 1.5, 1.5],
    [0.5, 0.5, 0.8, 0.8, 1.6, 1.6],
    [0.7, 0.7, 0.49, 0.49, 0.7, 0.7],
    [0.7, 1.3, 1.0, 1.0, 0.5, 2.0],
    [1.0, 1.0],
    [0.4, 1.5],
]


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [None, [100, 70, 30]])
@pytest.mark.parametrize("ratios", FIXED_RATIOS, ids=str)
def test_all_ratios_of_volumes_lie_within_bounds(ratios, shape):
    """With DALI's numbers the windows are DALI's, but where rounding draws one of them anew."""
    volumes = np.float32([[0.1, 0.1, 0.1, 0.6, 0.5, 0.7], [0.4, 0.3, 0.2, 0.9, 0.9, 0.9]])
    arguments = {**FREE, "aspect_ratio": ratios, "scaling": [0.1, 0.9], "total_num_attempts": 900}
    if shape is not None:
        arguments["input_shape"] = shape

    def graph(lib, boxes):
        return tuple(lib.fn.random_bbox_crop(boxes, quiet=True, **arguments)[:2])

    (theirs,), (ours,) = [
        run_graph(lib, graph, [volumes] * 300, seed=3) for lib in ("dali", "headrace")
    ]
    low, high = np.resize(np.float32(ratios).reshape(-1, 2), (3, 2)).T
    x, y, z = (np.stack(ours[1].samples) * (1 if shape is None else np.float32(shape))).T
    drawn = np.stack([x / y, x / z, y / z], axis=1)
    assert (drawn >= low * 0.9999).all()
    assert (drawn <= high * 1.0001).all()
    same = [
        np.allclose(a, b, atol=1e-5)
        for a, b in zip(ours[1].samples, theirs[1].samples, strict=True)
    ]
    assert np.mean(same) > 0.97


@pytest.mark.parametrize("ratios", [[2.0, 2.0], [0.3, 0.9, 1.0, 2.0, 0.5, 0.9]])
def test_ratios_that_no_volume_has(ratios):
    """DALI looks for a window for ever, or gives one of no extent."""
    boxes = np.float32([[0.1, 0.1, 0.1, 0.6, 0.5, 0.7]])

    def graph(lib, boxes):
        return tuple(lib.fn.random_bbox_crop(boxes, aspect_ratio=ratios))

    with pytest.raises(ArgumentValueError, match="No window has all of `aspect_ratio`"):
        run_graph("headrace", graph, [boxes])
