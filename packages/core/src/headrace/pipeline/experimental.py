"""`pipeline_def` with a debug mode."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Unpack, overload

from headrace.pipeline import definition

if TYPE_CHECKING:
    from headrace.pipeline.definition_types import (
        PipelineArguments,
        PipelineDecorator,
        PipelineDefinition,
        PipelineOutputs,
    )

__all__ = ["pipeline_def"]

_P = ParamSpec("_P")


def __dir__() -> list[str]:
    return [*__all__]


@overload
def pipeline_def(
    fn: Callable[_P, PipelineOutputs],
    *,
    enable_conditionals: bool = False,
    debug: bool = False,
    **pipeline_kwargs: Unpack[PipelineArguments],
) -> PipelineDefinition[_P]: ...
@overload
def pipeline_def(
    *,
    enable_conditionals: bool = False,
    debug: bool = False,
    **pipeline_kwargs: Unpack[PipelineArguments],
) -> PipelineDecorator: ...
def pipeline_def(
    fn: Callable[..., Any] | None = None,
    *,
    enable_conditionals: bool = False,
    debug: bool = False,
    **pipeline_kwargs: Any,
) -> Any:
    """Like `headrace.pipeline_def`.

    Parameters
    ----------
    fn, enable_conditionals, **pipeline_kwargs
        As there.
    debug
        Execute the definition in every `run`, and each operator when it is called: see
        `headrace.pipeline.debug.PipelineDebug`. It may be given at the call, too.
    """
    return definition.decorated(fn, enable_conditionals, debug, pipeline_kwargs)
