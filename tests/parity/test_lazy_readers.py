"""Readers with `lazy_init` beside DALI: what is told by `build()`, and what at the first use."""

from __future__ import annotations

import numpy as np
import nvidia.dali.tfrecord
import pytest

import headrace.tfrecord
from headrace.errors import HeadraceError
from tests.parity.support import LIBRARIES, run_graph
from tests.support import record_io

_TFRECORD = {"dali": nvidia.dali.tfrecord, "headrace": headrace.tfrecord}


def readers(root):
    """By name: the reader, and arguments that name what is not there."""
    none = str(root / "none")
    return {
        "caffe": {"path": none},
        "caffe2": {"path": none},
        "coco": {"file_root": none, "annotations_file": f"{none}.json"},
        "file": {"file_root": none},
        "mxnet": {"path": none, "index_path": none},
        "nemo_asr": {"manifest_filepaths": [none]},
        "numpy": {"file_root": none},
        "tfrecord": {"path": none, "index_path": none},
        "webdataset": {"paths": none, "ext": ["jpg"]},
        "fits": {"file_root": none},
    }


def pipeline(library, name, args):
    lib = LIBRARIES[library]
    pipe = lib.pipeline.Pipeline(2, 2, None)
    args = dict(args)
    if name == "tfrecord":
        t = _TFRECORD[library]
        args["features"] = {"x": t.FixedLenFeature([1], t.int64, 0)}
    with pipe:
        module = lib.fn.experimental.readers if name == "fits" else lib.fn.readers
        found = getattr(module, name)(**args, name="reader")
        several = found.values() if isinstance(found, dict) else found
        pipe.set_outputs(*(several if isinstance(found, (dict, list, tuple)) else (found,)))
    return pipe


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_files(library, tmp_path):
    for name, args in readers(tmp_path).items():
        with pytest.raises(Exception) as told:
            pipeline(library, name, args).build()
        for use in (lambda p: p.reader_meta("reader"), lambda p: p.run(), lambda p: p.epoch_size()):
            lazy = pipeline(library, name, args | {"lazy_init": True})
            lazy.build()
            lazy.build()
            with pytest.raises(Exception) as later:
                use(lazy)
            if library == "headrace":
                assert type(later.value) is type(told.value)
                assert isinstance(later.value, HeadraceError)
                assert "none" in str(later.value)


@pytest.mark.parametrize("library", LIBRARIES)
def test_arguments_are_checked_at_once(library, tmp_path):
    for name, args in readers(tmp_path).items():
        for wrong in ({"shard_id": 2, "num_shards": 2}, {"num_shards": 0}):
            with pytest.raises(Exception) as told:
                pipeline(library, name, args | wrong | {"lazy_init": True}).build()
            if library == "headrace":
                assert isinstance(told.value, HeadraceError)
                assert "`num_shards`" in str(told.value)


def test_files_that_come_later(tmp_path):
    root = tmp_path / "none"
    found = {}
    for library in LIBRARIES:
        pipe = pipeline(library, "file", {"file_root": str(root), "lazy_init": True})
        pipe.build()
        (root / "a").mkdir(parents=True, exist_ok=True)
        (root / "a" / "0.jpg").write_bytes(b"0")
        (root / "a" / "1.jpg").write_bytes(b"11")
        assert pipe.reader_meta("reader")["epoch_size"] == 2
        found[library] = [bytes(np.array(pipe.run()[0].at(k))) for k in range(2)]
        (root / "a" / "0.jpg").unlink()
        (root / "a" / "1.jpg").unlink()
        (root / "a").rmdir()
        root.rmdir()
    assert found["dali"] == found["headrace"] == [b"0", b"11"]


@pytest.mark.parametrize("library", LIBRARIES)
def test_missing_containers_are_told_by_build(library, tmp_path):
    """Where the index is there, but not the first file of records."""
    (tmp_path / "a.idx").write_text("0 40\n")
    for name in ("mxnet", "tfrecord"):
        args = {"path": str(tmp_path / "none"), "index_path": str(tmp_path / "a.idx")}
        with pytest.raises(Exception) as told:
            pipeline(library, name, args).build()
        lazy = pipeline(library, name, args | {"lazy_init": True})
        lazy.build()
        with pytest.raises(Exception):  # noqa: B017
            lazy.run()
        if library == "headrace":
            assert isinstance(told.value, HeadraceError)
            assert f"{tmp_path / 'none'}' does not exist" in str(told.value)


@pytest.mark.parametrize("library", LIBRARIES)
def test_broken_records_are_told_by_run(library, tmp_path):
    """Where every file or record is broken, `build()` is none the wiser."""
    (tmp_path / "a.npy").write_bytes(b"x" * 99)
    record_io.write(tmp_path / "a.rec", [b"x" * 40])
    for name, args in {
        "numpy": {"files": [str(tmp_path / "a.npy")]},
        "mxnet": {"path": str(tmp_path / "a.rec"), "index_path": str(tmp_path / "a.idx")},
    }.items():
        pipe = pipeline(library, name, args)
        pipe.build()
        with pytest.raises(Exception) as told:
            pipe.run()
        if library == "headrace":
            assert isinstance(told.value, HeadraceError)
            assert str(tmp_path / "a.") in str(told.value)


def test_both_ways_of_shuffling(tmp_path):
    """Readers of records shuffle by `random_shuffle` alone, as DALI does, and Headrace says so."""
    images = [record_io.image(k, b"x") for k in range(9)]
    record_io.write(tmp_path / "a.rec", [record_io.record(image) for image in images])
    how = {"random_shuffle": True, "initial_fill": 3, "shuffle_after_epoch": True, "seed": 5}

    def graph(lib):
        paths = {"path": str(tmp_path / "a.rec"), "index_path": str(tmp_path / "a.idx")}
        return lib.fn.readers.mxnet(**paths, **how)[1]

    want = run_graph("dali", graph, batch_size=9, iterations=3)
    with pytest.warns(UserWarning, match="`shuffle_after_epoch` has no effect"):
        got = run_graph("headrace", graph, batch_size=9, iterations=3)
    for (a,), (b,) in zip(want, got, strict=True):
        np.testing.assert_array_equal(a.samples, b.samples)
