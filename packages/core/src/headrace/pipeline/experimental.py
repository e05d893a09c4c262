"""`pipeline_def` with a debug mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Unpack

from headrace.pipeline import definition

if TYPE_CHECKING:
    from headrace.pipeline.definition_types import (
        Parameters,
        PipelineArguments,
        PipelineDefinition,
        PipelineOutputs,
    )

__all__ = ["pipeline_def"]


def __dir__() -> list[str]:
    return [*__all__]


def pipeline_def(
    fn: Callable[Parameters, PipelineOutputs] | None = None,
    *,
    enable_conditionals: bool = False,
    debug: bool = False,
    **pipeline_kwargs: Unpack[PipelineArguments],
) -> PipelineDefinition[Parameters]:
    """Like `headrace.pipeline_def`.

    Parameters
    ----------
    fn, enable_conditionals, **pipeline_kwargs
        As there.
    debug
        Execute the definition in every `run`, and each operator when it is called: see
        `headrace.pipeline.debug.PipelineDebug`. It may be given at the call, too.
    """
    found: PipelineDefinition[Parameters] = definition.decorated(
        fn, enable_conditionals, debug, dict(pipeline_kwargs)
    )
    return found
