"""The record of a profiled pipeline."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.executor.processes.choice import processors
from headrace.profiling.profile import current_profile
from headrace.profiling.recorder import NO_RECORD, ProfileRecorder, Setup, SpanRecorder
from headrace.tensors.gpu.runtime import is_available

if TYPE_CHECKING:
    from headrace.executor.plan import Plan
    from headrace.pipeline.settings import Settings


def recorder_of(settings: Settings) -> SpanRecorder:
    """The recorder of a pipeline that is being built; it does nothing where no profile is made."""
    profile = settings.profile if settings.profile is not None else current_profile()
    if profile is None:
        return NO_RECORD
    recorder = ProfileRecorder(ended=profile.ended)
    profile.begin(recorder)
    return recorder


def describe(
    recorder: SpanRecorder, settings: Settings, plan: Plan, *, threads: int, processes: bool
) -> None:
    """Record facts that do not change while the pipeline runs."""
    if not isinstance(recorder, ProfileRecorder):
        return
    recorder.setup = Setup(
        name=recorder.setup.name,
        batch_size=settings.batch_size or 0,
        threads=threads,
        workers="processes" if processes else "threads",
        depth=settings.depth,
        processors=processors(),
        has_gpu=is_available(),
        device="gpu" if plan.streams else "cpu",
        has_python=any(node.schema.calls_user for node in plan.nodes),
    )
