"""Boxes, points, canvases and masks on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIDataType, DALIInterpType
from tests.support.gpu.alike import check_alike, check_same_error
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

_rng = np.random.default_rng(0)
IMAGES = [_rng.integers(1, 255, s, np.uint8) for s in [(30, 41, 3), (9, 12, 3), (1, 1, 3)]]


def random_boxes(count: int) -> np.ndarray:
    corners = np.sort(_rng.random((count, 2, 2)).astype(np.float32), axis=1)
    return np.ascontiguousarray(corners.reshape(count, 4))


def test_anchors():
    boxes = [random_boxes(k) for k in (9, 1, 0, 40)]
    boxes[3][7] = boxes[3][8]
    labels = [np.arange(1, len(b) + 1, dtype=np.int32) for b in boxes]
    anchors = [*random_boxes(700).reshape(-1).tolist(), *boxes[0][3].tolist() * 2]
    for options in (
        {},
        {"criteria": 0.0},
        {"criteria": 0.3, "offset": True, "scale": 300, "stds": [0.5, 0.6, 0.7, 0.8]},
    ):
        got = run_gpu_operator("box_encoder", boxes, labels, anchors=anchors, **options)
        wanted = run_cpu_operator_on_batch("box_encoder", boxes, labels, anchors=anchors, **options)
        for a, b in zip(got[1], wanted[1], strict=True):
            np.testing.assert_array_equal(a, b)
        for a, b in zip(got[0], wanted[0], strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5)


def test_flips():
    flips = [np.int32(k) for k in (1, 0, 2, -1)]
    for ltrb in (False, True):
        boxes = [random_boxes(k) for k in (9, 1, 0, 400)]
        for options in ({"ltrb": ltrb}, {"ltrb": ltrb, "horizontal": 0, "vertical": flips}):
            check_alike("bb_flip", boxes, **options)
    check_same_error("bb_flip", [boxes[0], np.ones((2, 3), np.float32)], sample=1)
    for options in ({}, {"flip_x": flips, "flip_y": 1, "center_y": 3.3}):
        points = [np.ascontiguousarray(b[:, :n]) for b, n in zip(boxes, (2, 3, 2, 3), strict=True)]
        check_alike("coord_flip", points, **options)
    check_same_error("coord_flip", [*points, np.ones((2, 4), np.float32)], sample=4)


def test_canvases():
    ratios = [np.float32(r) for r in (1.0, 2.3, 3.9)]
    for options in (
        {"ratio": 2.0, "fill_value": (300, -1, 2)},
        {"ratio": ratios, "fill_value": 5, "paste_x": 0.2, "paste_y": 1.0, "min_canvas_size": 9},
    ):
        check_alike("paste", IMAGES, layout="HWC", **options)
    check_alike("paste", IMAGES[:1] * 2, layout="HWC", ratio=1.5, fill_value=1)
    wrong = [np.float32(r) for r in (1.0, 0.3, 3.9)]
    check_same_error("paste", IMAGES, layout="HWC", ratio=wrong, fill_value=5, sample=1)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.float32])
def test_grids(dtype):
    rows = [row.astype(dtype) for row in IMAGES]
    for options in (
        {},
        {"tile": 7, "ratio": 0.4, "angle": 0.7, "shift_x": 1.3, "shift_y": -9.0},
        {"tile": 5, "ratio": [np.float32(r) for r in (0.2, 0.5, 0.8)]},
    ):
        check_alike("grid_mask", rows, layout="HWC", **options)
    tiles = [np.int32(t) for t in (4, 0, 3)]
    check_same_error("grid_mask", rows, layout="HWC", tile=tiles, sample=1)


@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_displacements(dtype):
    rows = [row.astype(dtype) for row in IMAGES]
    masks = [np.int32(k) for k in (1, 0)]
    for name in ("sphere", "water"):
        for kind in (DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR):
            for options in ({"fill_value": 77.6}, {"mask": masks}):
                options = {"layout": "HWC", "interp_type": kind, **options}
                got = run_gpu_operator(name, rows[:2], **options)
                wanted = run_cpu_operator_on_batch(name, rows[:2], **options)
                for a, b in zip(got, wanted, strict=True):  # sines differ in their last bit
                    far = np.abs(a.astype(np.float64) - b.astype(np.float64))
                    assert (far > 1e-2).mean() < 0.003
    same = run_gpu_operator("water", rows, layout="HWC", mask=0)
    for a, b in zip(same, rows, strict=True):
        np.testing.assert_array_equal(a, b)


def test_perspectives():
    tilt = np.float32([[1.1, 0.05, 3], [0.02, 0.9, -2], [0.0005, 0.001, 1]])
    name = "experimental.warp_perspective"
    for kind, border, dtype in (
        ("NN", "reflect", np.uint8),
        ("LINEAR", "replicate", np.uint8),
        ("LINEAR", "constant", np.uint8),
        ("CUBIC", "reflect_101", np.float32),
        ("CUBIC", "wrap", np.float32),
    ):
        rows = [row.astype(dtype) for row in IMAGES]
        options = {"interp_type": DALIInterpType[f"INTERP_{kind}"], "border_mode": border}
        options["inverse_map"] = border != "wrap"
        inputs = [rows, [tilt + np.float32(k) / 1000 for k in range(len(rows))]]
        if border == "constant":
            inputs, options["matrix"] = [rows], tuple(tilt.reshape(-1).tolist())
        got = run_gpu_operator(name, *inputs, layout="HWC", **options)
        wanted = run_cpu_operator_on_batch(name, *inputs, layout="HWC", **options)
        for a, b in zip(got, wanted, strict=True):
            far = np.abs(a.astype(np.float64) - b.astype(np.float64))
            assert (far > (1 if dtype == np.uint8 else 0.05)).mean() < 0.01, (kind, border)


def test_jpeg_compression():
    rows = [*IMAGES, *(_rng.integers(0, 256, s, np.uint8) for s in [(17, 4, 3), (16, 5, 3)])]
    y, x = np.mgrid[:40, :50]
    rows.append(np.stack([127 + 100 * np.sin(x / 9 + y / 17), x * 5, y * 6], -1).astype(np.uint8))
    for quality in (1, 30, [np.int32(q) for q in (-3, 10, 49, 50, 75, 95)], 100):
        check_alike("jpeg_compression_distortion", rows, layout="HWC", quality=quality)
    sequences = [np.stack([IMAGES[0]] * 3), IMAGES[1][np.newaxis][:0]]
    check_alike("jpeg_compression_distortion", sequences, layout="FHWC")
    gray = [*IMAGES[:1], IMAGES[0][..., :1]]
    check_same_error("jpeg_compression_distortion", gray, layout="HWC", sample=1)


def test_pasted_images():
    ids = [np.int32([0, 1, 2]), np.int32([]), np.int32([2, 0])]
    corners = [_rng.integers(0, 9, (len(i), 2)).astype(np.int32) for i in ids]
    options = {"in_ids": ids, "out_anchors": corners, "output_size": (40, 50)}
    check_alike("multi_paste", IMAGES, layout="HWC", **options)
    check_alike("multi_paste", IMAGES, layout="HWC", dtype=DALIDataType.FLOAT, **options)
    clips = [np.stack([image, image // 2]) for image in IMAGES]
    shares = [np.float32([[0.2, 0.3], [0.1, 0.5]])] * 3
    check_alike(
        "multi_paste",
        *(clips, clips),
        layout="FHWC",
        in_anchors_rel=shares,
        output_size=(40, 50),
    )
    wrong = [np.int32([0]), np.int32([3]), np.int32([0])]
    check_same_error(
        "multi_paste", IMAGES, layout="HWC", in_ids=wrong, output_size=(40, 50), sample=1
    )
