"""Readers of dynamic mode against DALI's: order, epochs, shards, metadata, states, errors."""

from __future__ import annotations

import inspect

import numpy as np
import nvidia.dali.experimental.dynamic as dali
import pytest

import headrace.experimental.dynamic as ndd
from tests.support.own import ARGUMENTS

LIBRARIES = [dali, ndd]
COUNT = 11

ORDERS = [
    {},
    {"pad_last_batch": True},
    {"num_shards": 3, "shard_id": 1},
    {"num_shards": 3, "shard_id": 2, "stick_to_shard": True},
    {"num_shards": 3, "shard_id": 0, "pad_last_batch": True},
    {"num_shards": 3, "shard_id": 2, "pad_last_batch": True, "stick_to_shard": True},
    {"random_shuffle": True},
    {"random_shuffle": True, "seed": 5, "initial_fill": 3},
    {"random_shuffle": True, "seed": 77, "num_shards": 2, "shard_id": 1},
    {"random_shuffle": True, "seed": 77, "num_shards": 2, "pad_last_batch": True},
    {"shuffle_after_epoch": True},
    {"shuffle_after_epoch": True, "enable_checkpointing": True},
    {"shuffle_after_epoch": True, "shuffle_after_epoch_seed": 9},
]


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    path = tmp_path_factory.mktemp("files")
    for k in range(COUNT):
        folder = path / f"class{k // 4}"
        folder.mkdir(exist_ok=True)
        (folder / f"{k:02d}.jpg").write_bytes(bytes([k]) * (k + 1))
    return str(path)


def first(batch):
    return [int(np.asarray(sample)[0]) for sample in batch]


def both(run):
    theirs, ours = (run(lib) for lib in LIBRARIES)
    assert ours == theirs
    return ours


@pytest.mark.sweep
@pytest.mark.parametrize("size", [1, 4, 20])
@pytest.mark.parametrize("arguments", ORDERS, ids=str)
def test_epochs_in_batches(root, arguments, size):
    def run(lib):
        reader = lib.readers.File(file_root=root, **arguments)
        return [
            [(first(data), first(labels)) for data, labels in reader.next_epoch(batch_size=size)]
            for _ in range(5)
        ]

    both(run)


@pytest.mark.parametrize("arguments", ORDERS, ids=str)
def test_epochs_in_samples(root, arguments):
    def run(lib):
        reader = lib.readers.File(file_root=root, **arguments)
        return [
            [(int(np.asarray(data)[0]), data.shape) for data, _ in reader.next_epoch()]
            for _ in range(5)
        ]

    both(run)


@pytest.mark.sweep
@pytest.mark.parametrize("arguments", ORDERS[:6], ids=str)
@pytest.mark.parametrize("taken", [1, 3])
def test_epochs_left_early(root, arguments, taken):
    def run(lib):
        reader = lib.readers.File(file_root=root, **arguments)
        epoch = reader.next_epoch(batch_size=2)
        seen = [first(next(epoch)[0]) for _ in range(min(taken, 2))]
        for _ in range(3):
            seen += [first(data) for data, _ in reader.next_epoch(batch_size=2)]
        seen += [first(data) for data, _ in epoch]
        seen += [first(data) for data, _ in reader.next_epoch(batch_size=2)]
        return seen

    both(run)


@pytest.mark.parametrize("arguments", ORDERS[:6], ids=str)
def test_metadata(root, arguments):
    both(lambda lib: dict(lib.readers.File(file_root=root, **arguments).get_metadata()))


@pytest.mark.parametrize("arguments", ORDERS[:10], ids=str)
def test_states(root, arguments):
    def run(lib):
        reader = lib.readers.File(file_root=root, enable_checkpointing=True, **arguments)
        epoch = reader.next_epoch(batch_size=2)
        next(epoch)
        state = str(reader.get_state())
        other = lib.readers.File(file_root=root, **arguments)
        other.set_state(state)
        return [
            [first(data) for data, _ in r.next_epoch(batch_size=2)]
            for r in (reader, other)
            for _ in range(2)
        ]

    reader_1, reader_2, other_1, other_2 = both(run)
    assert (reader_1, reader_2) == (other_1, other_2)


def test_signatures():
    theirs = inspect.signature(dali.readers.File).parameters
    ours = inspect.signature(ndd.readers.File).parameters
    more = ARGUMENTS
    assert [n for n in theirs if not n.startswith("_")] == [n for n in ours if n not in more]
    for name, parameter in theirs.items():
        if not name.startswith("_"):
            assert ours[name].kind is parameter.kind


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"shard_id": 3}, ValueError),
        ({"num_shards": 0}, ValueError),
        ({"bogus": 0}, TypeError),
        ({"device": "mixed"}, ValueError),
        ({"num_shards": 99}, RuntimeError),
        ({"file_root": "/nope"}, RuntimeError),
        ({"file_root": None}, RuntimeError),
        ({"file_root": None, "files": ["/nope"]}, RuntimeError),
        ({"file_root": None, "files": []}, RuntimeError),
        ({"file_root": None, "files": ["a"], "labels": [1, 2]}, RuntimeError),
    ],
    ids=str,
)
def test_errors(root, arguments, error):
    def read(lib):
        reader = lib.readers.File(**({"file_root": root} | arguments))
        return next(reader.next_epoch(batch_size=2))[0].evaluate()

    for lib in LIBRARIES:
        with pytest.raises(error):
            read(lib)


def test_errors_of_use(root):
    for lib in LIBRARIES:
        reader = lib.readers.File(file_root=root, max_batch_size=4)
        with pytest.raises(ValueError):
            next(reader.next_epoch(batch_size=5))
        next(reader.next_epoch(batch_size=3))
        with pytest.raises(ValueError):
            next(reader.next_epoch(batch_size=2))
        with pytest.raises(RuntimeError):
            reader()
        with pytest.raises(RuntimeError):
            reader.get_state()
        with pytest.raises(RuntimeError):
            reader.set_state("")
        with pytest.raises(TypeError):
            lib.readers.File(file_root=root).set_state(5)


def test_sizes_that_differ_from_metadata_work_where_they_agree(root):
    """DALI refuses the very size that the metadata were asked for."""
    reader = ndd.readers.File(file_root=root)
    reader.get_metadata(4)
    assert first(next(reader.next_epoch(batch_size=4))[0]) == [0, 1, 2, 3]
    theirs = dali.readers.File(file_root=root)
    theirs.get_metadata(4)
    with pytest.raises(ValueError):
        next(theirs.next_epoch(batch_size=4))


def test_shuffled_shards_keep_their_length(root):
    """DALI reads as many samples as the next shard has."""
    ours, theirs = (
        lib.readers.File(file_root=root, num_shards=3, shard_id=0, shuffle_after_epoch=True)
        for lib in (ndd, dali)
    )
    assert [len(list(ours.next_epoch())) for _ in range(3)] == [3, 3, 3]
    assert [len(list(theirs.next_epoch())) for _ in range(3)] == [3, 4, 4]


def test_nemo_asr(tmp_path):
    import json

    import soundfile

    lines = []
    for k in range(7):
        samples = np.random.default_rng(k).integers(-9000, 9000, 500 + 50 * k).astype(np.int16)
        soundfile.write(tmp_path / f"{k}.wav", samples, 8000)
        lines.append({"audio_filepath": str(tmp_path / f"{k}.wav"), "text": "a" * (k + 1)})
    manifest = tmp_path / "manifest.json"
    manifest.write_text("".join(json.dumps(line) + "\n" for line in lines))

    def run(lib, dtype, **arguments):
        reader = lib.readers.NemoAsr(
            manifest_filepaths=[str(manifest)],
            dtype=getattr(lib, dtype),
            random_shuffle=True,
            seed=3,
            **arguments,
        )
        return [
            [np.asarray(s) for output in step for s in output]
            for _ in range(2)
            for step in reader.next_epoch(batch_size=3)
        ]

    for arguments in ({"dtype": "int16"}, {"dtype": "float32", "read_idxs": True}):
        theirs, ours = (run(lib, **arguments) for lib in LIBRARIES)
        assert len(ours) == len(theirs)
        for expected, found in zip(theirs, ours, strict=True):
            assert len(found) == len(expected)
            for a, b in zip(expected, found, strict=True):
                assert (a.dtype, a.shape) == (b.dtype, b.shape)
                np.testing.assert_allclose(b, a, atol=1e-6)
