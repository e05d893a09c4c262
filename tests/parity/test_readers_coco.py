"""`fn.readers.coco` against DALI."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headrace.errors import HeadraceError
from headrace.operators.readers import coco_columns
from tests.parity.support import LIBRARIES, assert_both_raise

OBJECT = {
    "id": 1,
    "image_id": 3,
    "category_id": 90,
    "bbox": [1.5, 2, 10, 20.25],
    "iscrowd": 0,
    "segmentation": [[1, 2, 3, 4, 5, 6.5], [7, 8, 9, 10, 11, 12, 13, 14]],
}


@pytest.fixture(autouse=True, scope="module")
def _small_files_are_scanned():
    """As are large ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coco_columns, "SMALLEST_BYTES", 0)
        yield


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
    options = {"file_root": str(root)} | arguments
    if "preprocessed_annotations" not in arguments:
        options.setdefault("annotations_file", str(root / "all.json"))
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


@pytest.mark.filterwarnings("ignore:.*there is no object of any:UserWarning")
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
        read("headrace", root, annotations_file=str(path))
    for arguments, words in (
        ({"annotations_file": str(tmp_path / "none")}, "cannot be opened"),
        ({}, "annotations_file"),
    ):
        assert_both_raise(
            lambda lib: lib.fn.readers.coco(file_root=str(root), **arguments),  # noqa: B023
            match=words,
        )
    assert_both_raise(
        lambda lib: lib.fn.readers.coco(
            file_root=str(root),
            annotations_file=str(root / "all.json"),
            pixelwise_masks=True,
            polygon_masks=True,
        ),
        match="are mutually exclusive",
    )


def test_saved_annotations(root, tmp_path):
    """Each library reads what the other has saved, and writes the same files."""
    for number, options in enumerate(({}, ALL, ALL | {"ltrb": True, "ratio": True})):
        files = {}
        for library, other in (("dali", "headrace"), ("headrace", "dali")):
            folder = tmp_path / f"{library}-{number}"
            folder.mkdir()
            saving = {
                "save_preprocessed_annotations": True,
                "save_preprocessed_annotations_dir": str(folder),
            }
            wanted, _ = read(library, root, **options, **saving)
            files[library] = {p.name: p.read_bytes() for p in folder.iterdir()}
            outputs = {name: True for name in options if name in ALL}
            found, _ = read(other, root, preprocessed_annotations=str(folder), **outputs)
            for (values, _), (others, _) in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(values, others)
        assert files["dali"] == files["headrace"]
    saved = {"file_root": str(root), "preprocessed_annotations": str(tmp_path / "headrace-0")}
    alone = {"file_root": str(root), "annotations_file": str(root / "all.json")}
    no = "When reading data from preprocessed annotation files, "
    for arguments, words in (
        (saved | {"ltrb": True}, f'{no}"ltrb" is not supported'),
        (saved | {"skip_empty": True}, f'{no}"skip_empty" is not supported'),
        (saved | {"size_threshold": 3.0}, f'{no}"size_threshold" is not supported'),
        (saved | {"images": ["a.jpg"]}, f'{no}"images" is not supported'),
        (saved | alone, f'{no}"annotations_file" is not supported'),
        (saved | {"preprocessed_annotations": str(tmp_path)}, "No files found"),
        (alone | {"save_preprocessed_annotations": True}, "should be provided together"),
        (alone | {"save_preprocessed_annotations_dir": "x"}, "should be provided together"),
        ({"file_root": str(root)}, "must be provided"),
    ):
        assert_both_raise(
            lambda lib: tuple(lib.fn.readers.coco(**arguments)),  # noqa: B023
            match=words,
        )
    lacking = saved | {"image_ids": True}
    for arguments, words in (
        (lacking, "Save the annotations with the same outputs"),
        (saved | {"pixelwise_masks": True}, "not kept in preprocessed annotations"),
    ):
        with pytest.raises(HeadraceError, match=words):
            read("headrace", root, **arguments)


def test_masks_of_pixels(tmp_path):
    rng = np.random.default_rng(5)
    height, width = 13, 11
    images, objects = [], []
    for k in range(9):
        (tmp_path / f"{k}.jpg").write_bytes(b"image")
        images.append({"id": k, "file_name": f"{k}.jpg", "width": width, "height": height})
        for _ in range(rng.integers(1, 5)):
            outlines = [
                (rng.uniform(0, 1, (n, 2)) * (width, height)).round(2).ravel().tolist()
                for n in rng.integers(1, 8, rng.integers(0, 3))
            ]
            kind = int(rng.integers(1, 6))  # some are of no category
            one = {"image_id": k, "category_id": kind, "bbox": [0, 0, *rng.uniform(0, 2, 2)]}
            objects.append(one | {"segmentation": outlines})
    runs = [7, 20, 3, 15, 6, 40, 20, 9, 23]
    for k, counts in enumerate((runs, "7d03K3i0>QO3")):  # the text says the same
        region = {"size": [height, width], "counts": counts}
        crowd = {"image_id": k, "category_id": 6, "bbox": [0, 0, 9, 9], "segmentation": region}
        objects.append(crowd)
    kinds = [{"id": k} for k in (4, 6, 2, 3)]
    given = {"images": images, "annotations": objects, "categories": kinds}
    path = tmp_path / "masks.json"
    path.write_text(json.dumps(given))
    own = {"annotations_file": str(path), "pixelwise_masks": True}
    assert_same(tmp_path, **own, size_threshold=0.7, image_ids=True)
    assert_same(tmp_path, **own, skip_empty=True, ratio=True, avoid_class_remapping=True)
    objects[-1]["segmentation"]["size"] = [3, 3]
    path.write_text(json.dumps(given))
    with pytest.raises(ValueError, match="has the size"):
        read("headrace", tmp_path, **own)


def test_masks_that_reach_the_last_pixel_or_share_a_label(root, tmp_path):
    """DALI loses a part of these."""
    image = {"id": 1, "file_name": "a.jpg", "width": 3, "height": 2}

    def region(kind, *counts):
        runs = {"size": [2, 3], "counts": counts}
        return {"image_id": 1, "category_id": kind, "bbox": [0, 0, 9, 9], "segmentation": runs}

    objects = [region(1, 2, 4), region(2, 3, 3), region(1, 0, 1, 5)]
    given = {"images": [image], "annotations": objects, "categories": [{"id": 1}, {"id": 2}]}
    path = tmp_path / "last.json"
    path.write_text(json.dumps(given))
    found, _ = read("headrace", root, annotations_file=str(path), pixelwise_masks=True)
    assert found[9][0].tolist() == [[[1], [1], [2]], [[0], [2], [2]]]
