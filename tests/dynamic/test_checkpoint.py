import json
import os
import stat

import pytest

from headrace.experimental.dynamic.checkpoint import Checkpoint
from headrace.experimental.dynamic.rng import RNG


class Thing:
    """Has a state, and counts how often it was set."""

    def __init__(self, state="s"):
        self.state = state
        self.set = 0

    def get_state(self):
        return self.state

    def set_state(self, state):
        self.state = state
        self.set += 1


def collected(**objects):
    checkpoint = Checkpoint()
    for name, op in objects.items():
        checkpoint.register(op, name)
    checkpoint.collect()
    return checkpoint


def test_an_empty_one():
    checkpoint = Checkpoint()
    assert checkpoint.names == ()
    assert len(checkpoint) == 0
    assert "x" not in checkpoint
    assert not checkpoint.is_complete
    assert not checkpoint.is_loaded
    checkpoint.restore()
    checkpoint.collect()
    with pytest.raises(RuntimeError, match="collect"):
        Checkpoint().serialize()


def test_names_are_made_by_counting():
    checkpoint = Checkpoint()
    first, second, third = Thing(), Thing(), Thing()
    assert checkpoint.register(first) == "__op_0"
    assert checkpoint.register(first) == "__op_0"
    assert checkpoint.register(second, "second") == "second"
    assert checkpoint.register(second) == "second"
    assert checkpoint.register(third) == "__op_2"
    assert checkpoint.names == ("__op_0", "second", "__op_2")
    with pytest.raises(RuntimeError, match="__op_0"):
        checkpoint.register(first, "other")


@pytest.mark.parametrize(
    ("name", "error"), [("", ValueError), ("__op_7", ValueError), (5, TypeError)]
)
def test_names_that_cannot_be_given(name, error):
    with pytest.raises(error):
        Checkpoint().register(Thing(), name)


def test_what_has_no_state_cannot_be_registered():
    with pytest.raises(TypeError, match="get_state"):
        Checkpoint().register(5)


def test_a_round_trip():
    rng, thing = RNG(1), Thing("there")
    rng()
    text = collected(rng=rng, thing=thing).serialize()
    assert json.loads(text) == {
        "version": 2,
        "states": {
            "rng": {
                "state": "Philox_0000000000000001_0000000000000000:0000000000000000_1",
                "type": "RNG",
            },
            "thing": {"state": "there", "type": "Thing"},
        },
    }
    loaded = Checkpoint()
    loaded.deserialize(text)
    assert loaded.is_loaded
    assert loaded.names == ()
    other, another = RNG(7), Thing()
    loaded.register(other, "rng")
    assert other.get_state() == rng.get_state()
    loaded.register(another, "thing")
    assert (another.state, another.set) == ("there", 1)
    loaded.restore()
    assert another.set == 1
    loaded.collect()
    assert loaded.is_complete
    assert not loaded.is_loaded


def test_states_are_kept_until_collected_again():
    rng = RNG(1)
    checkpoint = collected(rng=rng)
    state = checkpoint.get_state("rng")
    rng()
    assert checkpoint.get_state("rng") == state
    checkpoint.restore()
    assert rng.get_state() != state
    checkpoint.set_state("rng", state)
    checkpoint.restore()
    assert rng.get_state() == state


def test_states_without_objects():
    checkpoint = Checkpoint()
    checkpoint.set_state("a", "x", op_type=Thing)
    with pytest.raises(RuntimeError, match="a"):
        checkpoint.restore()
    with pytest.raises(RuntimeError, match="a"):
        checkpoint.collect()
    with pytest.raises(KeyError):
        checkpoint.get_state("a")
    with pytest.raises(TypeError, match="Thing"):
        checkpoint.register(RNG(), "a")
    thing = Thing()
    checkpoint.register(thing, "a")
    assert thing.state == "x"


def test_objects_without_states():
    checkpoint = collected(a=Thing())
    with pytest.raises(RuntimeError, match="collected"):
        checkpoint.register(Thing(), "b")
    with pytest.raises(KeyError):
        checkpoint.set_state("b", "x")
    loaded = Checkpoint()
    loaded.deserialize(checkpoint.serialize())
    with pytest.raises(KeyError, match="b"):
        loaded.register(Thing(), "b")
    with pytest.raises(KeyError, match="__op_0"):
        loaded.register(Thing())
    partial = Checkpoint()
    partial.register(Thing(), "a")
    partial.register(Thing(), "b")
    partial.set_state("a", "x")
    with pytest.raises(RuntimeError, match="b"):
        partial.restore()


def test_types_must_agree():
    checkpoint = Checkpoint()
    checkpoint.register(Thing(), "a")
    with pytest.raises(TypeError, match="RNG"):
        checkpoint.register(RNG(), "a")
    new = Thing()
    checkpoint.register(new, "a")
    checkpoint.collect()
    with pytest.raises(TypeError, match="op_type"):
        checkpoint.set_state("a", "x", 5)


def test_clear_starts_anew():
    checkpoint = collected(a=Thing())
    checkpoint.clear()
    assert not checkpoint.is_complete
    assert checkpoint.register(Thing()) == "__op_0"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "x",
        "{}",
        "[]",
        '{"version": 1, "states": {}}',
        '{"version": 2}',
        '{"version": 2, "states": {"a": "b"}}',
        '{"version": 2, "states": {"a": {"state": "b"}}}',
    ],
)
def test_what_is_no_checkpoint(text):
    with pytest.raises(ValueError):
        Checkpoint().deserialize(text)


def test_files_are_numbered(tmp_path):
    checkpoint = collected(a=Thing("one"))
    pattern = str(tmp_path / "at-{seq}.json")
    assert checkpoint.save(pattern) == str(tmp_path / "at-0.json")
    assert checkpoint.save(pattern) == str(tmp_path / "at-1.json")
    (tmp_path / "at-0010.json").write_text(collected(a=Thing("ten")).serialize())
    (tmp_path / "at-77x.json").write_text("no checkpoint")
    loaded = Checkpoint()
    assert loaded.load(tmp_path / "at-{seq:03d}.json") == str(tmp_path / "at-0010.json")
    thing = Thing()
    loaded.register(thing, "a")
    assert thing.state == "ten"
    assert collected(a=Thing()).save(pattern) == str(tmp_path / "at-11.json")
    assert checkpoint.save(str(tmp_path / "{seq:02d}-{seq}.json")).endswith("02-2.json")
    assert not [name for name in os.listdir(tmp_path) if name.endswith(".tmp")]


def test_folders_and_permissions_of_files(tmp_path):
    pattern = tmp_path / "sub" / "state-{seq}.json"
    path = collected(a=Thing("one")).save(pattern)
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o666 & ~_umask()
    assert Checkpoint().load(pattern) == path


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_files_that_are_not_there(tmp_path):
    with pytest.raises(FileNotFoundError):
        Checkpoint().load(tmp_path / "at-{seq}.json")
    with pytest.raises(KeyError, match="step"):
        collected(a=Thing()).save(tmp_path / "{step}.json")
    with pytest.raises(RuntimeError):
        Checkpoint().save(tmp_path / "{seq}.json")
