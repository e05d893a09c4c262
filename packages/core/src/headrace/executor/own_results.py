"""Checks of what the program's own operators make: the steps that follow go by plans and types.

A kernel that is told of more rows than there are would read memory that is not the sample's.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import DataTypeError, ShapeError
from headrace.tensors.rows import Rows
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.operators.support.contexts import ChunkContext, SampleContext
    from headrace.operators.support.schema import Spec

Function = Callable[..., Any]


def checking(function: Function, specs: Sequence[Spec], *, chunked: bool) -> Function:
    """Return `cpu`, or `cpu_chunk`, of an operator with checks of its results.

    It raises `DataTypeError` or `ShapeError` where they are not of the types that `infer` gave, or
    not of the shapes that `plan` gave.
    """
    dtypes = [storage_dtype(spec.dtype) for spec in specs]

    @functools.wraps(function)
    def checked_one(c: SampleContext, *inputs: Any) -> Any:
        result = function(c, *inputs)
        for k, (value, dtype) in enumerate(zip(_outputs(result), dtypes, strict=False)):
            _check(value, dtype, c.planned_shape(k))
        return result

    @functools.wraps(function)
    def checked_several(c: ChunkContext, *inputs: Any) -> Any:
        result = function(c, *inputs)
        for k, (values, dtype) in enumerate(zip(_outputs(result), dtypes, strict=False)):
            for place, value in enumerate(values if isinstance(values, Rows) else ()):
                _check(value, dtype, c.planned_shape(place, k))
        return result

    return checked_several if chunked else checked_one


def type_error(made: DTypeLike, declared: DTypeLike) -> DataTypeError:
    """The error of an operator whose output is of another type than it has said."""
    return DataTypeError(
        f"The operator made elements of type {np.dtype(made)} where its declaration says "
        f"{np.dtype(declared)}; its `infer` has to tell the type, or the values be converted."
    )


def _outputs(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def _check(value: Any, dtype: np.dtype, planned: tuple[int, ...] | None) -> None:
    """Check a sample; lazy values are the library's own."""
    if not isinstance(value, np.ndarray):
        return
    if value.dtype != dtype:
        raise type_error(value.dtype, dtype)
    if planned is not None and value.shape != tuple(planned):
        raise ShapeError(
            f"The operator made a sample of shape {value.shape} where its `plan` says "
            f"{tuple(planned)}. What follows goes by the plan; an operator whose shapes show only "
            "in its results has none."
        )
