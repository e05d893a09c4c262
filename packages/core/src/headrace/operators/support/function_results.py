"""Results that users' functions may return, and what is known of them then."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DataTypeError,
    LayoutError,
    MisusedArgumentError,
    ShapeError,
)
from headrace.operators.support.schema import Spec
from headrace.tensors.interop import dali_type

if TYPE_CHECKING:
    from headrace.tensors.gpu.queue import Queue


class GpuArray(NamedTuple):
    """C-contiguous memory on the GPU that a function has returned."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    owners: tuple[Any, ...]

    @classmethod
    def of(cls, value: Any, queue: Queue) -> GpuArray:
        """The memory of an array of any library, after whose work the queue's stream comes."""
        from headrace.tensors.gpu.foreign import on_gpu

        found = on_gpu(value, queue.stream)
        return cls(found.address, found.shape, found.dtype, found.access.owners)


class OutputKind:
    """Properties that all samples of an output share, taken from the first one."""

    def __init__(self, output: int, layout: str) -> None:
        self._output = output
        self._layout = layout
        self.dtype: Any = None
        self.ndim = -1

    def check(self, dtype: np.dtype, ndim: int) -> bool:
        """Check one sample; return whether it is the first."""
        if self.dtype is None:
            if self._layout and len(self._layout) != ndim:
                raise LayoutError(
                    f'The layout "{self._layout}" (`output_layouts`) has not one letter for each '
                    f"of the {ndim} axes that the function has returned for output {self._output}."
                )
            dali_type(dtype)
            self.dtype, self.ndim = dtype, ndim
            return True
        if dtype != self.dtype:
            raise DataTypeError(
                f"The function returned elements of type {dtype} for output {self._output}, and "
                f"of {self.dtype} for a sample before; all samples of a batch have one type. "
                "Convert them in the function."
            )
        if ndim != self.ndim:
            raise ShapeError(
                f"The function returned {ndim} axes for output {self._output}, and {self.ndim} for "
                "a sample before; all samples of a batch have as many axes. Reshape them in the "
                "function."
            )
        return False

    @property
    def spec(self) -> Spec:
        """Spec of the output, as far as it is known now."""
        return Spec(dali_type(self.dtype), self.ndim, self._layout)


def not_an_array(value: Any, expected: str, hint: str = "") -> ArgumentTypeError:
    """The error for a function that returns something else than arrays of some kind."""
    return ArgumentTypeError(
        f"The function returned `{type(value).__name__}` where {expected} is expected. "
        f"{hint}".rstrip()
    )


def as_outputs(result: Any, count: int) -> tuple[Any, ...]:
    """Split what a function has returned into outputs."""
    if count == 0:
        if result is not None:
            raise ArgumentTypeError(
                f"The function returned a {type(result).__name__}, but `num_outputs` is 0: it has "
                "to return None."
            )
        return ()
    if result is None:
        raise ArgumentTypeError(
            f"The function returned None, where {count} output{'s' * (count > 1)} "
            f"{'are' if count > 1 else 'is'} expected. Return {'them' if count > 1 else 'it'}, or "
            "give `num_outputs=0`."
        )
    if not isinstance(result, tuple):
        if count == 1:
            return (result,)
        raise ArgumentTypeError(
            f"The function returned a {type(result).__name__}; what it returns must be a tuple of "
            f"its {count} outputs."
        )
    if len(result) != count:
        raise ArgumentValueError(
            f"Unexpected number of outputs: got {len(result)} in the tuple that the function "
            f"returned, expected {count}, which is `num_outputs`."
        )
    return result


def check_lists(results: Sequence[Any], size: int) -> None:
    """Check that a function which is given a batch returns a list for each output."""
    for output, values in enumerate(results):
        if not isinstance(values, (list, tuple)):
            raise ArgumentTypeError(
                f"The function returned a {type(values).__name__} for output {output}; with "
                "`batch_processing` it has to return a list with an array for each sample."
            )
        if len(values) != size:
            raise ShapeError(
                f"The function returned a list of {len(values)} samples for output {output}, but "
                f"the batch has {size}."
            )


def layouts_of(given: Any, count: int) -> list[str]:
    """The layout of each output, empty where it has none."""
    if given is None:
        return [""] * count
    if isinstance(given, str):
        return [given] * count
    if not isinstance(given, (list, tuple)) or not all(isinstance(k, str) for k in given):
        raise ArgumentTypeError(
            f"`output_layouts` is {given!r}; expected a layout, or a list of layouts."
        )
    if len(given) > count:
        raise MisusedArgumentError(
            f"The length of `output_layouts`, {len(given)}, is greater than `num_outputs`, {count}."
        )
    return [*given, *[""] * (count - len(given))]
