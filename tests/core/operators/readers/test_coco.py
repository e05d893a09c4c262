"""Annotations of COCO: masks as pycocotools makes them, and files that lack something."""

from __future__ import annotations

import copy
import json
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn
from headrace.errors import ArgumentValueError
from headrace.operators.readers import coco_columns
from headrace.operators.readers.coco_annotations import CocoImage
from headrace.operators.readers.coco_columns import read_table
from headrace.operators.readers.coco_masks import MaskColumn
from headrace.operators.support import registry
from tests.support.fuzz import FILES, mutants, outcomes

FILE = {
    "images": [
        {"id": 1, "file_name": "0.jpg", "width": 10, "height": 8},
        {"id": 2, "file_name": "1.jpg", "width": 10, "height": 8},
    ],
    "annotations": [
        {"id": 5, "image_id": 1, "category_id": 7, "bbox": [1, 2, 3, 4], "iscrowd": 0,
         "segmentation": [[1, 1, 5, 1, 5, 5]]},
        {"id": 6, "image_id": 2, "category_id": 3, "bbox": [2, 2, 4, 4], "iscrowd": 1,
         "segmentation": {"size": [8, 10], "counts": [10, 20, 50]}},
        {"id": 7, "image_id": 2, "category_id": 7, "bbox": [2, 2, 4, 4], "iscrowd": 1,
         "segmentation": {"size": [8, 10], "counts": ":d0b1"}},
    ],
    "categories": [{"id": 7, "name": "a"}, {"id": 3, "name": "b"}],
}  # fmt: skip
EXTENTS = st.tuples(st.integers(1, 40), st.integers(1, 40))


@pytest.fixture(autouse=True, scope="module")
def _small_files_are_scanned():
    """As are large ones."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coco_columns, "SMALLEST_BYTES", 0)
        yield


def mask(segmentation, height, width):
    masks = MaskColumn()
    image = CocoImage(1, "a.jpg", width, height, [])
    masks.add(image, [{"id": 1, "segmentation": segmentation}], np.array([1]))
    return masks[np.array([0])][0][..., 0]


@given(EXTENTS, st.integers(0, 2**32), st.sampled_from([0.0, 0.02, 0.5, 0.98, 1.0]))
def test_runs(extents, seed, share):
    coco = pytest.importorskip("pycocotools.mask")
    wanted = np.random.default_rng(seed).uniform(size=extents) < share
    wanted[: extents[0] // 2] = wanted[:1]  # long runs, too
    packed = coco.encode(np.asfortranarray(wanted.astype(np.uint8)))
    text = {"size": list(extents), "counts": packed["counts"].decode()}
    borders = np.flatnonzero(np.diff(wanted.T.reshape(-1), prepend=False))
    runs = np.diff([0, *borders, wanted.size]).tolist()
    for given_as in (text, {"size": list(extents), "counts": runs}):
        np.testing.assert_array_equal(mask(given_as, *extents), wanted)


@pytest.mark.filterwarnings("ignore:.*__array__:DeprecationWarning")
@given(
    EXTENTS,
    st.lists(
        st.lists(st.floats(-9, 60, width=32), min_size=6, max_size=12), min_size=1, max_size=2
    ),
)
def test_polygons(extents, polygons):
    coco = pytest.importorskip("pycocotools.mask")
    polygons = [polygon[: len(polygon) // 2 * 2] for polygon in polygons]
    each = [coco.decode(coco.frPyObjects([p], *extents))[..., 0] for p in polygons]
    np.testing.assert_array_equal(mask(polygons, *extents), np.maximum.reduce(each))


def test_runs_without_their_end_and_long_ones():
    # DALI and pycocotools leave outside what no run speaks of.
    for counts, pixels in (([10], 0), ([10, 20], 20), ([10, 20, 5], 20), ([0, 80], 80)):
        assert mask({"size": [8, 10], "counts": counts}, 8, 10).sum() == pixels
    # More than what 24 bits of a float32 tell apart.
    height, width = 5000, 4000
    counts = [2**24 + 1, 3, height * width - 2**24 - 4]
    found = mask({"size": [height, width], "counts": counts}, height, width).T.reshape(-1)
    np.testing.assert_array_equal(np.flatnonzero(found), 2**24 + 1 + np.arange(3))


def changed(*path, to=None):
    """The annotations without, or with another, value."""
    found = copy.deepcopy(FILE)
    part = found
    for key in path[:-1]:
        part = part[key]
    if to is None:
        del part[path[-1]]
    else:
        part[path[-1]] = to
    return found


@pytest.fixture
def read(tmp_path):
    for k in range(2):
        (tmp_path / f"{k}.jpg").write_bytes(b"x%d" % k)

    def outputs(annotations=None, **arguments):
        path = tmp_path / "all.json"
        if annotations is not None:
            path.write_text(json.dumps(annotations))
        pipe = Pipeline(2, 1, None, prefetch_queue_depth=1)
        if "preprocessed_annotations" not in arguments:
            arguments["annotations_file"] = str(path)
        with pipe:
            pipe.set_outputs(*fn.readers.coco(file_root=str(tmp_path), **arguments))
        return [[np.array(out[k]) for k in range(2)] for out in pipe.run()]

    outputs.folder = tmp_path
    return outputs


@pytest.mark.parametrize("name", ["width", "height"])
def test_images_without_extents(read, name):
    annotations = changed("images", 0, name)
    for arguments in ({}, {"ltrb": True}, {"polygon_masks": True}, {"image_ids": True}):
        for found, wanted in zip(
            read(annotations, **arguments), read(FILE, **arguments), strict=True
        ):
            for ours, theirs in zip(found, wanted, strict=True):
                np.testing.assert_array_equal(ours, theirs)
    for arguments in ({"ratio": True}, {"pixelwise_masks": True}):
        with pytest.raises(ArgumentValueError, match=rf"all\.json.*no `{name}`.*'0\.jpg'"):
            read(annotations, **arguments)
        with pytest.raises(ArgumentValueError, match=r"all\.json.*'0\.jpg' has .*0.* pixels"):
            read(changed("images", 0, name, to=0), **arguments)
    path = read.folder / "all.json"
    path.write_text(json.dumps(annotations))
    reader = ndd.readers.COCO(file_root=str(read.folder), annotations_file=str(path))
    for _, boxes, _ in reader.next_epoch(batch_size=1):
        assert np.array(boxes.tensors[0]).shape[1] == 4


WRONG = (
    (changed("annotations", 0, "category_id"), {}, "no `category_id` of .* id 5 .*'0.jpg'"),
    (changed("annotations", 0, "category_id", to="7"), {}, "`category_id` of .* id 5 .* '7'"),
    (changed("annotations", 0, "category_id", to=2**40), {}, "no integer of 32 bits"),
    (changed("annotations", 1, "image_id"), {}, "no `image_id` of .* id 6"),
    (changed("annotations", 0, "bbox", to=[1, 2, 3]), {}, "exactly 4 values.* id 5"),
    (changed("annotations", 0, "bbox", to="abcd"), {}, "exactly 4 values.* id 5"),
    (changed("annotations", 0, "bbox", to=[1, 2, "3", 4]), {}, "something else than numbers"),
    (changed("annotations", 0, "bbox", to=[1, 2, 1e300, 4]), {}, "not finite"),
    (changed("images", 0, "id"), {}, "no 'id'"),
    (changed("images", 0, "id", to="a"), {}, "not supported between"),
    (changed("images", 0, "id", to=2**40), {"image_ids": True}, "`id` of the image '0.jpg'"),
    (changed("images", 0, "file_name", to=3), {}, "`file_name` of an image is 3"),
    (changed("images"), {}, "no 'images'"),
    ([1, 2], {}, "format of COCO"),
    (
        changed("annotations", 1, "segmentation", "counts", to=[10, 20, 51]),
        {"pixelwise_masks": True},
        "id 6 .*more than the 80 pixels",
    ),
    (
        changed("annotations", 1, "segmentation", "counts", to=[10, -20, 50]),
        {"pixelwise_masks": True},
        "id 6 .*no lengths of runs",
    ),
    (
        changed("annotations", 1, "segmentation", "counts", to="abc"),
        {"pixelwise_masks": True},
        "id 6 .*no lengths of runs",
    ),
    (
        changed("annotations", 1, "segmentation", "size", to=[10, 8]),
        {"pixelwise_masks": True},
        "id 6 .*the size",
    ),
    (
        changed("annotations", 0, "segmentation", to=[1, 2, 3, 4, 5, 6]),
        {"polygon_masks": True},
        "id 5 .*neither a list of polygons",
    ),
    (
        changed("annotations", 0, "segmentation", to=[[1, 2, 1e9, 4, 5, 6]]),
        {"pixelwise_masks": True},
        "id 5 .*far outside",
    ),
)


def test_what_lacks_or_is_wrong_is_named(read):
    for wrong, arguments, words in WRONG:
        with pytest.raises(ArgumentValueError, match=rf"all\.json.*{words}"):
            read(wrong, **arguments)


def test_a_file_without_annotations_warns_once(read):
    for empty, arguments in (
        (FILE | {"annotations": []}, {}),
        (changed("annotations"), {}),
        (FILE | {"annotations": [FILE["annotations"][0] | {"image_id": 9}]}, {}),
        (FILE, {"size_threshold": 50.0}),
    ):
        with pytest.warns(UserWarning, match=r"no object of any of 2 images.*all\.json") as caught:
            read(empty, **arguments)
        assert len(caught) == 1
        assert caught[0].filename == __file__
    folder = read.folder / "saved"
    folder.mkdir()
    saving = {"save_preprocessed_annotations_dir": str(folder)}
    with pytest.warns(UserWarning, match="no object"):
        read(changed("annotations"), save_preprocessed_annotations=True, **saving)
    with pytest.warns(UserWarning, match=r"no object.*saved"):
        read(preprocessed_annotations=str(folder))


@FILES
def test_damaged_annotations(read, count):
    seen = set()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*no object of any", UserWarning)
        for kind in ({"pixelwise_masks": True, "ratio": True}, {"polygon_masks": True}):
            for _, found in outcomes(
                read.folder / "all.json",
                json.dumps(FILE).encode(),
                count // 2,
                lambda: named(read, **kind),  # noqa: B023
                hot=2000,
            ):
                seen.add(type(found))
    assert list in seen
    assert any(issubclass(kind, ArgumentValueError) for kind in seen)


def named(read, **arguments):
    """Outputs; an error about an image that does not exist names it."""
    try:
        return read(**arguments)
    except RuntimeError as error:
        if "does not exist" in str(error) or "directory" in str(error):
            return error
        raise


@FILES
def test_damaged_saved_annotations(read, count):
    folder = read.folder / "saved"
    folder.mkdir()
    saving = {"save_preprocessed_annotations_dir": str(folder)}
    kinds = {"polygon_masks": True, "image_ids": True}
    wanted = read(FILE, save_preprocessed_annotations=True, **saving, **kinds)
    files = sorted(path for path in folder.glob("*.dat") if path.name != "filenames.dat")
    errors = 0
    for path in files:
        content = path.read_bytes()
        for mutant in mutants(content, count // len(files), hot=32):
            path.write_bytes(mutant)
            try:
                found = read(preprocessed_annotations=str(folder), **kinds)
            except ArgumentValueError as error:
                assert "saved" in str(error)  # noqa: PT017 - not all raise
                errors += 1
            else:
                assert [len(out) for out in found] == [len(out) for out in wanted]
        path.write_bytes(content)
    assert errors


# The last ones are hard to round: near the middle of two numbers of 32 bits, long or tiny.
NUMBERS = (
    st.floats(0, 30, width=32).map(lambda x: round(x, 2))
    | st.integers(0, 30)
    | st.floats(-1e9, 1e9)
    | st.floats(0, 30, width=32).map(lambda x: (x + float(np.nextafter(np.float32(x), 99))) / 2)
    | st.integers(0, 2**53)
    | st.sampled_from([1e-300, 1.5e22, 16777217.000000001, -0.0, 4.9e-324])
)
OBJECTS = st.fixed_dictionaries(
    {
        "image_id": st.integers(0, 5),
        "category_id": st.integers(1, 3),
        "bbox": st.just([]) | st.lists(NUMBERS, min_size=4, max_size=4),
    },
    optional={
        "iscrowd": st.integers(0, 1),
        "segmentation": st.lists(st.lists(NUMBERS, min_size=2, max_size=7), max_size=2)
        | st.just({"size": [8, 10], "counts": [10, 20, 50]}),
    },
)


@given(
    st.permutations(range(4)),
    st.lists(OBJECTS, max_size=12),
    st.fixed_dictionaries(
        {name: st.booleans() for name in ("ltrb", "ratio", "skip_empty", "include_iscrowd")}
        | {name: st.booleans() for name in ("avoid_class_remapping", "image_ids", "polygon_masks")}
        | {"images": st.none() | st.permutations(["0.jpg", "2.jpg", "9.jpg"])},
    ),
)
def test_columns_are_what_objects_make(tmp_path_factory, ids, objects, arguments):
    """Decoded in portions, or object by object."""
    path = tmp_path_factory.mktemp("coco") / "a.json"
    images = [{"id": k, "file_name": f"{k}.jpg", "width": 10 + k, "height": 8} for k in ids]
    path.write_text(json.dumps({**FILE, "images": images, "annotations": objects}))

    def columns():
        """Everything that the index knows."""
        schema = registry.find("readers.coco")
        usual = {arg.name: arg.default for arg in schema.args.values()}
        reader = schema.cls(usual | {"file_root": ".", "annotations_file": str(path)} | arguments)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            index = reader.list_entries()
        every = np.arange(len(index))
        return list(index.paths), [
            [np.asarray(value).tolist() for value in column[every]] for column in index.columns
        ]

    def outcome():
        try:
            return columns()
        except ArgumentValueError as error:
            return str(error)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(coco_columns, "_PORTION", 2)
        found = outcome()
        patch.setattr("headrace.operators.readers.coco.read_table", lambda *_, **__: None)
        assert found == outcome()
    assert read_table(str(path), polygons=True) is not None


ODD_NAMES = """{"a": [{}, [], [[{"b": [1, -0.5e+7, true, false, null, "x\\u00e9\\n"]}]]],
 "categories": [ {"supercategory": "x", "id": 7} , {"id":3}],
 "annotations":[{"image_id":1,"bbox":[1,2,3,4],"iscrowd":1,"category_id":3,"segmentation":[
 [1,2,3,4,5] , [ ] , [1.25e1,2E0]]}],
 "images": [{"file_name": "a\\/\\"b\\\\é.jpg", "id": 1}]}  """


def test_unusual_files_are_scanned(tmp_path):
    path = tmp_path / "a.json"
    path.write_text(ODD_NAMES, encoding="utf-8")
    table = read_table(str(path), polygons=True)
    assert table.names[:] == ['a/"b\\é.jpg']
    assert table.categories == {7: 1, 3: 2}
    counts, sizes, vertices = table.polygons
    assert counts.tolist() == [3]
    assert sizes.tolist() == [2, 0, 1]
    assert vertices.tolist() == [[1, 2], [3, 4], [12.5, 2]]
    assert table.crowds.all()
    assert table.boxes.tolist() == [[1, 2, 3, 4]]


def test_ids_that_are_far_apart(tmp_path):
    path = tmp_path / "a.json"
    ids = [2**31 - 1, -(2**31), 5]
    images = [{"id": k, "file_name": str(k)} for k in ids]
    objects = [{"image_id": k, "category_id": 1, "bbox": []} for k in (*ids, 7, 2**31 - 1)]
    path.write_text(json.dumps({"images": images, "annotations": objects}))
    assert read_table(str(path), polygons=False).owners.tolist() == [0, 1, 2, 2]


STRANGE = (
    '{"images": []',
    '{"images": []} x',
    '{"images": [], "images": []}',
    '{"images": [{"id": 1, "file_name": "a", "id": 2}]}',
    '{"images": [{"id": 1, "file_name": "a\\u0041"}]}',
    '{"images": [{"id": 01, "file_name": "a"}]}',
    '{"images": [{"id": 1.0, "file_name": "a"}]}',
    '{"images": [{"id": 1, "file_name": "a",}]}',
    '{"images": [{"id": 1, "file_name": "a", "b": NaN}]}',
    '{"images": [{"id": 1, "file_name": "a", "b": [1, 2}]}',
    '{"images": [{"id": 1, "file_name": "a", "b": "\\x"}]}',
    '{"images": [{"id": 1, "file_name": "a", "b": 1.}]}',
    '{"images": [{"id": 1, "file_name": "a", "b": ' + "[" * 70 + "]" * 70 + "}]}",
    '{"images": [{"id": 1, "file_name": "a"} {"id": 2, "file_name": "a"}]}',
    '{"images": [{"id": 1, "file_n\\u0061me": "a"}]}',
    (
        '{"images": [{"id": 1, "file_name": "a"}], "annotations": [{"image_id": 1, "bbox": [], '
        '"category_id": 1, "iscrowd": true}]}'
    ),
)


def test_what_is_strange_is_left_to_others(tmp_path):
    path = tmp_path / "a.json"
    for text in STRANGE:
        path.write_text(text)
        assert read_table(str(path), polygons=True) is None, text


@FILES
def test_damaged_files_are_scanned_as_json_reads_them(tmp_path, count):
    """Files that are left to `json` apart."""
    path, content = tmp_path / "a.json", json.dumps(FILE).encode()
    scanned = 0
    for mutant in mutants(content, count, hot=len(content)):
        path.write_bytes(mutant)
        table = read_table(str(path), polygons=True)
        if table is None:
            continue
        scanned += 1
        found = json.loads(mutant.decode("utf-8", "replace"))
        images = sorted(found["images"], key=lambda image: image["id"])
        assert table.ids.tolist() == [image["id"] for image in images]
        assert table.names[:] == [image["file_name"] for image in images]
        objects = found.get("annotations", ())
        owners = [o["image_id"] for i in images for o in objects if o["image_id"] == i["id"]]
        assert table.ids[table.owners].tolist() == owners
    assert scanned
