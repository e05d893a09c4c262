"""`pipeline_def` with a debug mode, which is to come."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ParamSpec, Unpack, overload

from penstock.pipeline import definition
from penstock.to_come import missing_feature

if TYPE_CHECKING:
    from penstock.pipeline.definition_types import (
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
    """Like `penstock.pipeline_def`.

    Parameters
    ----------
    fn, enable_conditionals, **pipeline_kwargs
        As there.
    debug
        Run operators one by one when they are called: to come.
    """
    if debug:
        raise missing_feature("debug=True")
    if fn is None:
        return definition.pipeline_def(enable_conditionals=enable_conditionals, **pipeline_kwargs)
    return definition.pipeline_def(fn, enable_conditionals=enable_conditionals, **pipeline_kwargs)
