"""Arguments of iterators, checked and normalised."""

from __future__ import annotations

import numbers
import warnings
from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentTypeError, ArgumentValueError, IteratorArgumentError
from headrace.graph.user_line import stack_level
from headrace.plugin.epoch_counter import BatchCounter, LastBatchPolicy, ReaderCounter

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.pipeline import Pipeline

_AUTO_RESET = {False: False, None: False, "no": False, True: True, "yes": True}

_SAME_IN_ALL_READERS = {
    "epoch_size": "the size of the data set",
    "number_of_shards": "`num_shards`",
    "pad_last_batch": "`pad_last_batch`",
    "stick_to_shard": "`stick_to_shard`",
}


def as_list(pipelines: Pipeline | Sequence[Pipeline]) -> list[Pipeline]:
    """The pipelines of an iterator."""
    found: list[Any] = list(pipelines) if isinstance(pipelines, (list, tuple)) else [pipelines]
    if not found or None in found:
        raise IteratorArgumentError("Number of provided pipelines has to be at least 1.")
    for pipeline in found:
        if getattr(pipeline, "_is_pipeline_def", False):
            name = pipeline.__name__
            raise ArgumentTypeError(
                f"`{name}` is the definition of a pipeline; the iterator takes the pipeline that "
                f"calling it makes: `{name}(...)`."
            )
        if not hasattr(pipeline, "share_outputs"):
            raise ArgumentTypeError(
                f"An iterator takes a pipeline or a list of them, got {pipeline!r}."
            )
    return found


def to_auto_reset(value: bool | str | None) -> bool:
    """Check `auto_reset`; return True to go on to the next epoch without a call of `reset`."""
    try:
        return _AUTO_RESET[value]
    except (KeyError, TypeError):
        raise ArgumentValueError(
            f'Unsupported value for `auto_reset`: {value!r}. It can be True, "yes", False, "no" '
            "or None."
        ) from None


def to_policy(policy: LastBatchPolicy, fill_last_batch: bool | None) -> LastBatchPolicy:
    """The last-batch policy, from the argument or its deprecated predecessor."""
    if not isinstance(policy, LastBatchPolicy):
        raise ArgumentValueError(
            f"Wrong type for `last_batch_policy`. Expected LastBatchPolicy.FILL, "
            f"LastBatchPolicy.DROP or LastBatchPolicy.PARTIAL, got {policy!r}."
        )
    if fill_last_batch is None:
        return policy
    policy = LastBatchPolicy.FILL if fill_last_batch else LastBatchPolicy.PARTIAL
    warnings.warn(
        f"`fill_last_batch` is deprecated; use `last_batch_policy=LastBatchPolicy.{policy.name}`.",
        DeprecationWarning,
        stacklevel=stack_level(),
    )
    return policy


def checked_names(output_map: Sequence[str], pipelines: Sequence[Pipeline]) -> list[str]:
    """The names of the outputs; a string by itself is one name."""
    names = [output_map] if isinstance(output_map, str) else list(output_map)
    if len(set(names)) < len(names):
        raise IteratorArgumentError(f"output_map names should be distinct, got {names}.")
    for pipeline in pipelines:
        if pipeline.num_outputs != len(names):
            raise ArgumentValueError(
                f"`output_map` has {len(names)} names, {names}, but a pipeline of the iterator has "
                f"{pipeline.num_outputs} outputs; give one name for each."
            )
    return names


def checked_size(
    size: int, reader_name: str | None, pipelines: int, last_batch_padded: bool
) -> int:
    """The number of samples in an epoch; negative if a reader or the end of the data tells it."""
    if not isinstance(size, numbers.Real):
        raise ArgumentTypeError(
            f"`size` is {size!r}; expected a number of samples, or -1 for as long as there is data."
        )
    size = int(size)
    if size == 0:
        raise IteratorArgumentError(
            "Size cannot be 0; `size=-1` stands for as long as there is data."
        )
    if reader_name is not None:
        if size > 0:
            raise IteratorArgumentError(
                f"When reader_name is provided, size should not be set: `size`={size} and "
                f"`reader_name`={reader_name!r} both say how long an epoch is."
            )
        if last_batch_padded:
            raise IteratorArgumentError(
                "When reader_name is provided, last_batch_padded should not be set: the reader's "
                "`pad_last_batch` tells it."
            )
        return -1
    if size < 0 and pipelines > 1:
        raise IteratorArgumentError(
            "Negative size is supported only for a single pipeline: it stands for an epoch as "
            "long as there is data. Give `reader_name` or `size`."
        )
    if size > 0:
        warnings.warn(
            "An iterator with `size` does not know of shards and padding. Where the pipeline has "
            "a reader, give its name as `reader_name` in its place.",
            Warning,
            stacklevel=stack_level(),
        )
    return size


def reader_counter(
    pipelines: Sequence[Pipeline], name: str, batch_size: int, policy: LastBatchPolicy
) -> ReaderCounter | BatchCounter:
    """The counter of epochs of the readers named `name`."""
    metas = [pipeline.reader_meta(name) for pipeline in pipelines]
    for key, what in _SAME_IN_ALL_READERS.items():
        values = {meta[key] for meta in metas}
        if len(values) > 1:
            raise IteratorArgumentError(
                f'The readers "{name}" of the pipelines differ in {what}: '
                f"{', '.join(map(str, sorted(values)))}. It must be the same in all pipelines "
                "of an iterator."
            )
    meta = metas[0]
    if "batches" in meta:
        return BatchCounter(meta["epoch_size"], meta["batches"])
    return ReaderCounter(
        meta["epoch_size"],
        meta["number_of_shards"],
        [m["shard_id"] for m in metas],
        batch_size,
        policy,
        padded=bool(meta["pad_last_batch"]),
        sticks=bool(meta["stick_to_shard"]),
        skips=any(pipeline._settings.on_bad_sample == "skip" for pipeline in pipelines),
    )
