"""Objects and pixels of masks, and windows, drawn at random, against DALI."""

from __future__ import annotations

import numpy as np

from tests.parity.outcomes import DALI, HEADRACE, assert_same, outcome
from tests.parity.words import check_words, on

MASK = np.int32([[1, 0, 0, 0], [1, 2, 2, 1], [1, 1, 2, 0], [2, 0, 0, 1]])
COUNT = 400


def check_drawn(name, mask=MASK, **given):
    """Check that both libraries draw the same from each of many samples."""

    def scenario(lib):
        def graph(data):
            found = getattr(lib.fn.segmentation, name)(data, seed=17, **given)
            return tuple(found) if isinstance(found, (list, tuple)) else found

        return lib.source([mask] * COUNT, graph).run()

    theirs, ours = (outcome(library, scenario) for library in (DALI, HEADRACE))
    assert theirs.error is None, f"{given}: {theirs.error}"
    assert ours.error is None, f"{given}: {ours.error}"
    for one, other in zip(theirs.value, ours.value, strict=True):
        assert str(one[2]) == str(other[2]), given


def test_object_boxes():
    name, label = "random_object_bbox", {"output_class": True}
    for given in (
        {},
        {"format": None, "foreground_prob": None, "threshold": None, **label},
        {"background": 2, **label},
        {"background": 3, "class_weights": [1, 1, 3], **label},
        {"background": np.int32(1), "class_weights": np.float32([1, 1, 3]), **label},
        {"classes": [1, 2, 7], "class_weights": [5, 1, 1], **label},
        {"classes": [1, 2, 7], "class_weights": [0, -1, 1], **label},
        {"classes": np.int32([]), **label},
        {"classes": [1, 1, 2], "k_largest": 2, "format": "start_end", **label},
        {"ignore_class": True, "format": "box"},
        {"ignore_class": True, "k_largest": 2, "threshold": -1},
        {"ignore_class": True, "k_largest": 4},  # of five objects, of different sizes
        {"ignore_class": True, "k_largest": 5},
        {"k_largest": 9, **label},
        {"threshold": [3, 1], **label},
        {"threshold": 2, "class_weights": [1.0, 3.0], **label},
        {"threshold": 9, **label},
        {"foreground_prob": 0.3, "k_largest": 1, "cache_objects": True, **label},
    ):
        check_drawn(name, **given)
    for dtype in ["bool", "uint8", "int8", "uint16", "int16", "uint32"]:
        check_drawn(name, mask=MASK.astype(dtype), k_largest=1, output_class=True)
    draw = np.random.default_rng(0)
    for shape in ((0, 3), (30,), (1, 1, 1), (4, 3, 5), (2, 3, 1, 4, 2)):
        mask = (draw.random(shape) < 0.3).astype(np.int32)
        check_drawn(name, mask=mask, ignore_class=True, format="box")
    check_drawn(name, mask=np.uint32([4294967295, 1, 0, 0]), output_class=True)


def test_which_label_is_the_background():
    for classes in ([1, 2], [0, 1], [-1, 1], [0, -5], [-(2**31), 2**31 - 1, 0, 2**31 - 2]):
        assert_same(
            lambda lib, c=classes: lib.pipe(
                lambda: lib.fn.segmentation.random_object_bbox(
                    np.uint32([0, 1]), foreground_prob=0, output_class=True, classes=c
                )[2]
            ).run()
        )


def test_a_seed_draws_the_same_with_other_outputs():
    def scenario(lib):
        draw = lib.ops.segmentation.RandomObjectBBox(seed=3, foreground_prob=0.5)

        def graph(x):
            return *draw(x), *draw(x, output_class=True, cache_objects=True)

        outputs = lib.source([MASK] * 9, graph).run()
        return [
            np.array_equal(outputs[k].at(i), outputs[k + 2].at(i)) for k in (0, 1) for i in range(9)
        ]

    assert_same(scenario)


def test_pixels():
    for given in (
        {},
        {"foreground": 1},
        {"foreground": 1, "threshold": 1.0},
        {"foreground": -1, "value": 2},
        {"foreground": np.int32(1), "value": 77},
    ):
        check_drawn("random_mask_pixel", **given)
    for dtype in [
        "bool",
        "uint8",
        "int8",
        "uint16",
        "int16",
        "uint32",
        "uint64",
        "int64",
        "float32",
    ]:
        check_drawn("random_mask_pixel", mask=MASK.astype(dtype), foreground=1)
    for shape in ((1, 5), (5, 1), (1,), (3, 1, 4)):
        check_drawn("random_mask_pixel", mask=np.ones(shape, np.uint8))


def test_windows():
    shapes = [np.int64([200, 100, 3]), np.int64([5, 50, 3]), np.int64([0, 7, 3])]

    def graph(lib, x):
        wide = {"random_area": [0.1, 0.3], "random_aspect_ratio": [0.1, 2], "num_attempts": 3}
        return *lib.fn.random_crop_generator(x), *lib.fn.random_crop_generator(x, seed=5, **wide)

    for dtype in ("int64", "int32", "uint8"):
        given = [shape.astype(dtype) for shape in shapes]
        both = []
        for library, settings in ((DALI, {}), (HEADRACE, {})):
            pipe = library.source(given, lambda x, lib=library: graph(lib, x), **settings)
            both.append([[np.array(o.at(i)).tolist() for i in range(3)] for o in pipe.run()])
        assert both[0] == both[1]


def test_errors():
    boxes = lambda **given: on(  # noqa: E731
        [MASK], lambda lib, x: tuple(lib.fn.segmentation.random_object_bbox(x, **given))
    )
    weights = {"classes": [0, 1, 2, 3], "class_weights": np.float32([1, 2, 3])}
    rows = [
        (boxes(classes=[0, 1], background=0), "class label 0 coincides with background label"),
        (boxes(**weights), "their shapes must match"),
        (boxes(classes=[1], ignore_class=True), "cannot be used when ``ignore_class`` is true"),
        (boxes(k_largest=0), "``k_largest`` must be at least 1; got 0"),
        (boxes(threshold=[1, 2, 3]), '"threshold" expected shape 2 but got 3 values'),
        (
            on(
                [MASK],
                lambda lib, x: lib.fn.segmentation.random_mask_pixel(x, value=1, threshold=1.0),
            ),
            "can not be provided together",
        ),
        *(
            (
                on([np.int32(shape)], lambda lib, x: lib.fn.random_crop_generator(x)[0]),
                "2 or 3 values",
            )
            for shape in ([2], [1, 2, 3, 4], [[1, 2]])
        ),
    ]
    check_words(rows)
