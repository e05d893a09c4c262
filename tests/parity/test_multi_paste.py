"""`fn.multi_paste` against DALI."""

from __future__ import annotations

import numpy as np

from tests.parity.support import assert_both_raise, assert_parity, run_graph

_rng = np.random.default_rng(0)
SHAPES = [(20, 30, 3), (7, 9, 3), (1, 1, 3), (12, 5, 3)]
IDS = [np.int32(ids) for ids in ([0, 1, 3], [2], [], [3, 3])]


def images(dtype="uint8", shapes=SHAPES):
    return [(_rng.uniform(0, 1, s) * 300 - 20).astype(dtype) for s in shapes]


def places(dtype, high=1, ids=IDS):
    return [_rng.integers(0, high + 1, (len(i), 2)).astype(dtype) for i in ids]


def shares(high):
    return [(_rng.uniform(0, high, (len(i), 2))).astype(np.float32) for i in IDS]


def test_regions():
    size = {"output_size": (25, 34)}

    def graph(lib, x, ids, ins, outs, lengths, in_shares, out_shares, length_shares):
        paste = lambda **given: lib.fn.multi_paste(x, in_ids=ids, **size, **given)  # noqa: E731
        return (
            paste(),
            paste(out_anchors=outs),
            paste(out_anchors=outs, shapes=lengths),
            paste(in_anchors=ins, shapes=lengths),
            paste(in_anchors_rel=in_shares, out_anchors_rel=out_shares),
            paste(in_anchors_rel=in_shares, shapes_rel=length_shares, out_anchors=outs),
        )

    feeds = [places("int32", 0), places("int32", 4), places("int32", 1)]
    feeds += [shares(0.5), shares(0.1), shares(0.4)]
    # Of an image of one pixel, each part is that pixel.
    for rows in (feeds[3], feeds[5]):
        rows[1][:] = 0
    layouts = ["HWC", *[""] * 7]
    assert_parity(graph, images(), IDS, *feeds, layouts=layouts, max_levels=0)
    sizes = [np.int32([k + 20, 40 - k]) for k in range(4)]
    for layout in ("HWC", ""):
        assert_parity(
            lambda lib, x, ids, s: lib.fn.multi_paste(x, in_ids=ids, output_size=s),
            *(images(), IDS, sizes),
            layouts=[layout, "", ""],
        )


def test_several_inputs_and_constants():
    def graph(lib, x, y):
        paste = lib.fn.multi_paste
        corners = np.array([[3, 1], [4, 2]], np.int32)
        return (
            paste(x, y, output_size=(24, 33), out_anchors=corners),
            paste(x, output_size=(20, 30)),
            paste(x, output_size=(20, 30), in_ids=2),
            paste(x, output_size=(20, 30), in_ids=[1, 2, 3]),
        )

    assert_parity(graph, images(), images(), layouts="HWC", max_levels=0)
    same = [images(shapes=[(5, 6, 2)] * 3) for _ in range(3)]
    assert_parity(lambda lib, *x: lib.fn.multi_paste(*x), *same, layouts="HWC")
    frames = [images(shapes=[(1, *shape) for shape in SHAPES]) for _ in range(2)]
    for layout in ("FHWC", ""):
        assert_parity(
            lambda lib, *x: lib.fn.multi_paste(*x, output_size=(24, 33)), *frames, layouts=layout
        )


def test_element_types():
    for dtype in ("uint8", "int16", "int32", "float32"):
        data = images(dtype)
        for wanted in ("UINT8", "INT16", "INT32", "FLOAT"):
            assert_parity(
                lambda lib, x: lib.fn.multi_paste(
                    x,
                    in_ids=[0],
                    output_size=(21, 30),
                    dtype=getattr(lib.types, wanted),  # noqa: B023
                ),
                data,
                layouts="HWC",
                max_levels=0,
            )


def test_sequences():
    """Each frame as the images alone; DALI fails with more than one."""
    clips = [np.stack([i, i + 1, i + 2]) for i in images()]
    corners = [_rng.integers(0, 4, (3, 1, 2)).astype(np.int32) for _ in clips]

    def graph(lib, x, corners):
        return lib.fn.multi_paste(
            x, out_anchors=lib.fn.per_frame(corners), output_size=(24, 34), in_ids=[1]
        )

    ((whole,),) = run_graph("headrace", graph, clips, corners, layouts=["FHWC", ""])
    for f in range(3):
        ((frame,),) = run_graph(
            "dali",
            lambda lib, x, at: lib.fn.multi_paste(
                x, out_anchors=at, output_size=(24, 34), in_ids=[1]
            ),
            [clip[f] for clip in clips],
            [each[f] for each in corners],
            layouts=["HWC", ""],
        )
        for a, b in zip(whole.samples, frame.samples, strict=True):
            np.testing.assert_array_equal(a[f], b)


def test_errors():
    data, layouts = images(), ["HWC", ""]
    size = (24, 34)
    for given, match in (
        ({}, "not specified"),
        ({"in_ids": [4], "output_size": size}, "in_ids"),
        ({"in_ids": [-1], "output_size": size}, "in_ids"),
        ({"output_size": (3, 34)}, "within output bounds"),
        ({"output_size": 9}, "output_size"),
        ({"output_size": (-9, 9)}, "non-negative"),
    ):
        assert_both_raise(
            lambda lib, x: lib.fn.multi_paste(x, **given),  # noqa: B023
            data,
            layouts="HWC",
            match=match,
        )
    for name, rows, match in (
        ("shapes", np.int32([[3, 4]]), "within its image"),
        ("in_anchors", np.int32([[-1, 0]]), "within its image"),
        ("in_anchors", np.float32([[0, 0]]), "in_anchors"),
        ("out_anchors", np.int32([[24, 0]]), "within output bounds"),
        ("out_anchors", np.int32([0, 0]), "Unexpected shape"),
        ("out_anchors", np.int32([[0, 0, 0]]), "Unexpected shape"),
        ("out_anchors", np.int32([[0, 0]] * 2), "Unexpected shape"),
        ("out_anchors_rel", np.float32([[1.1, 0]]), r"range \[0, 1\]"),
        ("shapes_rel", np.float32([[-0.1, 0]]), r"range \[0, 1\]"),
    ):
        assert_both_raise(
            lambda lib, x, p: lib.fn.multi_paste(x, output_size=size, **{name: p}),  # noqa: B023
            data,
            [rows] * 4,
            layouts=layouts,
            match=match,
        )
    for name in ("in_anchors", "out_anchors", "shapes"):
        assert_both_raise(
            lambda lib, x, p: lib.fn.multi_paste(
                x,
                output_size=size,
                **{name: p, f"{name}_rel": lib.fn.cast(p, dtype=lib.types.FLOAT)},  # noqa: B023
            ),
            data,
            [np.zeros((1, 2), np.int32)] * 4,
            layouts=layouts,
            match="together",
        )
    twice = lambda lib, x, y: lib.fn.multi_paste(x, y, output_size=size)  # noqa: E731
    assert_both_raise(twice, data, images("int16"), layouts="HWC", match="same data type")
    gray = [np.ascontiguousarray(i[..., :1]) for i in data]
    assert_both_raise(twice, data, gray, layouts="HWC", match="number of channels")
    assert_both_raise(
        lambda lib, x, y: lib.fn.multi_paste(x, y, output_size=size, in_ids=[0]),
        *(data, data),
        layouts="HWC",
        match="exactly one",
    )
    for dtype in ("INT8", "UINT32", "FLOAT64"):
        assert_both_raise(
            lambda lib, x: lib.fn.multi_paste(
                x,
                output_size=size,
                dtype=getattr(lib.types, dtype),  # noqa: B023
            ),
            data,
            layouts="HWC",
            match="Unsupported output type",
        )
    assert_both_raise(lambda lib, x: lib.fn.multi_paste(x), images("uint16"), layouts="HWC")
    assert_both_raise(lambda lib, x: lib.fn.multi_paste(x), data, layouts="CHW")
