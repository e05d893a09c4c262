"""Checkpoints, element types and devices of dynamic mode against DALI's."""

from __future__ import annotations

import os

import numpy as np
import nvidia.dali.experimental.dynamic as dali
import nvidia.dali.types
import pytest

import headrace.experimental.dynamic as ndd
import headrace.types

LIBRARIES = [dali, ndd]


def outcomes(lib, steps):
    """What each step gives, or the builtin class of its error."""
    found = []
    names = {"lib": lib, "C": lib.checkpoint.Checkpoint, "RNG": lib.random.RNG, "c": None}
    for step in steps:
        try:
            if "=" in step.partition("(")[0]:
                exec(step, names)
                found.append(None)
            else:
                value = eval(step, names)
                found.append(str(value) if "tate" in step else value)
        except Exception as error:
            builtin = next(c for c in type(error).__mro__ if c.__module__ == "builtins")
            found.append(builtin.__name__)
    return found


PROGRAMS = {
    "empty": [
        "c = C()",
        "c.names",
        "len(c)",
        "'x' in c",
        "c.is_complete",
        "c.is_loaded",
        "c.serialize()",
        "c.collect()",
        "c.restore()",
        "c.is_complete",
    ],
    "names": [
        "c = C()",
        "a = RNG(1)",
        "b = RNG(2)",
        "c.register(a)",
        "c.register(a)",
        "c.register(a, 'x')",
        "c.register(b, 'b')",
        "c.register(b)",
        "c.register(RNG(3), 'b')",
        "c.register(RNG(3), '')",
        "c.register(RNG(3), '__op_5')",
        "c.register(RNG(3))",
        "c.names",
        "c.get_state('b')",
        "c.get_state('none')",
        "c.collect()",
        "c.is_complete",
        "c.get_state('b')",
        "c.register(RNG(4), 'late')",
        "c.set_state('late', 'x')",
        "c.serialize()",
    ],
    "loaded": [
        "c = C()",
        "c.register(RNG(1), 'a')",
        "c.register(RNG(2))",
        "c.collect()",
        "d = C()",
        "d.deserialize(c.serialize())",
        "d.is_loaded",
        "d.is_complete",
        "d.names",
        "d.get_state('a')",
        "r = RNG(9)",
        "d.register(r, 'a')",
        "str(r.get_state())",
        "d.restore()",
        "d.collect()",
        "d.register(RNG(5), 'unknown')",
        "s = RNG(8)",
        "d.register(s)",
        "str(s.get_state())",
        "d.restore()",
        "d.collect()",
        "d.is_loaded",
        "d.serialize() == c.serialize()",
    ],
    "types": [
        "c = C()",
        "c.set_state('a', str(RNG(3).get_state()), 'File')",
        "c.register(RNG(1), 'a')",
        "c.set_state('a', 'x', 5)",
        "c.set_state('b', str(RNG(3).get_state()), RNG)",
        "r = RNG(1)",
        "c.register(r, 'b')",
        "str(r.get_state())",
        "c.set_state('c', 'bad')",
        "c.register(RNG(1), 'c')",
        "c.clear()",
        "len(c)",
    ],
    "texts": [
        "C().deserialize('')",
        "C().deserialize('x')",
        "C().deserialize('{}')",
        "C().deserialize('[]')",
        'C().deserialize(\'{"version": 1, "states": {}}\')',
        "C().deserialize('{\"version\": 2}')",
        'C().deserialize(\'{"version": 2, "states": {}}\')',
        'C().deserialize(\'{"version": 2, "states": {"a": "b"}}\')',
        "C().deserialize(5)",
    ],
    "files": [
        "c = C()",
        "c.register(RNG(1), 'a')",
        "c.save('x-{seq}.json')",
        "c.collect()",
        "c.save('x-{seq}.json')",
        "c.save('x-{seq}.json')",
        "c.save('x-{seq:04d}.json')",
        "C().load('x-{seq}.json')",
        "C().load('y-{seq}.json')",
        "c.save('{seq}-{other}.json')",
        "d = C()",
        "d.load('x-{seq:02d}.json')",
        "d.register(RNG(7), 'a')",
    ],
}


@pytest.mark.parametrize("program", PROGRAMS)
def test_checkpoints(program, tmp_path, monkeypatch):
    found = []
    for lib in LIBRARIES:
        folder = tmp_path / lib.__name__
        folder.mkdir()
        monkeypatch.chdir(folder)
        found.append(outcomes(lib, PROGRAMS[program]))
        found.append(sorted(os.listdir(folder)))
    assert found[2] == found[0]
    assert found[3] == found[1]


def test_files_are_read_by_both(tmp_path):
    for writer, reader in ((dali, ndd), (ndd, dali)):
        rng = writer.random.RNG(5)
        rng.advance(77)
        saved = writer.checkpoint.Checkpoint()
        saved.register(rng, "rng")
        saved.collect()
        path = saved.save(str(tmp_path / "{seq}.json"))
        assert path
        loaded = reader.checkpoint.Checkpoint()
        loaded.load(str(tmp_path / "{seq}.json"))
        other = reader.random.RNG()
        loaded.register(other, "rng")
        assert other() == rng()


MEMBERS = [
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    "float16",
    "float32",
    "float64",
    "bfloat16",
    "bool",
    "DataType",
    "ImageType",
    "InterpType",
]


@pytest.mark.parametrize("name", MEMBERS)
def test_element_types(name):
    theirs, ours = getattr(dali, name), getattr(ndd, name)
    for attribute in ("bits", "bytes", "exponent_bits", "significand_bits", "name"):
        assert getattr(ours, attribute) == getattr(theirs, attribute)
    assert ours.kind.name == theirs.kind.name
    assert ours.kind.value == theirs.kind.value
    assert (str(ours), repr(ours)) == (str(theirs), repr(theirs))
    assert (ours.type_id is None) == (theirs.type_id is None)
    if ours.type_id is not None:
        assert int(ours.type_id) == int(theirs.type_id)
    assert ndd.dtype(name if name[0].isupper() else ours.name) is ours


MORE_TYPES = {"float32": "f32", 5: "i16", int: "i32"}
"""What `headrace.types.as_data_type` takes as well: names of types, their numbers, `int`."""


@pytest.mark.parametrize(
    "given",
    [
        *("f32", "bool", "float32", "", "b", "u", "tf32", "f8", "i24", "I32"),
        *(5, None, int, float, bool),
        *(np.float32, np.dtype("int16"), np.complex64, np.dtype(">i4"), np.bool_, np.str_),
    ],
    ids=repr,
)
def test_what_stands_for_a_type(given):
    found = []
    for lib in LIBRARIES:
        try:
            found.append(str(lib.dtype(given)))
        except Exception as error:
            found.append(error)
    theirs, ours = found
    if given in MORE_TYPES:
        assert isinstance(theirs, Exception)
        assert ours == MORE_TYPES[given]
    elif isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), ours
    else:
        assert ours == theirs


def test_types_convert():
    """DALI documents that types can be called and raises."""
    assert ndd.float32([1, 2]).dtype == ndd.float32
    with pytest.raises(TypeError):
        dali.float32([1, 2])
    assert ndd.int32 != 5
    with pytest.raises(AttributeError):
        _ = dali.int32 == 5
    assert ndd.type_id(headrace.types.INT8) == int(dali.type_id(nvidia.dali.types.INT8))


@pytest.mark.parametrize(
    "arguments",
    [
        ("cpu",),
        ("cpu", 0),
        ("cpu:0",),
        ("tpu",),
        ("GPU",),
        ("gpu:1",),
        ("cuda:2",),
        ("gpu", -1),
        ("gpu:1", 1),
        ("gpu:x",),
        ("gpu:",),
    ],
    ids=str,
)
def test_devices(arguments):
    found = []
    for lib in LIBRARIES:
        try:
            found.append(repr(lib.Device(*arguments)))
        except Exception as error:
            found.append(error)
    theirs, ours = found
    if isinstance(theirs, Exception):
        assert isinstance(ours, type(theirs)), ours
    else:
        assert ours == theirs


def test_registering_a_reader_keeps_its_states(tmp_path):
    files = []
    for number in range(6):
        files.append(str(tmp_path / f"{number}.bin"))
        (tmp_path / f"{number}.bin").write_bytes(bytes([number]))
    found = []
    for lib in LIBRARIES:
        reader, saved = lib.readers.File(files=files), lib.checkpoint.Checkpoint()
        saved.register(reader, "reader")
        labels = []
        for step, (_, batch) in enumerate(reader.next_epoch(batch_size=2)):
            labels.append([int(np.array(label.cpu())[0]) for label in batch.tensors])
            if step == 0:
                saved.collect()
        again, loaded = lib.readers.File(files=files), lib.checkpoint.Checkpoint()
        loaded.deserialize(saved.serialize())
        loaded.register(again, "reader")
        _, batch = next(iter(again.next_epoch(batch_size=2)))
        found.append([labels, [int(np.array(label.cpu())[0]) for label in batch.tensors]])
        begun = lib.readers.File(files=files)
        next(iter(begun.next_epoch(batch_size=2)))
        with pytest.raises(RuntimeError, match="enable_checkpointing"):
            lib.checkpoint.Checkpoint().register(begun)
    assert found[0] == found[1]
