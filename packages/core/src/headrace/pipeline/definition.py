"""`pipeline_def`: make a function that describes a graph into one that makes pipelines."""

from __future__ import annotations

import contextlib
import functools
import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, Unpack

from headrace.autograph.graph_branches import define
from headrace.autograph.selection import MARK
from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    did_you_mean,
)
from headrace.graph.user_line import stack_level
from headrace.pipeline.pipeline import Pipeline
from headrace.pipeline.settings import Settings
from headrace.tracebacks import public

if TYPE_CHECKING:
    # For type checkers only: the build writes a .pyi file of this module (packages/core/stubs).
    from headrace.pipeline.definition_types import (
        Parameters,
        PipelineArguments,
        PipelineDefinition,
        PipelineOutputs,
    )

_F = TypeVar("_F", bound=Callable[..., Any])
_SETTINGS = frozenset(name for name, f in Settings.__dataclass_fields__.items() if f.init)


def do_not_convert(func: _F) -> _F:
    """Mark `func` as plain Python: conditions in it, and in what it calls, are never on data.

    Raises
    ------
    ArgumentValueError
        If `func` was made by `pipeline_def`.
    """
    if getattr(func, "_is_pipeline_def", False):
        raise ArgumentValueError("Pipeline definition cannot be marked with @do_not_convert.")
    with contextlib.suppress(AttributeError, TypeError):  # builtins hold nothing to convert
        setattr(func, MARK, True)
    return func


def pipeline_def(
    fn: Callable[Parameters, PipelineOutputs] | None = None,
    *,
    enable_conditionals: bool = False,
    **pipeline_kwargs: Unpack[PipelineArguments],
) -> PipelineDefinition[Parameters]:
    """Decorate a function that returns a pipeline's outputs: calling it makes the pipeline.

    The decorated function takes its own arguments and those of `Pipeline`; what is given at the
    call wins over what is given to the decorator. To return several outputs, return a tuple.

    Parameters
    ----------
    fn
        The function, when the decorator is used without parentheses.
    enable_conditionals
        Let conditions be on data: `if`, conditional expressions, `and`, `or` and `not` choose for
        each sample. For that, the function and those that it calls are rewritten from their source.
    **pipeline_kwargs
        Arguments of `Pipeline`.
    """
    found: PipelineDefinition[Parameters] = decorated(
        fn, enable_conditionals, False, dict(pipeline_kwargs)
    )
    return found


def decorated(
    fn: Callable[..., Any] | None,
    enable_conditionals: bool,
    debug: bool,
    pipeline_kwargs: dict[str, Any],
) -> Any:
    """Return the result of `pipeline_def`; with `debug`, pipelines are in debug mode."""
    if fn is None:
        return lambda fn: decorated(fn, enable_conditionals, debug, pipeline_kwargs)
    unknown = pipeline_kwargs.keys() - _SETTINGS
    if unknown:
        question = did_you_mean(min(unknown), _SETTINGS)
        if unknown == {"debug"}:
            question = (
                " `headrace.pipeline.experimental.pipeline_def` takes it, and so does the call of "
                "what is decorated."
            )
        raise ArgumentTypeError(
            f"`pipeline_def` got an unexpected keyword argument: {', '.join(sorted(unknown))}."
            f"{question}"
        )
    if not callable(fn):
        raise ArgumentTypeError(f"`pipeline_def` decorates a function, got {fn!r}.")
    if getattr(fn, MARK, False):
        raise ArgumentValueError("Pipeline definition cannot be marked with @do_not_convert.")
    parameters = inspect.signature(fn).parameters
    own = frozenset(parameters)
    variadic = [p.name for p in parameters.values() if p.kind is p.VAR_KEYWORD]
    name = getattr(fn, "__name__", repr(fn))  # a functools.partial has none

    @public
    @functools.wraps(fn)
    def make(*args: Any, **kwargs: Any) -> Pipeline:
        if variadic:
            raise ArgumentTypeError(
                f"Using variadic keyword argument `**{variadic[0]}` in a pipeline definition is "
                f"not allowed: the arguments of `{name}` could not be told from those of the "
                "Pipeline."
            )
        conditional = kwargs.pop("enable_conditionals", enable_conditionals)
        debugs = debug if "debug" in own else kwargs.pop("debug", debug)
        for_pipeline = dict(pipeline_kwargs)
        for_function = {}
        for key, value in kwargs.items():
            if key in own:
                for_function[key] = value
                if key in _SETTINGS:
                    _warn_of_shadowing(name, key)
            elif key in _SETTINGS:
                for_pipeline[key] = value
            else:
                raise ArgumentTypeError(
                    f"`{name}` got an unexpected argument `{key}`: it is neither one of its own "
                    f"({', '.join(sorted(own)) or 'none'}) nor one of a Pipeline."
                    f"{did_you_mean(key, own | _SETTINGS)}"
                )
        if conditional:
            bound = functools.partial(define, fn, *args, **for_function)
        else:
            bound = functools.partial(fn, *args, **for_function)
        if debugs:
            from headrace.pipeline.debug import PipelineDebug

            return PipelineDebug(bound, **for_pipeline)
        pipeline = Pipeline(**for_pipeline)
        with pipeline:
            result = bound()
            if result is None:
                result = ()
            pipeline.set_outputs(*(result if isinstance(result, tuple) else (result,)))
        return pipeline

    make._is_pipeline_def = True  # type: ignore[attr-defined]
    for method in ("build", "run"):
        setattr(make, method, public(functools.partial(_refuse, name, method)))
    return make


def _refuse(name: str, method: str, *_: Any, **__: Any) -> NoReturn:
    raise ArgumentTypeError(
        f"`{name}` is the definition of a pipeline; calling it makes one: `{name}(...).{method}()`."
    )


def _warn_of_shadowing(function: str, argument: str) -> None:
    warnings.warn(
        f"The argument `{argument}` of `{function}` shadows that of the Pipeline, which keeps what "
        "the decorator says.",
        UserWarning,
        stacklevel=stack_level(),
    )
