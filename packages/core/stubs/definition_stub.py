"""The .pyi file that says what `pipeline_def` makes of a function; `stubs` writes it.

A definition takes the arguments of its function and those of `Pipeline`. Python's types cannot say
that in one signature: keywords beside those of a `ParamSpec` are not allowed. So there is one
overload for calls with the function's own arguments only, which are checked, and one for each
argument of `Pipeline` that a call may have as well.
"""

from __future__ import annotations

from inspect import Parameter, signature
from pathlib import Path

from headrace.pipeline import Pipeline

_LONGEST = 100
_TEXT = '''# Generated from the arguments of `Pipeline`: do not edit.

import os
from collections.abc import Callable, Sequence
from typing import (
    Any,
    Concatenate,
    Generic,
    Protocol,
    TypeAlias,
    TypedDict,
    Unpack,
    overload,
)

from typing_extensions import ParamSpec

from headrace.graph.data_node import DataNode
from headrace.pipeline.pipeline import Pipeline
from headrace.profiling.profile import Profile
from headrace.types import DataTypeLike, OperatorConcurrency, StreamPolicy

class Undecorated:
    """Stands for the function that `pipeline_def` is called without, if with parentheses."""

Parameters = ParamSpec("Parameters", default=[Undecorated])
_P = ParamSpec("_P", default=[Undecorated])
_Q = ParamSpec("_Q")

class _Array(Protocol):
    def __array__(self) -> Any: ...

PipelineOutputs: TypeAlias = DataNode | _Array | float | tuple[DataNode | _Array | float, ...]
"""What a definition may return."""

class PipelineArguments(TypedDict, total=False):
    """The arguments of `Pipeline`."""

{arguments}

class PipelineDefinition(Generic[_P]):
    """A function that `pipeline_def` decorated: called, it makes a pipeline.

    Or `pipeline_def` with its arguments, which takes the function. So it is not overloaded itself:
    what is wrong with its arguments is said in a line, and the function keeps its type.
    """

    __name__: str

    @overload
    def __call__(  # type: ignore[overload-overlap]
        self: PipelineDefinition[[Undecorated]], fn: Callable[_Q, PipelineOutputs], /
    ) -> PipelineDefinition[_Q]: ...

    # Of a function without arguments.
    @overload
    def __call__(
        self: PipelineDefinition[[]],
        *,
        enable_conditionals: bool = False,
        **settings: Unpack[PipelineArguments],
    ) -> Pipeline: ...
    # With the function's own arguments.
    @overload
    def __call__(self, *args: _P.args, **kwargs: _P.kwargs) -> Pipeline: ...
    # With one of the pipeline's, and any other.
{calls}
    # In a class.
    @overload
    def __get__(self, instance: None, owner: type) -> PipelineDefinition[_P]: ...
    @overload
    def __get__(
        self: PipelineDefinition[Concatenate[Any, _Q]], instance: object, owner: type
    ) -> PipelineDefinition[_Q]: ...
'''


_NAMED = (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY)


def definition_files(package: Path) -> dict[Path, str]:
    """Text of the stub, by path, where `package` is the folder of ``headrace``."""
    arguments = [p for p in signature(Pipeline).parameters.values() if p.kind in _NAMED]
    settings = [*((p.name, p.annotation) for p in arguments), ("enable_conditionals", "bool")]
    text = _TEXT.format(
        arguments="\n".join(f"    {p.name}: {p.annotation}" for p in arguments),
        calls="\n".join(f"    @overload\n{_call(*setting)}" for setting in settings),
    )
    return {package / "pipeline" / "definition_types.pyi": text}


def _call(name: str, annotation: str) -> str:
    parameters = ("self", "*args: Any", f"{name}: {annotation}", "**kwargs: Any")
    head, end = "    def __call__(", ") -> Pipeline: ..."
    line = f"{head}{', '.join(parameters)}{end}"
    if len(line) <= _LONGEST:
        return line
    line = f"        {', '.join(parameters)}"
    if len(line) > _LONGEST:
        line = "\n".join(f"        {parameter}," for parameter in parameters)
    return f"{head}\n{line}\n    {end}"
