"""Boxes, masks and points over pictures, with colours and names of their classes."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

import headrace
import headrace.experimental.dynamic as ndd
from headrace import Pipeline, contact_sheet, errors, fn
from headrace.display.marks import color_of
from headrace.tensors import TensorListCPU
from tests.core.display.test_show import LEFT, TOP, tile

SIDE = 64
GREY = np.full((SIDE, 2 * SIDE, 3), 128, np.uint8)
MASK = np.zeros((SIDE, 2 * SIDE), np.int32)
MASK[40:60, 100:120] = 2


def drawn(data=(GREY,), **marks):
    return tile(contact_sheet(data, size=2 * SIDE, **marks), SIDE, 2 * SIDE)


PIXELS = np.array([[10, 20, 50, 60], [70, 5, 90, 15]])
SAME_BOXES = {
    "pixels": ([PIXELS], {}),
    "array of a batch": (PIXELS[None], {}),
    "array of one": (PIXELS, {}),
    "floats": ([PIXELS.astype(np.float32)], {}),
    "fractions": ([PIXELS / [128, 64, 128, 64]], {}),
    "float32 fractions": ([(PIXELS / [128, 64, 128, 64]).astype(np.float32)], {}),
    "extents": ([PIXELS - [[0, 0, 10, 20], [0, 0, 70, 5]]], {"box_layout": "xyWH"}),
    "batch": (TensorListCPU(PIXELS[None]), {}),
    "dynamic batch": (ndd.batch([PIXELS]), {}),
    "not finite": ([np.vstack([PIXELS, [np.nan] * 4])], {}),
}


@pytest.mark.parametrize("case", SAME_BOXES)
def test_boxes_are_drawn_on_their_edges(case):
    boxes, arguments = SAME_BOXES[case]
    picture = drawn(boxes=boxes, **arguments)
    edges = {(40, 10): 0, (20, 30): 0, (40, 49): 0, (59, 30): 0, (10, 70): 1, (14, 80): 1}
    for (y, x), number in edges.items():
        assert tuple(picture[y, x]) == color_of(number), (y, x)
    for y, x in [(40, 30), (10, 80), (63, 127), (40, 6)]:
        assert tuple(picture[y, x]) == (128, 128, 128), (y, x)
    assert (GREY == 128).all()


def test_what_is_fitted_is_drawn_where_it_was():
    small = contact_sheet([GREY], boxes=[PIXELS], size=SIDE)
    assert tuple(small[TOP + 20, LEFT + 5]) == color_of(0)
    planes = np.ascontiguousarray(GREY.transpose(2, 0, 1)).astype(np.float32) / 255 - 0.5
    assert tuple(drawn([planes], boxes=[PIXELS])[40, 10]) == color_of(0)


def test_boxes_of_frames_follow_them():
    clip = np.stack([GREY, GREY])
    moving = np.stack([PIXELS, PIXELS + 3])
    sheet = contact_sheet([clip], boxes=[moving], size=2 * SIDE)
    assert tuple(tile(sheet, SIDE, 2 * SIDE)[40, 10]) == color_of(0)
    second = tile(sheet, SIDE, 2 * SIDE, column=1)
    assert tuple(second[40, 13]) == color_of(0)
    assert tuple(second[40, 10]) == (128, 128, 128)


def test_masks_have_the_colours_of_their_classes():
    objects = np.stack([MASK == 2, MASK == 7])
    for masks, number in (([MASK], 2), ([MASK[..., None]], 2), (MASK, 2), ([objects], 0)):
        picture = drawn(masks=masks)
        assert np.abs(picture[50, 110] - (0.45 * 128 + 0.55 * np.array(color_of(number)))).max() < 1
        assert tuple(picture[20, 20]) == (128, 128, 128)


def test_points():
    points = np.array([[20, 10, 1], [100, 50, 2], [60, 30, 0]])
    picture = drawn(keypoints=[points])
    assert tuple(picture[10, 20]) == color_of(0)
    assert tuple(picture[50, 100]) == color_of(1)
    assert tuple(picture[30, 60]) == (128, 128, 128)
    two = np.array([[[20, 10], [30, 10]], [[100, 50], [90, 50]]])
    picture = drawn(keypoints=[two])
    assert tuple(picture[10, 30]) == color_of(0)
    assert tuple(picture[50, 90]) == color_of(1)


def test_classes_have_colours_names_and_a_legend():
    """The legend has what was drawn, and nothing else; texts find the classes of their names."""
    names = ["nothing", "dog", "cat"]
    plain = contact_sheet([GREY], boxes=[PIXELS], size=2 * SIDE)
    sheets = [
        contact_sheet([GREY], boxes=[PIXELS], labels=labels, classes=classes, size=2 * SIDE)
        for labels, classes in (
            ([[2, 1]], names),
            ([["cat", "dog"]], names),
            ([np.array([[2], [1]])], {1: "dog", 2: "cat", 5: "cow"}),
        )
    ]
    for sheet in sheets:
        picture = tile(sheet, SIDE, 2 * SIDE)
        assert tuple(picture[59, 30]) == color_of(2)
        assert tuple(picture[14, 80]) == color_of(1)
        np.testing.assert_array_equal(sheet, sheets[0])
        legend = sheet[plain.shape[0] :]
        colors = {tuple(color) for color in legend.reshape(-1, 3)}
        assert {color_of(1), color_of(2)} < colors
        assert color_of(0) not in colors
    np.testing.assert_array_equal(
        contact_sheet([GREY], labels=[1], classes=names), contact_sheet([GREY], labels=["dog"])
    )


def test_outputs_are_drawn_over_others():
    def program():
        pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
        with pipe:
            image = fn.external_source(lambda: [GREY], layout="HWC")
            pipe.set_outputs(image, fn.external_source(lambda: [PIXELS]), np.array([2, 1]))
        return pipe

    outputs = ([GREY], [PIXELS], [np.array([2, 1])])
    named = {"image": [GREY], "box": [PIXELS], "kind": [np.array([2, 1])]}
    expected = drawn(boxes=[PIXELS], labels=[[2, 1]])
    for data, boxes, labels in (
        (outputs, 1, 2),
        (named, "box", "kind"),
        (program(), 1, 2),
        (iter([outputs]), 1, 2),
    ):
        np.testing.assert_array_equal(drawn(data, boxes=boxes, labels=labels), expected)


@pytest.mark.parametrize(
    ("marks", "error", "match"),
    [
        (
            {"boxes": [np.zeros((2, 5))]},
            errors.ShapeError,
            r"`boxes` of sample 0 .*\(2, 5\).* 4 num",
        ),
        ({"keypoints": [np.zeros((2, 4))]}, errors.ShapeError, "expected 2 or 3 numbers"),
        ({"masks": [np.zeros((4, 4))]}, errors.ShapeError, "`masks` of sample 0 .*float64"),
        ({"boxes": []}, errors.ArgumentValueError, "`boxes` is for 0 samples; 1 are shown"),
        ({"box_layout": "XYxy"}, errors.ArgumentValueError, "expected one of xyXY, xyWH"),
        ({"boxes": 3}, errors.ArgumentValueError, "`boxes` is output 3; there are 1 outputs"),
        ({"masks": "mask"}, errors.ArgumentValueError, "`masks` is 'mask'; the outputs are ''"),
        ({"classes": "dog"}, errors.ArgumentTypeError, "`classes` is 'dog'"),
    ],
)
def test_mistakes(marks, error, match):
    with pytest.raises(error, match=match):
        contact_sheet([GREY], **marks)


@pytest.mark.parametrize(
    ("suffix", "begins"), [("png", b"\x89PNG"), ("JPG", b"\xff\xd8\xff"), ("svg", b"<svg xmlns=")]
)
def test_suffixes_say_the_format(tmp_path, suffix, begins):
    path = tmp_path / f"sheet.{suffix}"
    headrace.show([GREY], path)
    assert path.read_bytes().startswith(begins)
    if suffix == "JPG":
        sheet = contact_sheet([GREY]).astype(int)
        assert np.abs(cv2.imread(str(path))[..., ::-1] - sheet).mean() < 3


CELLS = [
    "import numpy as np, headrace\nfrom headrace import fn, pipeline_def",
    """@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def program():
    return fn.external_source(lambda: [np.full((8, 8, 3), 99, np.uint8)] * 2, layout="HWC")
pipe = program()
pipe""",
    "headrace.show(pipe, boxes=[[[1, 1, 6, 6]], []])",
    "batch, = pipe.run()\nbatch",
    "batch[0]",
]


def test_a_notebook_shows_pictures_and_tables(monkeypatch, tmp_path):
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    notebook = nbformat.v4.new_notebook(cells=[*map(nbformat.v4.new_code_cell, CELLS)])
    nbclient.NotebookClient(notebook, timeout=120).execute()
    found = [[set(output.get("data", {})) for output in cell.outputs] for cell in notebook.cells]
    assert found[0] == []
    for kinds in (found[1], found[3], found[4]):
        assert "text/html" in kinds[-1]
    assert any("image/png" in kinds for kinds in found[2])
