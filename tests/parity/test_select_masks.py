"""`fn.segmentation.select_masks` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

POLYGONS = [
    np.int32([[4, 0, 3], [1, 3, 5], [2, 5, 9], [4, 9, 10]]),
    np.int32([[0, 0, 0], [-3, 2, 8], [7, 1, 12]]),
    np.zeros((0, 3), np.int32),
]
VERTICES = [np.random.default_rng(n).random((n, 2)).astype(np.float32) for n in (10, 12, 0)]
IDS = [np.int32(ids) for ids in ([2, 4], [7, 0, -3], [])]


def selected(lib, ids, polygons, vertices):
    select = lib.fn.segmentation.select_masks
    return (
        *select(ids, polygons, vertices),
        *select(ids, polygons, vertices, reindex_masks=True),
    )


def exact(*feeds, **options):
    assert_parity(selected, *feeds, relative=0, absolute=0, differing=0, **options)


def test_selections():
    exact(IDS, POLYGONS, VERTICES)
    exact([ids[:1] for ids in IDS], POLYGONS, [np.repeat(v, 2, axis=1) for v in VERTICES])
    exact([ids[:0] for ids in IDS], POLYGONS, VERTICES)
    for dtype in ("bool", "uint8", "int16", "int32", "int64", "float16", "float64"):
        exact(IDS, POLYGONS, [(v * 9).astype(dtype) for v in VERTICES])
    # What is not selected is not looked at.
    exact([np.int32([1])], [np.int32([[0, 5, 99], [1, 0, 2]])], VERTICES[:1])


@pytest.mark.parametrize(
    ("ids", "polygons", "vertices", "match"),
    [
        ([9], POLYGONS[0], VERTICES[0], "mask_ids"),
        ([1, 1], POLYGONS[0], VERTICES[0], "mask_ids"),
        ([[1]], POLYGONS[0], VERTICES[0], "mask_ids"),
        (1, POLYGONS[0], VERTICES[0], "mask_ids"),
        ([1], POLYGONS[0][0], VERTICES[0], "polygons"),
        ([1], POLYGONS[0][:, :2], VERTICES[0], "polygons"),
        ([1], POLYGONS[0], VERTICES[0][0], "vertices"),
        ([1], POLYGONS[0], VERTICES[0][:, :, None], "vertices"),
        ([2], POLYGONS[0], VERTICES[0][:8], "vertices"),
        ([0], np.int32([[0, -1, 2]]), VERTICES[0], "vertices"),
        ([0], np.int32([[0, 3, 2]]), VERTICES[0], "vertices"),
        (np.int64([1]), POLYGONS[0], VERTICES[0], "mask_ids"),
        ([1], POLYGONS[0].astype(np.int64), VERTICES[0], "polygons"),
    ],
)
def test_errors(ids, polygons, vertices, match):
    ids = ids if isinstance(ids, np.ndarray) else np.int32(ids)
    feeds = [np.asarray(ids)], [np.ascontiguousarray(polygons)], [np.ascontiguousarray(vertices)]
    assert_both_raise(selected, *feeds, match=match)
