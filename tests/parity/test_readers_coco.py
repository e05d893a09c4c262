"""`fn.readers.coco` against DALI."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.parity.support import LIBRARIES, assert_both_raise

OBJECT = {
    "id": 1,
    "image_id": 3,
    "category_id": 90,
    "bbox": [1.5, 2, 10, 20.25],
    "iscrowd": 0,
    "segmentation": [[1, 2, 3, 4, 5, 6.5], [7, 8, 9, 10, 11, 12, 13, 14]],
}
RUNS = {"size": [50, 100], "counts": [1000, 200, 3800]}
ANNOTATIONS = {
    "info": {"description": "ünïcode"},
    "images": [
        {"id": 7, "file_name": "c.jpg", "width": 100, "height": 50},
        {"id": 3, "file_name": "a.jpg", "width": 60, "height": 80},
        {"id": 9, "file_name": "b.jpg", "width": 40, "height": 30},
        {"id": 1, "file_name": "z.jpg", "width": 10, "height": 10},
    ],
    "categories": [{"id": 5, "name": "x"}, {"id": 2, "name": "y"}, {"id": 90, "name": "z"}],
    "annotations": [
        OBJECT,
        OBJECT | {"image_id": 7, "category_id": 2, "bbox": [0, 0, 100, 50]},
        OBJECT | {"category_id": 5, "bbox": [5, 5, 0.05, 7], "segmentation": [[5, 5, 6, 6, 7, 7]]},
        OBJECT
        | {"image_id": 7, "category_id": 5, "bbox": [3, 4, 7.7, 9], "iscrowd": 1}
        | {"segmentation": RUNS},
        OBJECT | {"image_id": 9, "category_id": 2, "iscrowd": 1, "segmentation": RUNS},
        OBJECT | {"image_id": 7, "bbox": [11, 12, 13, 14.1]},
    ],
}
ALL = {"image_ids": True, "polygon_masks": True}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("coco")
    for name in "abcz":
        (root / f"{name}.jpg").write_bytes(name.encode())
    (root / "all.json").write_text(json.dumps(ANNOTATIONS))
    return root


def read(library, root, **arguments):
    lib = LIBRARIES[library]
    pipe = lib.pipeline.Pipeline(batch_size=3, num_threads=2, device_id=None, seed=42)
    options = {"file_root": str(root), "annotations_file": str(root / "all.json")} | arguments
    with pipe:
        pipe.set_outputs(*lib.fn.readers.coco(name="reader", **options))
    pipe.build()
    found = []
    for _ in range(3):
        for out in pipe.run():
            found += [(np.array(out[k]), out.layout()) for k in range(len(out))]
    return found, {k: int(v) for k, v in pipe.reader_meta("reader").items()}


def assert_same(root, **arguments):
    (want, meta), (got, own) = (read(library, root, **arguments) for library in LIBRARIES)
    assert meta == own
    for (values, layout), (wanted, its_layout) in zip(got, want, strict=True):
        assert (values.dtype, values.shape, layout) == (wanted.dtype, wanted.shape, its_layout)
        np.testing.assert_array_equal(values, wanted)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")
def test_arguments(root):
    for arguments in (
        {},
        ALL,
        ALL | {"ltrb": True, "ratio": True},
        ALL | {"ratio": True},
        ALL | {"ltrb": True},
        {"skip_empty": True, "image_ids": True},
        {"include_iscrowd": False},
        {"include_iscrowd": False, "skip_empty": True},
        ALL | {"size_threshold": 9.5},
        ALL | {"size_threshold": 0.0},
        {"avoid_class_remapping": True},
        {"masks": True},
        {"masks": True, "ratio": True, "save_img_ids": True},
        {"images": ["b.jpg", "c.jpg"], "image_ids": True},
        {"images": ["b.jpg", "b.jpg", "none.jpg"]},
        {"images": []},
        {"images": ["z.jpg", "c.jpg"], "skip_empty": True},
        {"random_shuffle": True, "seed": 1},
        {"shuffle_after_epoch": True},
        {"num_shards": 2, "shard_id": 1, "stick_to_shard": True, "pad_last_batch": True},
    ):
        assert_same(root, **arguments)


def test_files_that_lack_something(root, tmp_path):
    path = tmp_path / "some.json"
    for changes in (
        {"categories": []},
        {"annotations": []},
        {"annotations": [OBJECT | {"category_id": 77}]},
        {"annotations": [OBJECT | {"image_id": 77}]},
        {"annotations": [{k: v for k, v in OBJECT.items() if k != "bbox"}]},
        {"annotations": [{k: v for k, v in OBJECT.items() if k != "iscrowd"}]},
        {"annotations": [{k: v for k, v in OBJECT.items() if k != "segmentation"}]},
        {"annotations": [OBJECT | {"bbox": [-5, -5, 200, 300]}]},
        {"images": ANNOTATIONS["images"] + ANNOTATIONS["images"][:1]},
    ):
        path.write_text(json.dumps(ANNOTATIONS | changes))
        assert_same(root, annotations_file=str(path), **ALL)


def test_errors(root, tmp_path):
    path = tmp_path / "wrong.json"
    for changes, words in (
        ({"images": []}, "No files found"),
        ({"annotations": [OBJECT | {"bbox": [1, 2, 3]}]}, "exactly 4"),
    ):
        path.write_text(json.dumps(ANNOTATIONS | changes))
        assert_both_raise(
            lambda lib: lib.fn.readers.coco(file_root=str(root), annotations_file=str(path)),
            match=words,
        )
    path.write_text('{"images": [oops')  # which DALI reads for ever
    with pytest.raises(ValueError, match="format of COCO"):
        read("penstock", root, annotations_file=str(path))
    for arguments, words in (
        ({"annotations_file": str(tmp_path / "none")}, "cannot be opened"),
        ({}, "annotations_file"),
    ):
        assert_both_raise(
            lambda lib: lib.fn.readers.coco(file_root=str(root), **arguments),  # noqa: B023
            match=words,
        )
    with pytest.raises(NotImplementedError, match="pixelwise_masks"):
        read("penstock", root, pixelwise_masks=True)
