"""`fn.readers.webdataset` against DALI."""

from __future__ import annotations

import io
import tarfile

import pytest

from tests.parity.support import LIBRARIES, assert_both_raise, compare_outputs, run_graph
from tests.parity.words import check_words

FILES = {
    "a": {
        "x/0.jpg": b"jpg0", "x/0.cls": b"0", "x/1.cls": b"1", "x/1.jpg": b"jpg1",
        "x/2.jpg": b"jpg2", "x/3.seg.png": b"seg3", "x/3.jpg": b"j3", "x/3.cls": b"33",
    },
    "b": {
        "4.JPG": b"JPG4", "4.cls": b"4", ".hid.jpg": b"h", "d.e/5.jpg": b"de5", "d.e/5.cls": b"5",
        "6.cls": b"", "6.jpg": b"j6", "noext": b"zz", "d.e/": None, "7.x.cls": b"x7", "7.cls": b"7",
        "d.e/.h.cls": b"no",
    },
    "c": {f"{k}.cls": b"%02d" % k for k in range(7)},
}  # fmt: skip
INDICES = {
    "v12": "v1.2 2\njpg 512 4 x/0.jpg cls 1536 1 x/0.cls\ncls 2560 1 x/1.cls jpg 3584 4 x/1.jpg\n",
    "v11": "v1.1 2\njpg 512 4 cls 1536 1\ncls 2560 1 jpg 3584 4\n",
    "version": "v9.9 1\njpg 512 4\n",
    "count": "v1.1 5\njpg 512 4\n",
    "text": "hello\n",
    "place": "v1.1 1\njpg 513 4\n",
    "far": "v1.1 1\njpg 512000 4\n",
    "empty": "",
    "size": "v1.1 1\njpg 512\n",
    "zero": "v1.1 0\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("shards")
    for name, files in FILES.items():
        with tarfile.open(root / f"{name}.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
            for file, data in files.items():
                member = tarfile.TarInfo(file)
                member.size = len(data or b"")
                member.type = tarfile.DIRTYPE if data is None else tarfile.REGTYPE
                archive.addfile(member, io.BytesIO(data or b""))
    for name, text in INDICES.items():
        (root / f"{name}.idx").write_text(text)
    (root / "noise.tar").write_bytes(b"noise" * 500)
    return root


def graph(root, archives, ext, index=(), **arguments):
    def read(lib):
        if "dtypes" in arguments:
            arguments["dtypes"] = [lib.types.DALIDataType(int(t)) for t in arguments["dtypes"]]
        if index:
            arguments["index_paths"] = [str(root / f"{name}.idx") for name in index]
        paths = [str(root / f"{name}.tar") for name in archives]
        found = lib.fn.readers.webdataset(paths=paths, ext=ext, **arguments)
        outputs = found if isinstance(found, (list, tuple)) else [found]
        return *outputs, *(lib.fn.get_property(o, key="source_info") for o in outputs)

    return read


def assert_same(*args, sources=True, **arguments):
    both = [
        run_graph(library, graph(*args, **arguments), batch_size=3, iterations=5)
        for library in LIBRARIES
    ]
    if not sources:  # of what is missing DALI has none, and the first output names another
        first = len(both[0][0]) // 2
        both = [[o[:first] + o[first + 1 :] for o in iterations] for iterations in both]
    compare_outputs(*both)


@pytest.mark.filterwarnings("ignore:.*no sample of .* has a component:UserWarning")
def test_samples(root):
    assert_same(root, "a", "jpg")
    assert_same(root, "a", ["jpg", "cls"])
    assert_same(root, "a", ["jpg", "cls"], missing_component_behavior="skip")
    assert_same(root, "a", ["jpg", "cls"], missing_component_behavior="empty")
    assert_same(root, "c", ["cls"], missing_component_behavior="error")
    assert_same(root, "a", ["jpg", "seg.png", "png", "jpg"])
    assert_same(root, "a", ["jpg;png", "cls;seg.png", "jpg;cls"])
    assert_same(root, "ab", ["jpg", "cls"], sources=False)
    assert_same(root, "b", ["jpg", "cls"], case_sensitive_extensions=False, sources=False)
    assert_same(root, "b", ["x.CLS", "cls"], case_sensitive_extensions=False, sources=False)
    assert_same(root, "a", ["jpg", "cls"], index=["v12"])
    assert_same(root, "a", ["jpg", "cls"], index=["v11"])
    assert_same(root, "c", ["cls", "cls"], dtypes=[5, 4])  # int16 and int8


def test_orders(root):
    for arguments in (
        {"random_shuffle": True, "initial_fill": 3},
        {"random_shuffle": True, "seed": 5},
        {"num_shards": 2, "shard_id": 1},
        {"num_shards": 2, "stick_to_shard": True, "pad_last_batch": True},
    ):
        assert_same(root, "c", "cls", **arguments)


def test_long_names(tmp_path):
    for kind in (tarfile.PAX_FORMAT, tarfile.GNU_FORMAT):
        path = tmp_path / "long.tar"
        with tarfile.open(path, "w", format=kind) as archive:
            member = tarfile.TarInfo("long/" * 40 + "a.cls")
            member.size = 2
            archive.addfile(member, io.BytesIO(b"ok"))
        read = lambda lib: lib.fn.readers.webdataset(paths=str(path), ext="cls")  # noqa: B023, E731
        ((out,),) = run_graph("headrace", read, batch_size=1)
        assert bytes(out.samples[0]) == b"ok"


def test_errors(root):
    for name, words in (
        *((name, "Malformed index") for name in ("version", "count", "text", "place", "empty")),
        *((name, "Malformed index") for name in ("size", "zero")),
        ("far", "."),
        ("none", "cannot be opened"),
    ):
        assert_both_raise(graph(root, "a", "jpg", index=[name]), batch_size=1, match=words)
    for args, options, words in (
        (("a", ["jpg", "cls"]), {"missing_component_behavior": "error"}, "lacks the component"),
        (("a", ["jpg"]), {"dtypes": [12]}, "Unsupported output dtype"),
        (("a", "jpg"), {"missing_component_behavior": "other"}, "skip, error, empty"),
        (("ab", "jpg"), {"index": ["v12"]}, "index_paths"),
        (("a", ["jpg", "cls"]), {"dtypes": [0]}, "dtypes"),
        (("a", ["jpg"]), {"dtypes": [7]}, "whole number of elements"),
        ((["none"], "jpg"), {}, "cannot be read"),
        ((["noise"], "jpg"), {}, "cannot be read"),
    ):
        assert_both_raise(graph(root, *args, **options), batch_size=1, match=words)


def test_words_of_errors(root, tmp_path):
    index = {
        "no version signature found": "",
        "unsupported version of the index file (v0.1).": "v0.1",
        "no sample count found": "v1.1",
        "sample count must be positive": "v1.1 -1",
        "no extensions provided for the sample": "v1.1 1\n",
        "could not find all necessary component parameters": "v1.1 1\njpg",
        "tar offset is not a multiple of tar block size": "v1.1 1\njpg 1 0",
        "offset is outside of the archive file": "v1.1 1\njpg 5120000 1",
    }
    rows = []
    for number, (words, text) in enumerate(index.items()):
        path = tmp_path / f"{number}.idx"
        path.write_text(text)
        arguments = {"paths": str(root / "a.tar"), "ext": "jpg", "index_paths": str(path)}
        rows.append((reading(**arguments), words))
    for arguments, words in (
        ({"dtypes": [7]}, "component size and dtype incompatible"),
        ({"dtypes": [12]}, "unsupported output dtype"),
        ({"dtypes": [0, 0]}, "number of extensions does not match the number of provided types"),
        ({"index_paths": ["a", "b"]}, "the number of index files, if any, must match the number"),
        ({"missing_component_behavior": "x"}, "invalid value for missing_component_behavior"),
        ({"ext": "none", "missing_component_behavior": "error"}, "underful sample detected at"),
    ):
        given = {"paths": str(root / "a.tar"), "ext": "jpg", **arguments}
        rows.append((reading(**given), words))
    check_words(rows)


def test_no_components_are_no_outputs(root):
    for lib in LIBRARIES.values():
        with lib.pipeline.Pipeline(batch_size=1, num_threads=1, device_id=None):
            assert lib.fn.readers.webdataset(paths=str(root / "a.tar"), ext=[]) == []


def reading(dtypes=None, **arguments):
    def scenario(lib):
        if dtypes is not None:
            arguments["dtypes"] = [lib.types.DALIDataType(each) for each in dtypes]
        return lib.pipe(lambda: lib.fn.readers.webdataset(**arguments), 1).run()

    return scenario
