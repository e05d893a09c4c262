"""`fn.readers.numpy`, `fn.decoders.numpy` and `fn.io.file.read` against DALI."""

from __future__ import annotations

import io
import os

import numpy as np
import pytest

from tests.parity.support import LIBRARIES, assert_both_raise, assert_parity, run_graph
from tests.parity.words import check_words, of, on

_rng = np.random.default_rng(0)
DTYPES = ("u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "?")


def npy(array, version=(1, 0)):
    file = io.BytesIO()
    np.lib.format.write_array(file, np.asarray(array, order="K"), version)
    return np.frombuffer(file.getvalue(), np.uint8).copy()


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    root = tmp_path_factory.mktemp("arrays")
    for folder in ("b/deep", "a"):
        (root / folder).mkdir(parents=True)
    for k, name in enumerate(
        ("0.npy", "1.npy", "10.npy", "b/2.npy", "a/3.npy", "b/deep/4.npy", ".h.npy", "x.NPY")
    ):
        values = _rng.normal(0, 100, (6 + k, 5)).astype(np.float32)
        (root / name).write_bytes(npy(values).tobytes())
    (root / "other.txt").write_text("no array")
    return str(root)


def read(library, batch_size=3, batches=4, **arguments):
    """Outputs, with the sources of their samples, and what the reader tells of itself."""
    lib = LIBRARIES[library]
    pipe = lib.pipeline.Pipeline(batch_size=batch_size, num_threads=2, device_id=None, seed=42)
    with pipe:
        pipe.set_outputs(lib.fn.readers.numpy(name="reader", **arguments))
    pipe.build()
    found = []
    for _ in range(batches):
        (out,) = pipe.run()
        found += [(out[k].source_info(), np.array(out[k]), out.layout()) for k in range(len(out))]
    return found, {k: int(v) for k, v in pipe.reader_meta("reader").items()}


def assert_same(**arguments):
    (want, meta), (got, own) = (read(library, **arguments) for library in ("dali", "headrace"))
    assert meta == own
    for (source, values, layout), (its_source, wanted, its_layout) in zip(got, want, strict=True):
        assert (source, layout, values.dtype) == (its_source, its_layout, wanted.dtype)
        np.testing.assert_array_equal(values, wanted)


def test_files(root, tmp_path):
    assert_same(file_root=root)
    assert_same(file_root=root + "/", file_filter="?.npy")
    assert_same(file_root=root, file_filter="*.NPY")
    names = ["1.npy", "b/2.npy"]
    assert_same(file_root=root, files=names)
    assert_same(files=[os.path.join(root, name) for name in names])
    listed = tmp_path / "list.txt"
    listed.write_text("1.npy\n\nb/2.npy\n")
    assert_same(file_root=root, file_list=str(listed))
    beside = os.path.join(root, "list.txt")
    with open(beside, "w") as file:
        file.write("1.npy\na/3.npy")
    assert_same(file_list=beside)


@pytest.mark.parametrize(
    "arguments",
    [
        {"random_shuffle": True, "seed": 3},
        {"random_shuffle": True, "initial_fill": 2},
        {"shuffle_after_epoch": True},
        {"num_shards": 2, "shard_id": 1, "pad_last_batch": True},
        {"num_shards": 3, "stick_to_shard": True, "batches": 7},
        {"cache_header_information": True, "dont_use_mmap": True, "use_o_direct": True},
    ],
)
def test_orders(root, arguments):
    assert_same(file_root=root, **arguments)


@pytest.mark.parametrize(
    "arguments",
    [
        {"roi_start": [1, 2], "roi_end": [4, 3]},
        {"roi_start": [1, 2], "roi_shape": [4, 3]},
        {"roi_start": [1], "roi_shape": [2]},
        {"roi_start": [1], "roi_shape": [2], "roi_axes": [-1]},
        {"roi_start": [1, 3], "roi_axes": [1, 0]},
        {"roi_end": [2, 1]},
        {"roi_axes": [0]},
        {"roi_start": [], "roi_end": [], "roi_axes": []},
        {"rel_roi_start": [0.3, 0.4], "rel_roi_shape": [0.5, 0.5]},
        {"rel_roi_start": [0.25, 0.1], "rel_roi_end": [0.75, 0.9]},
        {"roi_start": [1, 1], "rel_roi_shape": [0.5, 0.3]},
        {"roi_start": [1, 1], "rel_roi_end": [0.5, 0.7]},
        {
            "roi_start": [-1, 1],
            "roi_shape": [20, 9],
            "out_of_bounds_policy": "pad",
            "fill_value": 7.6,
        },
        {"roi_start": [1, 1], "roi_shape": [5, 5], "out_of_bounds_policy": "trim_to_shape"},
        {"roi_start": [30, 1], "roi_shape": [5, 5], "out_of_bounds_policy": "trim_to_shape"},
    ],
)
def test_regions(root, arguments):
    assert_same(file_root=root, **arguments)


def test_a_region_of_each_sample(root):
    corners = [np.int32(at) for at in ([0, 1], [2, 2], [1, 0])]
    shares = [np.float32(at) for at in ([0.5, 0.4], [0.3, 0.3], [0.2, 0.6])]

    def graph(lib, corner, share):
        read = lib.fn.readers.numpy
        return read(file_root=root, roi_start=corner, roi_shape=[3, 2]), read(
            file_root=root, roi_start=corner, rel_roi_shape=share
        )

    assert_parity(graph, corners, shares, iterations=3)


def test_element_types(tmp_path):
    fortran = np.asfortranarray(np.arange(24).reshape(2, 3, 4))
    arrays = [np.float32(3), np.zeros((0, 3), np.int16), fortran.astype("f4", order="F")]
    arrays += [(_rng.uniform(0, 1, (3, 4)) * 100).astype(dtype) for dtype in DTYPES]
    for k, array in enumerate(arrays):
        np.save(tmp_path / f"{k}.npy", array)
        assert_same(files=[str(tmp_path / f"{k}.npy")], batch_size=1, batches=2)
    fill = {"out_of_bounds_policy": "pad", "roi_start": [-1, 2], "roi_shape": [2, 9]}
    for k in range(3, len(arrays)):
        for value in (300.7, -7.5):
            if arrays[k].dtype.kind == "b":
                continue
            path = str(tmp_path / f"{k}.npy")
            assert_same(files=[path], fill_value=value, batch_size=1, batches=1, **fill)
    path = str(tmp_path / "2.npy")
    assert_same(files=[path], roi_start=[1, 0, 1], roi_shape=[1, 2, 2], batch_size=1, batches=1)


def test_errors_of_the_reader(root, tmp_path):
    good = npy(np.ones((2, 3), np.float32))
    bad = {
        "text": b"garbage" * 20,
        "short": good[:-5].tobytes(),
        "header": good[:50].tobytes(),
        "empty": b"",
        "fields": npy(np.ones(3, "i2,f4")).tobytes(),
        "str": npy(np.array(["a", "bc"])).tobytes(),
        "complex": npy(np.ones(3, "c8")).tobytes(),
        "missing": None,
    }
    for name, data in bad.items():
        if data is not None:
            (tmp_path / name).write_bytes(data)
        assert_both_raise(
            lambda lib: lib.fn.readers.numpy(files=[str(tmp_path / name)]),  # noqa: B023
            batch_size=1,
        )
    for name, array in (("f4", np.ones((2, 3), "f4")), ("u1", np.ones((2, 3), "u1"))):
        np.save(tmp_path / f"{name}.npy", array)
    np.save(tmp_path / "1d.npy", np.ones(3, "f4"))
    for other, words in (("u1", "element type"), ("1d", "number of dimensions")):
        files = [str(tmp_path / f"{name}.npy") for name in ("f4", other)]
        assert_both_raise(
            lambda lib: lib.fn.readers.numpy(files=files),  # noqa: B023
            batch_size=2,
            match=words,
        )
    for arguments, words in (
        ({}, "file_root"),
        ({"files": []}, "files"),
        ({"files": ["a"], "file_list": "b"}, "file_list"),
        ({"file_root": root + "/none"}, "file_root"),
        ({"file_root": root, "file_filter": "*.zip"}, "No files found"),
        ({"file_root": root, "roi_start": [1, 1], "roi_shape": [50, 5]}, "out of bounds"),
        ({"file_root": root, "roi_start": [1, 1], "rel_roi_start": [0, 0]}, "exclusive"),
        ({"file_root": root, "roi_end": [1, 1], "roi_shape": [1, 1]}, "exclusive"),
        ({"file_root": root, "roi_end": [1, 1, 1]}, "one value for each"),
        ({"file_root": root, "roi_end": [1], "roi_axes": [2]}, "xis"),
        ({"file_root": root, "roi_end": [1, 1], "roi_axes": [0, 0]}, "axes"),
        ({"file_root": root, "roi_shape": [-1, 1]}, "negative"),
        ({"file_root": root, "roi_shape": [1, 1], "out_of_bounds_policy": "no"}, "policy"),
    ):
        assert_both_raise(
            lambda lib: lib.fn.readers.numpy(**arguments),  # noqa: B023
            match=words,
        )


def test_decoder():
    values = _rng.normal(0, 100, (4, 5))
    for dtype in DTYPES:
        encoded = [
            npy(values.astype(dtype)),
            npy(values[:2].astype(dtype)),
            npy(values.astype(dtype)[:0]),
        ]
        assert_parity(lambda lib, x: lib.fn.decoders.numpy(x), encoded)
    encoded = [npy(values.astype(dtype)) for dtype in ("f4", "u1", "i8", "?")]
    for wanted in ("UINT8", "INT16", "FLOAT", "BOOL", "FLOAT16", "INT64"):
        assert_parity(
            lambda lib, x: lib.fn.decoders.numpy(x, dtype=getattr(lib.types, wanted)),  # noqa: B023
            encoded,
            max_levels=0,
        )
    assert_parity(
        lambda lib, x: lib.fn.copy(lib.fn.decoders.numpy(x)), [npy(np.float32(3)).view(np.int8)] * 2
    )
    # Axes in the order of Fortran need a GPU there.
    fortran = npy(np.asfortranarray(values))
    ((out,),) = run_graph("headrace", lambda lib, x: lib.fn.decoders.numpy(x), [fortran])
    np.testing.assert_array_equal(out.samples[0], values)


def test_errors_of_the_decoder():
    good = npy(np.ones((2, 3), np.float32))
    decode = lambda lib, x: lib.fn.decoders.numpy(x)  # noqa: E731
    for bad, words in (
        (good[:-3], "Expected data numpy size 24 bytes"),
        (np.append(good, good[:3]), "Expected data numpy size 24 bytes"),
        (good[:50], "cut"),
        (np.zeros(0, np.uint8), "no file of NumPy"),
        (npy(np.ones(3, "i2,f4")), "of several fields"),
        (npy(np.array(["a"])), "elements of type"),
    ):
        assert_both_raise(decode, [bad], match=words)
    assert_both_raise(decode, [good, npy(np.ones((2, 3)))], match="same data type")
    assert_both_raise(decode, [good, npy(np.ones(2, "f4"))], match="number of dimensions")


def test_words_of_errors(tmp_path):
    arrays = {"f4": np.ones((2, 3), "f4"), "i4": np.ones((2, 3), "i4"), "1d": np.ones(3, "f4")}
    for name, array in (*arrays.items(), ("c8", np.ones(3, "c8")), ("f16", np.ones(3, "g"))):
        np.save(tmp_path / f"{name}.npy", array)

    def read(*names, batch_size=2, **arguments):
        files = [str(tmp_path / f"{name}.npy") for name in names]
        return of(lambda lib: lib.fn.readers.numpy(files=files, **arguments), batch_size=batch_size)

    decode = lambda lib, x: lib.fn.decoders.numpy(x)  # noqa: E731
    encoded = {name: npy(array) for name, array in arrays.items()}
    check_words(
        [
            (read("c8"), "unknown numpy type string"),
            (read("f16"), "unknown numpy type string"),
            (read("f4", "i4"), "inconsistent data"),
            (read("f4", "1d"), "inconsistent data"),
            (
                read("f4", num_shards=2),
                "number of input samples: 1, needs to be at least equal",
            ),
            (read("f4", num_shards=2), "to the requested number of shards: 2"),
            (on([encoded["f4"], encoded["i4"]], decode), "must have the same data type"),
            (on([encoded["f4"], encoded["1d"]], decode), "must have the same number of dimensions"),
            (on([np.arange(99, dtype=np.uint8)], decode), "got bad magic string for numpy header"),
            (on([encoded["f4"][:-3]], decode), "expected data numpy size"),
            (on([np.append(encoded["f4"], encoded["f4"])], decode), "expected data numpy size"),
        ]
    )


def test_files_that_data_names(tmp_path):
    (tmp_path / "full").write_bytes(b"hello")
    (tmp_path / "empty").write_bytes(b"")

    def name(text, dtype=np.uint8):
        return np.frombuffer(os.fsencode(text), np.uint8).astype(dtype)

    full, empty = (name(tmp_path / each) for each in ("full", "empty"))
    graph = lambda lib, x: lib.fn.io.file.read(x)  # noqa: E731
    named = [
        name(f"{tmp_path}/full\0"),
        name(f"{tmp_path}/full\0/x"),
        name(f"file://{tmp_path}/full"),
    ]
    assert_parity(graph, [full, *named])
    assert_parity(graph, [full.astype(np.int8)])
    assert_parity(lambda lib, x: lib.fn.io.file.read(x, dont_use_mmap=True), [full, empty])
    for wrong in (empty, name(tmp_path / "none"), name(tmp_path), name("")):
        assert_both_raise(graph, [wrong])
    assert_both_raise(graph, [full.astype(np.int32)])
