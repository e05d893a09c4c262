"""Iterators that go on where others stopped: nothing is lost, nothing comes twice."""

from __future__ import annotations

import jax
import numpy as np
import pytest

from headrace import errors, fn
from headrace.plugin.jax import LastBatchPolicy, data_iterator, peekable_data_iterator
from headrace.plugin.jax.fn import jax_function
from tests.jax.pipelines import OUTPUTS, labels, read

PLACES = ["plain", "shards", "split", "devices"]


@jax_function
@jax.jit
def negated(noise):
    return -noise


def maker(files, place, over, devices, *, policy="FILL", decorator=data_iterator, pad=False):
    options = {
        "plain": {},
        "shards": {"sharding": over(4)},
        "split": {"sharding": over(4), "split_batches": True},
        "devices": {"devices": devices[:2]},
    }[place]

    def graph(num_shards=1, shard_id=0):
        _, label = read(
            files, num_shards, shard_id, random_shuffle=True, initial_fill=5, pad_last_batch=pad
        )
        return negated(fn.random.uniform(shape=(3,))), label

    return decorator(
        graph,
        OUTPUTS,
        reader_name="reader",
        last_batch_policy=LastBatchPolicy[policy],
        **options,
    )


def settings(**more):
    return {"batch_size": 4, "seed": 7, "device_id": None, "enable_checkpointing": True, **more}


def content(step):
    return labels(step["label"]), np.asarray(step["data"]).tolist()


def steps(it, count):
    """So many steps, over the ends of epochs."""
    found = []
    while len(found) < count:
        for step in it:
            found.append(content(step))
            if len(found) == count:
                break
        else:
            found.append("end")
    return found


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(("policy", "pad"), [("FILL", False), ("DROP", False), ("FILL", True)])
@pytest.mark.parametrize("taken", [0, 1, 4, 9])
def test_going_on(files, over, devices, place, policy, pad, taken):
    make = maker(files, place, over, devices, policy=policy, pad=pad)
    whole = steps(make(**settings()), taken + 12)
    it = make(**settings())
    begun = steps(it, taken) if taken else []
    saved = it.checkpoints()
    assert all(isinstance(state, bytes) for state in saved)
    assert len(saved) == len(it._pipes)
    assert begun + steps(make(**settings(), checkpoints=saved), 12) == whole
    assert begun + steps(make(**settings(num_threads=3), checkpoints=saved), 12) == whole


def test_partial_batches(files, over, devices):
    make = maker(files, "shards", over, devices, policy="PARTIAL", pad=True)
    it = make(**settings())
    shown = [k for _ in range(2) for k in content(next(it))[0]]
    again = make(**settings(), checkpoints=it.checkpoints())
    shown += [k for step in again for k in content(step)[0]]
    assert sorted(shown) == list(range(21))


@pytest.mark.parametrize("place", ["plain", "shards"])
def test_what_was_shown_comes_again(files, over, devices, place):
    make = maker(files, place, over, devices, decorator=peekable_data_iterator)
    whole = steps(make(**settings()), 10)
    it = make(**settings())
    begun = steps(it, 3)
    it.peek()
    saved = it.checkpoints()
    assert begun + steps(make(**settings(), checkpoints=saved), 7) == whole
    assert begun + steps_left(it, 7) == whole, "and the iterator itself goes on"


def steps_left(it, count):
    found = [content(step) for step in iter(lambda: next(it, None), None)]
    found.append("end")
    return found + steps(it, count - len(found))


def test_saved_files(files, over, devices, tmp_path):
    make = maker(files, "shards", over, devices, decorator=peekable_data_iterator)
    whole = steps(make(**settings()), 10)
    it = make(**settings())
    begun = steps(it, 3)
    it.save(tmp_path / "iterator")
    steps_left(it, 6)
    it.restore(tmp_path / "iterator")
    assert begun + steps_left(it, 7) == whole
    other = make(**settings())
    other.load(str(tmp_path / "iterator"))
    assert begun + steps_left(other, 7) == whole
    (tmp_path / "other").write_text("[1]")
    with pytest.raises(errors.ArgumentValueError, match="was not written by `save`"):
        it.restore(tmp_path / "other")


def test_errors(files, over, devices):
    make = maker(files, "shards", over, devices)
    it = make(**settings(enable_checkpointing=False))
    with pytest.raises(ValueError, match="enable_checkpointing=True"):
        it.checkpoints()
    for name in ("state_dict", "load_state_dict", "get_state", "set_state"):
        assert not hasattr(it, name)
        assert hasattr(make(**settings()), name)
    saved = make(**settings()).checkpoints()
    with pytest.raises(RuntimeError, match="`checkpoints` has 3 elements for 4 pipelines"):
        make(**settings(), checkpoints=saved[:3])
    with pytest.raises(errors.HeadraceError):
        make(**settings(), checkpoints=[b"nothing"] * 4)
    make(batch_size=4, seed=7, checkpoints=saved)  # says by itself that it wants them
    peekable = maker(files, "plain", over, devices, decorator=peekable_data_iterator)
    it = peekable(**settings(enable_checkpointing=False))
    it.peek()
    with pytest.raises(ValueError, match="enable_checkpointing=True"):
        it.checkpoints()


@pytest.mark.parametrize("decorator", [data_iterator, peekable_data_iterator])
@pytest.mark.parametrize("place", PLACES)
def test_states_in_place(files, over, devices, place, decorator):
    make = maker(files, place, over, devices, decorator=decorator)
    it, other = make(**settings()), make(**settings(seed=8))
    begun = steps(it, 3)
    state = it.get_state()
    assert state == it.state_dict()
    if decorator is peekable_data_iterator:
        other.peek()
    other.set_state(state)
    assert begun + steps_left(other, 7) == steps(make(**settings()), 10)


def test_peekable_iterators_made_of_pipelines(files, over, devices, tmp_path):
    from headrace.plugin.jax import DALIGenericPeekableIterator

    made = maker(files, "plain", over, devices)(**settings())
    it = DALIGenericPeekableIterator(made._pipes, OUTPUTS, reader_name="reader")
    shown = it.peek()
    it.save(tmp_path / "iterator")
    taken = content(it.next())
    it.next()
    it.restore(tmp_path / "iterator")
    assert content(it.next()) == content(shown) == taken
