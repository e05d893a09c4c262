"""State of an iterator in the checkpoints of its pipelines: written and restored."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentTypeError, CheckpointError, NoCheckpointsError
from headrace.executor.checkpoint import PipelineCheckpoint
from headrace.plugin.epoch_counter import (
    BatchCounter,
    EndlessCounter,
    EpochCounter,
    ReaderCounter,
    SizeCounter,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headrace.pipeline import Pipeline


def can_make_checkpoints(pipelines: Sequence[Pipeline]) -> bool:
    """Return True if checkpoints can be made of all `pipelines`."""
    return all(pipeline._settings.enable_checkpointing for pipeline in pipelines)


def check_enabled(pipelines: Sequence[Pipeline]) -> None:
    """Check that checkpoints can be made of all `pipelines`. Raises `NoCheckpointsError` if not."""
    without = [k for k, p in enumerate(pipelines) if not p._settings.enable_checkpointing]
    if without:
        which = "any pipeline" if len(without) == len(pipelines) else f"the pipelines {without}"
        raise NoCheckpointsError(
            f"Checkpointing is not enabled in {which} of the iterator: give all of them "
            "`enable_checkpointing=True`."
        )


def kind_of(counter: EpochCounter) -> str:
    """Return the name of the rule that sets the length of an epoch."""
    if isinstance(counter, EndlessCounter):
        return "the data"
    return "`size`" if isinstance(counter, SizeCounter) else "a reader"


def found_state(
    restored: Sequence[PipelineCheckpoint | None], counter: EpochCounter
) -> dict[str, Any] | None:
    """The state that an iterator goes on from; `None` for the beginning.

    `restored`: checkpoint that each of its pipelines continues from. `counter`: counter of its
    epochs.

    Raises `CheckpointError` if the pipelines were not restored from checkpoints of one iterator,
    made at once and counting epochs in the same way.
    """
    if all(each is None for each in restored):
        return None
    fresh = [k for k, each in enumerate(restored) if each is None]
    if fresh:
        raise CheckpointError(
            f"The pipelines {fresh} of the iterator are at their beginning, the others were "
            "restored from checkpoints. Restore all of them, or none."
        )
    states = [each.iterator for each in restored if each is not None]
    if all(state is None for state in states):
        untouched = all(each.iteration == 0 for each in restored if each is not None)
        if isinstance(counter, EndlessCounter) or untouched:
            return None
        raise CheckpointError(
            "The checkpoint does not say where in its epoch an iterator stood: it was made by "
            "`Pipeline.checkpoint`. Use `checkpoints` of the iterator to make it."
        )
    state = states[0]
    if state is None or any(other != state for other in states):
        raise CheckpointError(
            "The pipelines of the iterator were restored from checkpoints that do not belong "
            "together: they were made in different steps, or by different iterators. Use all that "
            "one call of `checkpoints` returned, in its order."
        )
    if state["epochs by"] != kind_of(counter) or state["size"] not in (None, counter.size):
        raise CheckpointError(
            f"The iterator counts epochs by {kind_of(counter)} (size {counter.size}); the one of "
            f"the checkpoint did so by {state['epochs by']} (size {state['size']}). Make it with "
            "the same `reader_name` or `size`."
        )
    return state


def dealt_anew(
    pipelines: Sequence[Pipeline], counter: EpochCounter, reader_name: str | None
) -> bool:
    """Return True if readers continue the rest of an epoch that another number of shards began.

    The `counter` then counts that.

    Raises `CheckpointError` if it cannot know how much that is.
    """
    dealt = any(pipeline._engine.checkpointing.dealt for pipeline in pipelines if pipeline._engine)
    if not dealt or isinstance(counter, EndlessCounter):
        return False
    if isinstance(counter, BatchCounter) and reader_name is not None:
        counter.begin_rest(pipelines[0].reader_meta(reader_name)["batches_of_epoch"])
        return True
    if not isinstance(counter, ReaderCounter) or reader_name is None:
        raise CheckpointError(
            "The number of shards is another one than when the checkpoint was made, and an "
            "iterator that counts samples by `size` does not know how many are left. Give it "
            "`reader_name`."
        )
    counter.begin_rest(*pipelines[0]._reader_rest(reader_name))
    return True


_FORMAT = "headrace iterator"
"""The key of a state that tells what it is; its value is the version."""


def as_state_dict(checkpoints: Sequence[bytes]) -> dict[str, Any]:
    """The checkpoints of an iterator's pipelines, as a dictionary of numbers and text."""
    return {_FORMAT: 1, "pipelines": [data.decode() for data in checkpoints]}


def checkpoints_in(
    state: Mapping[str, Any], pipelines: Sequence[Pipeline], counter: EpochCounter
) -> list[str]:
    """Return the checkpoint for each of the `pipelines` of an iterator from the result of
    `as_state_dict`.

    Of an iterator over another number of shards, that of the first is for all of them: readers go
    to where their shards are by then, or take their part of what is left.

    Raises
    ------
    ArgumentTypeError, CheckpointError
        If `state` did not come from there, or from an iterator over other pipelines.
    """
    if not hasattr(state, "keys"):
        raise ArgumentTypeError(
            f"`state` is a {type(state).__name__}; expected the dictionary that `state_dict` "
            "returned."
        )
    if state.get(_FORMAT) != 1 or not isinstance(state.get("pipelines"), list):
        raise CheckpointError(
            f"The dictionary with the keys {sorted(map(str, state))} is no state of an iterator of "
            "Headrace. Pass what `state_dict` returned."
        )
    found: list[str] = state["pipelines"]
    if len(found) == len(pipelines):
        return found
    shards = len(counter.shard_sizes) if isinstance(counter, ReaderCounter) else 0
    if len(found) > _former_shards(found) or len(pipelines) > shards:
        raise CheckpointError(
            f"The state is that of an iterator over {len(found)} pipelines; this one has "
            f"{len(pipelines)}. Another number can go on if each pipeline reads a shard of its "
            "own, of the reader that `reader_name` says."
        )
    return found[:1] * len(pipelines)


def _former_shards(checkpoints: list[str]) -> int:
    """Number of shards of the reader by which an iterator counted epochs; 0 if by none."""
    iterator = PipelineCheckpoint.unpacked(checkpoints[0]).iterator if checkpoints else None
    return 0 if iterator is None else len(iterator["counter"].get("drawn", ()))
