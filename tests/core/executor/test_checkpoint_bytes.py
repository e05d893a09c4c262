"""The bytes of a checkpoint: they come back as they were, or say what is wrong with them."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace._version import __version__
from headrace.errors import ArgumentTypeError, CheckpointError
from headrace.executor.checkpoint import PipelineCheckpoint

STATES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
    max_leaves=10,
)


def example() -> PipelineCheckpoint:
    sources = {"epoch": 1, "iteration": 2, "ended": False, "sources": {}}
    operators = {"R": {"operator": "readers.file", "seed": 2**63 - 1, "state": {"epoch": 3}}}
    return PipelineCheckpoint(7, sources, operators, {"given": 4})


@given(st.integers(0), st.dictionaries(st.text(), STATES), STATES)
def test_back_and_forth(iteration: int, sources, state) -> None:
    there = PipelineCheckpoint(iteration, sources, {"x": {"state": state}}, {"given": state})
    data = there.packed()
    for form in (data, bytearray(data), memoryview(data), data.decode()):
        assert PipelineCheckpoint.unpacked(form) == there
    assert PipelineCheckpoint.unpacked(data).packed() == data


def test_small_and_readable() -> None:
    data = example().packed()
    assert len(data) < 300
    assert data.startswith(b'{"headrace checkpoint": 3, "written by": "')
    assert data == example().packed()


@given(st.data())
def test_damage_is_found(data: st.DataObject) -> None:
    whole = example().packed()
    kind = data.draw(st.sampled_from(["cut", "changed", "inserted"]))
    at = data.draw(st.integers(0, len(whole) - 2))
    if kind == "cut":
        broken = whole[:at]
    elif kind == "changed":
        broken = whole[:at] + bytes([data.draw(st.integers(0, 255))]) + whole[at + 1 :]
    else:
        broken = whole[:at] + data.draw(st.binary(min_size=1, max_size=5)) + whole[at:]
    try:
        found = PipelineCheckpoint.unpacked(broken)
    except CheckpointError:
        return
    assert found == example()  # what was changed says nothing: white space, the writer's version


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "empty"),
        (b"abc", "no checkpoint of Headrace"),
        (b"latest.checkpoint", r"`Path\(name\)\.read_bytes\(\)`, not its name"),
        (b"[1, 2]", "no checkpoint of Headrace"),
        (b"[" * 100_000, "no checkpoint of Headrace"),
        (b"\n\x17\n\x01R\x12\x12", "checkpoints of DALI cannot be read"),
        (pickle.dumps({"a": 1}), "no checkpoint of Headrace"),
        (example().packed()[:-20], "cannot be read to the end"),
        (example().packed().replace(b'"epoch":3', b'"epoch":4'), "checksum"),
        (b'{"headrace checkpoint": 3}', "checksum"),
        (b'{"headrace checkpoint": 3, "state": [], "checksum": 223132457}', "checksum|damaged"),
    ],
)
def test_what_is_no_checkpoint(data: bytes, what: str) -> None:
    with pytest.raises(CheckpointError, match=what):
        PipelineCheckpoint.unpacked(data)


def test_other_versions() -> None:
    mark = b'checkpoint": 3'
    for other in (1, 2, 4):
        data = example().packed().replace(mark, mark[:-1] + b"%d" % other)
        message = rf"format {other}.*Headrace {__version__}.*format 3"
        with pytest.raises(CheckpointError, match=message):
            PipelineCheckpoint.unpacked(data)


@pytest.mark.parametrize("value", [1, None, 1.5, ["a"], object()])
def test_other_types(value: object) -> None:
    with pytest.raises(ArgumentTypeError, match="expected the bytes"):
        PipelineCheckpoint.unpacked(value)
