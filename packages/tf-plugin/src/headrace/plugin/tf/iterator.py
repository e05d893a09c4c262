"""The iterator that gives tensors of eager execution, those of a GPU pipeline on its GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from headrace.errors import ArgumentTypeError, ShapeError, UsageError
from headrace.plugin.base_iterator import LastBatchPolicy, PipelineBatch, _DaliBaseIterator
from headrace.plugin.iterator_arguments import as_list
from headrace.plugin.tf import eager
from headrace.plugin.tf.components import chosen_samples, not_uniform
from headrace.tensors import TensorListCPU
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.pipeline import Pipeline


@public_methods
class DALIGenericIterator(_DaliBaseIterator):
    """Iterates over the batches of a pipeline as eager tensors, each where the pipeline made it.

    DALI has no such iterator for TensorFlow. It is what outputs on a GPU need: the elements of a
    ``tf.data.Dataset`` are in the host's memory. Each step gives one dictionary, from the names in
    `output_map` to tensors whose first axis counts the samples. They share the memory of the
    pipeline's outputs; memory that is not aligned to 64 bytes is copied.

    TensorFlow's streams cannot wait for others. So the program waits until a batch on a GPU is
    made, and, before it takes the next one, until TensorFlow has done the work that it was given,
    if TensorFlow has let go of tensors since.

    A loop over the iterator is one epoch, and the next loop the next epoch, also after a ``break``.

    Parameters
    ----------
    pipeline
        The pipeline. On a GPU, TensorFlow must have the same one under the same number.
    output_map
        Names of the outputs, in their order; all different.
    size
        Number of samples in an epoch. With -1 an epoch lasts until an external source has no more
        data. Not together with `reader_name`.
    reader_name
        Name of the reader that says how long an epoch is.
    auto_reset
        ``True`` or ``"yes"``: go on to the next epoch by itself once an epoch has ended.
    last_batch_padded
        With `size`: whether the pipeline repeats samples at the end of an epoch.
    last_batch_policy
        What to do with a last batch that has too few samples.
    prepare_first_batch
        Get the first batch right now, so that the pipeline starts to work.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If arguments do not fit together or to the pipeline.
    UsageError
        If the pipeline has been run in another way, or gives no batch at all; where TensorFlow
        does not execute eagerly; in a step, if TensorFlow does not have the GPU of an output.
    ShapeError
        In a step, if the samples of an output have different shapes.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
    ) -> None:
        if len(as_list(pipeline)) != 1:
            raise ArgumentTypeError(
                f"`pipeline` is a list of {len(as_list(pipeline))} pipelines; expected one. Make "
                "an iterator for each, with `num_shards` and `shard_id` for its reader."
            )
        super().__init__(
            pipeline,
            size,
            reader_name,
            auto_reset,
            None,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            output_map=output_map,
        )

    def _assemble(self, batches: list[PipelineBatch]) -> dict[str, Any]:
        if not tf.executing_eagerly():
            raise UsageError(
                "`DALIGenericIterator` gives eager tensors, and TensorFlow is building a graph: "
                "take batches outside of `tf.function`, or use a `DALIDataset`."
            )
        eager.take_back()
        (batch,) = batches
        assert self.output_map is not None
        return {
            name: _tensor(number, output, batch.kept)
            for number, (name, output) in enumerate(
                zip(self.output_map, batch.outputs, strict=True)
            )
        }


def _tensor(number: int, output: Any, kept: int | list[int]) -> Any:
    """The kept samples of an output, in one tensor."""
    chosen = chosen_samples(output, kept)
    try:
        if isinstance(chosen, TensorListCPU):
            return eager.from_host(chosen.as_array())
        return eager.from_gpu(chosen.as_tensor())
    except ShapeError as error:
        raise not_uniform(number, output) from error
