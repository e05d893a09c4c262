"""Placement of a pipeline's outputs by whoever takes them: on a device, or in other host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.errors import MisusedArgumentError, UsageError
from headrace.executor.fallback import tell

if TYPE_CHECKING:
    from headrace.pipeline.pipeline import Pipeline
    from headrace.tensors.pool import HostPool


def hand_over_on(pipeline: Pipeline, device_id: int | None) -> None:
    """Have the engine bring all outputs to a GPU, but for side data; or to the host (`None`)."""
    settings = pipeline._settings
    device = "cpu" if device_id is None else "gpu"
    if device_id is not None:
        if settings.on_cpu_because:
            tell(f"`device`, GPU {device_id},", settings.on_cpu_because)
            return
        if settings.device_id not in (None, device_id):
            raise MisusedArgumentError(
                f"`device` is GPU {device_id}, but the pipeline works on GPU "
                f"{settings.device_id}: give both the same number, or the pipeline no `device_id`."
            )
    if settings.outputs_device != device:
        _check_not_built(pipeline, "device")
        settings.outputs_device = device
        if device_id is not None:
            settings.device_id = device_id


def hand_over_in(pipeline: Pipeline, pool: HostPool, argument: str) -> None:
    """Have outputs in host memory handed over in memory of `pool`, for an argument of that name."""
    if pipeline._settings.output_pool is not pool:
        _check_not_built(pipeline, argument)
        pipeline._settings.output_pool = pool


def _check_not_built(pipeline: Pipeline, argument: str) -> None:
    if pipeline._engine is not None:
        raise UsageError(
            f"`{argument}` decides how the pipeline is built, which has been done already: leave "
            "out `build()` and `run()` before the iterator is made."
        )
