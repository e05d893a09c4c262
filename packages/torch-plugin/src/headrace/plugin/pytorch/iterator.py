"""Iterators that give dense PyTorch tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.plugin.base_iterator import LastBatchPolicy, PipelineBatch, _DaliBaseIterator
from headrace.plugin.pytorch.convert import separate, to_dense
from headrace.plugin.pytorch.placement import place_outputs
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from headrace.pipeline import Pipeline
    from headrace.plugin.pytorch.placement import Device


@public_methods
class DALIGenericIterator(_DaliBaseIterator):
    """Iterates over batches as PyTorch tensors.

    Each step gives a list with one dictionary for each pipeline, from the names in `output_map` to
    tensors whose first dimension counts the samples. The tensors share the memory of the
    pipeline's outputs, on the host or on the GPU, and may be kept for as long as they are needed.

    On a GPU, PyTorch's current stream waits for the data, and the program does not. Memory is used
    anew once a tensor is gone and that stream, and the default stream, have done what they were
    given by then. Tensors that are used on other streams have to be kept until those are through;
    ``record_stream`` knows nothing of memory that is not PyTorch's own.

    A loop over the iterator is one epoch, and the next loop the next epoch, also after a ``break``.

    Parameters
    ----------
    pipelines
        One pipeline or several with the same batch size, usually one for each shard or device.
    output_map
        Names of the outputs of a pipeline, in their order; all different.
    size
        Number of samples in an epoch, all pipelines together. With -1 an epoch lasts until an
        external source has no more data. Not together with `reader_name`.
    reader_name
        Name of the reader in each pipeline that says how long an epoch is. Prefer it to `size`:
        it takes account of shards and padding.
    auto_reset
        ``True`` or ``"yes"``: go on to the next epoch by itself once an epoch has ended.
        ``False``, ``None`` or ``"no"``: raise `StopIteration` until `reset` or the next loop.
    fill_last_batch
        Deprecated; ``True`` stands for ``FILL``, ``False`` for ``PARTIAL``.
    dynamic_shape
        Deprecated; shapes may always change from batch to batch.
    last_batch_padded
        With `size`: whether the pipelines repeat samples at the end of an epoch, so that the next
        one begins with a full batch.
    last_batch_policy
        What to do with a last batch that has too few samples.
    prepare_first_batch
        Get the first batch right now, so that the pipelines start to work.
    device
        Bring all outputs to this device, as `torch.device` takes it; or a list with one for each
        pipeline. What is on the CPU is uploaded ahead, on a stream of its own, while the program
        computes: as with ``.gpu()`` at the end of the definition, for which the pipeline needs no
        `device_id`. Texts and objects stay lists. With ``"cpu"``, what is on a GPU is copied to
        the host.
    pin_memory
        Hand over tensors on the CPU in page-locked memory of PyTorch's, from which
        ``tensor.to(device, non_blocking=True)`` copies without waiting. Without a GPU there is a
        warning, and tensors are in ordinary memory, as with PyTorch's `DataLoader`.

    Raises
    ------
    ArgumentValueError
        If arguments do not fit together or to the pipelines.
    UsageError
        If a pipeline has been run in another way, or gives no batch at all; or with `device` or
        `pin_memory`, if it was built before.
    GpuNotAvailableError
        If `device` is a GPU that cannot be used.
    ShapeError
        In a step, if the samples of an output have different shapes.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        device: Device | Sequence[Device] | None = None,
        pin_memory: bool = False,
    ) -> None:
        self._pins = place_outputs(pipelines, device, pin_memory)
        super().__init__(
            pipelines,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            output_map=output_map,
        )

    def _assemble(self, batches: list[PipelineBatch]) -> list[dict[str, torch.Tensor]]:
        names = self.output_map or ()
        return [
            separate(
                {
                    name: to_dense(output, batch.kept, name)
                    for name, output in zip(names, batch.outputs, strict=True)
                },
                pins=self._pins,
            )
            for batch in batches
        ]


@public_methods
class DALIClassificationIterator(DALIGenericIterator):
    """Like `DALIGenericIterator`, for pipelines with the two outputs "data" and "label".

    Parameters
    ----------
    pipelines, size, reader_name, auto_reset, fill_last_batch, dynamic_shape
        See `DALIGenericIterator`.
    last_batch_padded, last_batch_policy, prepare_first_batch, device, pin_memory
        See `DALIGenericIterator`.
    """

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        device: Device | Sequence[Device] | None = None,
        pin_memory: bool = False,
    ) -> None:
        super().__init__(
            pipelines,
            ["data", "label"],
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            device=device,
            pin_memory=pin_memory,
        )
