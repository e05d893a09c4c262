"""The iterator that gives PyTorch's tensors of batches from a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.plugin.base_iterator import LastBatchPolicy
from headrace.plugin.pytorch import DALIGenericIterator
from headrace.plugin.ray.on_cluster import OnCluster
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from headrace.pipeline import Pipeline


@public_methods
class RayIterator(OnCluster, DALIGenericIterator):
    """`headrace.plugin.pytorch.DALIGenericIterator` over pipelines whose work a Ray cluster does.

    The part of the graph that costs most runs in workers, on any node; the rest, and the GPU's
    part, where the iterator is. Batches, epochs and checkpoints are those of the pipeline itself,
    whatever the number of workers: a worker that is lost is replaced, and what it had in hand is
    done by others. Without a cluster, Ray is started on this machine.

    Parameters
    ----------
    pipelines, output_map, size, reader_name, auto_reset, fill_last_batch, dynamic_shape
        See `headrace.plugin.pytorch.DALIGenericIterator`.
    last_batch_padded, last_batch_policy, prepare_first_batch
        See `headrace.plugin.pytorch.DALIGenericIterator`.
    num_workers
        Number of workers for each pipeline; or the least and the greatest one, between which it
        follows what the trainer takes. The processors of the iterator's own node come first.
    resources, ordered, cut, max_restarts, bytes_in_flight, start_timeout_seconds
        See `distribute`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If arguments do not fit together or to the pipelines.
    UsageError
        If a pipeline has been run, or gives no batch at all.
    WorkerProcessError
        In a step, if too many workers were lost, or none can start.
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
        num_workers: int | tuple[int, int] = 1,
        resources: Mapping[str, Any] | None = None,
        ordered: bool = True,
        cut: str | list[str] | None = None,
        max_restarts: int = 100,
        bytes_in_flight: int | None = None,
        start_timeout_seconds: float | None = 300.0,
    ) -> None:
        made = self._distribute(
            pipelines,
            num_workers=num_workers,
            resources=resources,
            ordered=ordered,
            cut=cut,
            max_restarts=max_restarts,
            bytes_in_flight=bytes_in_flight,
            start_timeout_seconds=start_timeout_seconds,
        )
        super().__init__(
            made,
            output_map,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            dynamic_shape,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
        )
