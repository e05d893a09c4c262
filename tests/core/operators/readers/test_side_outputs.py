"""Paths, keys and numbers of samples as outputs of every reader."""

from __future__ import annotations

import io
import tarfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, errors, fn, pipeline_def, samplers, tfrecord, types
from tests.support import caffe_records, tf_records
from tests.support.messages import MESSAGES

COUNT = 24
NAMES = ["index", "key", "path"]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    """Samples whose content is their number."""
    root = tmp_path_factory.mktemp("samples")
    (root / "files").mkdir()
    (root / "arrays").mkdir()
    records = []
    for k in range(COUNT):
        (root / "files" / f"{k:02}-ä.bin").write_bytes(bytes([k]))
        np.save(root / "arrays" / f"{k:02}.npy", np.array([k], np.uint8))
        message = MESSAGES["Example"]()
        message.features.feature["data"].bytes_list.value.append(bytes([k]))
        records.append(tf_records.frame(message.SerializeToString()))
    for part in range(2):
        with tarfile.open(root / f"{part}.tar", "w") as tar:
            for k in range(part * COUNT // 2, (part + 1) * COUNT // 2):
                for ending in ("bin", "txt"):
                    member = tarfile.TarInfo(f"part.1/{k:02}.{ending}")
                    member.size = 1
                    tar.addfile(member, io.BytesIO(bytes([k])))
    tf_records.write(root / "some.rec", records)
    caffe_records.write(root / "lmdb", [caffe_records.datum(bytes([k]), k) for k in range(COUNT)])
    values = pa.array([bytes([k]) for k in range(COUNT)])
    pq.write_table(pa.table({"data": values}), root / "some.parquet", row_group_size=5)
    return root


FEATURES = {"data": tfrecord.FixedLenFeature((), tfrecord.string, "")}
READERS = {
    "file": lambda r: (
        {
            "file_root": str(r / "files"),
            "files": sorted(path.name for path in (r / "files").iterdir()),
        },
        lambda k: f"{k:02}-ä.bin",
        lambda k: r / "files" / f"{k:02}-ä.bin",
    ),
    "numpy": lambda r: (
        {"file_root": str(r / "arrays")},
        lambda k: f"{k:02}.npy",
        lambda k: r / "arrays" / f"{k:02}.npy",
    ),
    "webdataset": lambda r: (
        {"paths": [str(r / "0.tar"), str(r / "1.tar")], "ext": ["bin"]},
        lambda k: f"part.1/{k:02}",
        lambda k: r / f"{k * 2 // COUNT}.tar",
    ),
    "caffe": lambda r: (
        {"path": str(r / "lmdb"), "label_available": False},
        lambda k: f"{k:05}",
        lambda k: r / "lmdb" / "data.mdb",
    ),
    "tfrecord": lambda r: (
        {"path": str(r / "some.rec"), "index_path": str(r / "some.idx"), "features": FEATURES},
        None,
        lambda k: r / "some.rec",
    ),
    "parquet": lambda r: (
        {"paths": str(r / "some.parquet"), "columns": ["data"]},
        None,
        lambda k: r / "some.parquet",
    ),
}


def settings_of(root, name):
    args, key, path = READERS[name](root)
    known = {"index": lambda k: k, "key": key, "path": path and (lambda k: str(path(k)))}
    side = [each for each in NAMES if known[each] is not None]
    return {**args, "side_data": side, "random_shuffle": True, "seed": 5}, side, known


def checked(outputs, side, known):
    """The numbers of samples, whose side data is right."""
    outputs = list(outputs.values()) if isinstance(outputs, dict) else list(outputs)
    numbers = [int(np.asarray(value).reshape(-1)[0]) for value in outputs[0]]
    for each, batch in zip(side, outputs[-len(side) :], strict=True):
        assert batch.tolist() == [known[each](k) for k in numbers], each
    return numbers


@pytest.mark.sweep
@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_every_reader(root, name, workers):
    args, side, known = settings_of(root, name)

    def made(**more):
        pipe = Pipeline(5, 2, None, workers=workers, enable_checkpointing=True, **more)
        with pipe:
            found = getattr(fn.readers, name)(**args, name="r")
            assert list(found)[-len(side) :] == side if isinstance(found, dict) else True
            pipe.set_outputs(*(found.values() if isinstance(found, dict) else found))
        return pipe

    pipe = made()
    begun = [checked(pipe.run(), side, known) for _ in range(3)]
    again = made(checkpoint=pipe.checkpoint())
    rest = [checked(again.run(), side, known) for _ in range(4)]
    assert [checked(pipe.run(), side, known) for _ in range(4)] == rest
    assert len({k for batch in begun + rest for k in batch}) == COUNT


@pytest.mark.parametrize("name", READERS)
@settings(max_examples=4)
@given(data=st.data())
def test_other_shards_go_on_with_an_epoch(root, name, data):
    """Whatever their number, threads and the point at which they stopped: each sample once."""
    args, side, known = settings_of(root, name)
    args = args | {"random_shuffle": False, "sampler": samplers.Shuffled(seed=3)}
    before, after = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    steps = data.draw(st.integers(0, COUNT // before - 1))

    def pipes(count, **more):
        for k in range(count):
            pipe = Pipeline(
                1, data.draw(st.integers(1, 3)), None, enable_checkpointing=True, **more
            )
            with pipe:
                shard = {"num_shards": count, "shard_id": k, "stick_to_shard": True}
                found = getattr(fn.readers, name)(**args, **shard)
                pipe.set_outputs(*(found.values() if isinstance(found, dict) else found))
            yield pipe

    olds = list(pipes(before))
    taken = [n for old in olds for _ in range(steps) for n in checked(old.run(), side, known)]
    left = COUNT - len(taken)
    checkpoint = data.draw(st.sampled_from(olds)).checkpoint()
    for k, new in enumerate(pipes(after, checkpoint=checkpoint)):
        for _ in range((k + 1) * left // after - k * left // after):
            taken += checked(new.run(), side, known)
    assert sorted(taken) == list(range(COUNT))


@pytest.mark.parametrize("name", READERS)
def test_in_dynamic_mode(root, name):
    args, side, known = settings_of(root, name)
    reader = getattr(ndd.readers, {"tfrecord": "TFRecord"}.get(name, name.title()))(**args)
    seen = []
    for outputs in reader.next_epoch(batch_size=6):
        values = list(outputs.values()) if isinstance(outputs, dict) else list(outputs)
        for sample in zip(*[batch.tensors for batch in values], strict=True):
            number = int(np.asarray(sample[0]).reshape(-1)[0])
            found = [value.item() for value in sample[-len(side) :]]
            assert found == [known[each](number) for each in side]
            seen.append(number)
    assert sorted(seen) == list(range(COUNT))


def test_branches_bad_samples_and_caches(root):
    args, side, known = settings_of(root, "webdataset")
    args["ext"] = ["bin", "txt"]

    @pipeline_def(
        batch_size=6, num_threads=2, device_id=None, enable_conditionals=True, on_bad_sample="skip"
    )
    def define():
        data, text, index, key, path = fn.readers.webdataset(**args, name="r")
        number = fn.reinterpret(text, dtype=types.UINT8)
        checked_number = fn.python_function(number, function=fails_at_7)
        if index % 2 == 0:
            chosen = key
        else:
            chosen = path
        return data, checked_number, index, key, path, chosen

    def fails_at_7(number):
        if number[0] == 7:
            raise ValueError("seven")
        return number

    pipe = define()
    seen = set()
    for _ in range(8):
        data, _, index, key, path, chosen = pipe.run()
        numbers = checked((data, index, key, path), side, known)
        seen.update(numbers)
        assert chosen.tolist() == [known["path" if k % 2 else "key"](k) for k in numbers]
    assert seen == set(range(COUNT)) - {7}
    assert {bad.reason for bad in pipe.bad_samples}


def test_mixed_and_cached(root, tmp_path):
    webdataset, side, known = settings_of(root, "webdataset")
    files, _, known_of_files = settings_of(root, "numpy")
    pipe = Pipeline(6, 2, None)
    with pipe:
        mixed = fn.readers.mix(
            [fn.readers.webdataset(**webdataset), fn.readers.webdataset(**webdataset)]
        )
        cached = fn.readers.numpy(**files)
        pipe.set_outputs(*mixed, fn.cache(cached[0], where="ram"), *cached[1:])
    for _ in range(10):
        outputs = pipe.run()
        checked(outputs[:4], side, known)
        checked(outputs[5:], side, known_of_files)


def test_what_there_is_not(root):
    for name, side, words in (
        ("tfrecord", ["key"], "have no key. Take 'path' or 'index'"),
        ("parquet", ["key"], "have no key. Take 'path' or 'index'"),
        ("numpy", ["name"], "`side_data` has 'name'; known are 'path', 'key', 'index'"),
    ):
        args, _, _ = settings_of(root, name)
        pipe = Pipeline(2, 1, None)
        with pipe:
            found = getattr(fn.readers, name)(**(args | {"side_data": side}))
            pipe.set_outputs(*(found.values() if isinstance(found, dict) else found))
        with pytest.raises(errors.ArgumentValueError, match=words):
            pipe.build()
    table = pa.table({"data": [1, 2]})
    reader = ndd.readers.Arrow(source=table, columns=["data"], side_data=["path"])
    with pytest.raises(errors.ArgumentValueError, match=r"have no path\. Take 'index'"):
        next(iter(reader.next_epoch(batch_size=2)))
