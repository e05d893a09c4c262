"""`ExternalSource`: data of the user's own, one tensor or batch at a time."""

from __future__ import annotations

import inspect
import traceback
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    EndOfData,
    MisusedArgumentError,
    UsageError,
)
from headrace.experimental.dynamic.batches import Batch, as_batch
from headrace.experimental.dynamic.capture.loops import Recorder, open_loop
from headrace.experimental.dynamic.contexts import EvalContext
from headrace.experimental.dynamic.devices import DeviceLike
from headrace.experimental.dynamic.devices import device as as_device
from headrace.experimental.dynamic.dtypes import DType
from headrace.experimental.dynamic.dtypes import dtype as as_dtype
from headrace.experimental.dynamic.modes import THREAD
from headrace.experimental.dynamic.sizes import checked_size
from headrace.experimental.dynamic.tensors import Tensor, as_tensor
from headrace.experimental.dynamic.values import ValueReference
from headrace.operators.support.external.callback import cycle_policy, kind_of
from headrace.types import DataTypeLike

_CALLS, _CAPTURED = "calls", "captured loops"


class ExternalSource:
    """Data from a function or an iterable of the user's own.

    Each call takes the next element. What is no batch becomes a `Tensor`, lists too; a batch is
    returned as a `Batch`.

    Parameters
    ----------
    source
        A function without parameters, an iterable, or a generator function. The function ends the
        data by raising `StopIteration`.
    num_outputs
        Number of outputs; where there are several, `source` gives a tuple or a list of so many.
    cycle
        Action at the end of an iterable: ``"no"``, `False` or `None` stops for good,
        ``"quiet"`` or `True` goes on with the first element, ``"raise"`` stops and goes on with the
        first element at the next call.
    device
        Where the data is wanted.
    layout
        Layout of the outputs: a string for all, or one for each.
    dtype
        Element type of the outputs, to which they are converted: one for all, or one for each.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `source` is none of these, a function that takes arguments, or does not go with `cycle`;
        if there is no output, or not one `layout` or `dtype` for each.
    """

    def __init__(
        self,
        source: Callable[[], Any] | Iterable[Any],
        num_outputs: int = 1,
        *,
        cycle: str | bool | None = None,
        device: DeviceLike | None = "cpu",
        layout: str | Sequence[str | None] | None = None,
        dtype: DataTypeLike | Sequence[DataTypeLike | None] | None = None,
    ) -> None:
        if isinstance(num_outputs, bool) or not hasattr(num_outputs, "__index__"):
            raise ArgumentTypeError(f"`num_outputs` is an integer, got {num_outputs!r}.")
        if num_outputs < 1:
            raise ArgumentValueError(f"`num_outputs` is {num_outputs}; it must be at least 1.")
        self._num_outputs = int(num_outputs)
        self._cycle = cycle_policy(cycle)
        self._iterates = kind_of(source, cycle) == "iterable"
        if not self._iterates and _takes_arguments(source):
            raise ArgumentValueError(
                "`source` takes arguments; in dynamic mode it must have no parameters."
            )
        self._source: Any = source
        self._iterator: Iterator[Any] | None = self._begun() if self._iterates else None
        self._device = device
        self._layouts = self._for_each(layout, "layout", str)
        self._dtypes = self._for_each(dtype, "dtype", (DType, str, type))
        self._pulled: deque[_Element] = deque()
        """Elements that a captured loop has taken ahead."""
        self._loop: weakref.ref[Recorder] | None = None
        self._use = ""
        """`_CALLS` or `_CAPTURED`, as long as there cannot be both."""

    def _for_each(self, value: Any, name: str, single: Any) -> list[Any]:
        if isinstance(value, (list, tuple)) and not isinstance(value, single):
            if len(value) != self._num_outputs:
                raise ArgumentValueError(
                    f"`{name}` has {len(value)} elements, expected a sequence of size "
                    f"{self._num_outputs}: one for each output."
                )
            return list(value)
        return [value] * self._num_outputs

    def _begun(self) -> Iterator[Any]:
        source = self._source
        return iter(source() if inspect.isgeneratorfunction(source) else source)

    # -- elements --------------------------------------------------------------------------------

    def __call__(self, *, batch_size: int | None = None) -> Any:
        """Take the next element.

        Parameters
        ----------
        batch_size
            Number of samples. A `Tensor` becomes a batch whose samples are all the same; a batch
            must have that size. In a captured loop over something else it is the loop's, unless
            another one is given.

        Returns
        -------
        Tensor, Batch, or a tuple of as many of one of them as there are outputs.

        Raises
        ------
        StopIteration
            At the end of the data.
        ArgumentValueError, ArgumentTypeError
            If the element has not as many parts as there are outputs, not the size asked for, or
            some of them are batches and some are not.
        UsageError
            If a loop over `captured` is open or came to its end, or the data ends in a captured
            loop over something else.
        """
        self._begin(_CALLS)
        loop = THREAD.capture
        try:
            element = self._pulled.popleft().value() if self._pulled else self._next()
        except StopIteration as error:
            if loop is None or not loop.is_active:
                raise
            raise UsageError(
                "This ExternalSource is exhausted before the captured loop that it is called in."
            ) from error
        if batch_size is None and loop is not None and loop.captures:
            batch_size = loop.size
        return self._converted(element, batch_size)

    def captured(self, batch_size: int, ctx: EvalContext | None = None) -> Iterator[Any]:
        """Loop over the data, tracing what the loop does in order to do it ahead.

        It is for sources what ``next_epoch(capture=True)`` is for readers; see
        `headrace.experimental.dynamic.capture`. Elements are taken some steps ahead. Those that
        are not used, because the loop is left, come first in the next loop or call. While a loop
        is open, another one with the same `batch_size` goes on with it.

        Parameters
        ----------
        batch_size
            Number of samples of every batch; a `Tensor` is repeated.
        ctx
            The context that works ahead; the current one when not given.

        Raises
        ------
        UsageError
            If the source was called before.
        """
        if batch_size is None:
            raise ArgumentValueError("`captured` needs a `batch_size`.")
        self._begin(_CAPTURED)
        return open_loop(self, _SourceElements(self, batch_size), batch_size, ctx)

    def _begin(self, use: str) -> None:
        if self._use and self._use != use:
            raise UsageError(
                "This ExternalSource was used eagerly, by calls, and cannot be captured any more."
                if use == _CAPTURED
                else "This ExternalSource is already used in a capture-mode loop; its data is used "
                "through .captured() only, and not by calls."
            )
        self._use = use

    def _next(self) -> Any:
        """The next element as it is."""
        if not self._iterates:
            return self._source()
        iterator = self._iterator
        if iterator is None:
            iterator = self._iterator = self._begun()
        try:
            return next(iterator)
        except StopIteration:
            if self._cycle == "no":
                raise EndOfData("The source has no more data.") from None
        if self._cycle == "raise":
            self._iterator = None
            raise EndOfData("The source is at its end; the next call begins anew.")
        self._iterator = self._begun()
        try:
            return next(self._iterator)
        except StopIteration:
            raise EndOfData("The source has no data.") from None

    def _converted(self, element: Any, batch_size: int | None) -> Any:
        """The outputs made of an element."""
        if batch_size is not None:
            batch_size = checked_size(batch_size, least=0)
        if self._num_outputs == 1:
            return self._output(element, 0, batch_size)
        if not isinstance(element, (list, tuple)) or len(element) != self._num_outputs:
            found = f"{len(element)}" if isinstance(element, (list, tuple)) else type(element)
            raise ArgumentValueError(
                f"`source` gave {found}, expected {self._num_outputs} outputs: a tuple has one "
                "element for each."
            )
        outputs = tuple([self._output(part, k, batch_size) for k, part in enumerate(element)])
        if len({isinstance(output, Batch) for output in outputs}) > 1:
            raise ArgumentTypeError(
                "Some outputs of `source` are batches and some are not; `batch_size` makes "
                "batches of all."
            )
        return outputs

    def _output(self, part: Any, number: int, batch_size: int | None) -> Tensor | Batch:
        dtype, layout = self._dtypes[number], self._layouts[number]
        if dtype is not None:
            dtype = as_dtype(dtype)
        device = as_device(self._device)
        if not _is_batch(part):
            tensor = as_tensor(part, dtype=dtype, device=device, layout=layout)
            return tensor if batch_size is None else Batch.broadcast(tensor, batch_size)
        batch = as_batch(part, dtype=dtype, layout=layout)
        if batch_size is not None and batch.batch_size != batch_size:
            raise MisusedArgumentError(
                f"`source` gave a batch of {batch.batch_size} samples, expected batch size "
                f"{batch_size}."
            )
        return batch if device is None else batch.to_device(device)

    def _element(self, ahead: int) -> _Element:
        """An element that is still to come."""
        pulled = self._pulled
        while len(pulled) <= ahead:
            if pulled and pulled[-1].error is not None:
                return pulled[-1]  # whatever comes after an error comes after it
            try:
                pulled.append(_Element(self._next(), None))
            except BaseException as error:
                pulled.append(_Element(None, error if ahead == 0 else _kept(error)))
        return pulled[ahead]


def _kept(error: BaseException) -> BaseException:
    """An error that waits for its step: as text, not with frames, which would keep the loop alive
    that the program has left.
    """
    places = traceback.format_list(traceback.extract_tb(error.__traceback__)[1:])
    if not isinstance(error, StopIteration):
        error.add_note(f"The source was read ahead, and raised this here:\n{''.join(places)}")
    return error.with_traceback(None)


class _Element:
    """An element of a source, or the error that came in its place; and the outputs made of it."""

    __slots__ = ("_made", "_size", "_value", "error")

    def __init__(self, value: Any, error: BaseException | None) -> None:
        self._value = value
        self.error = error
        self._made: Any = None
        self._size: int | None = None
        """Number of samples of the outputs that were made."""

    def value(self) -> Any:
        """The element as it is."""
        if self.error is not None:
            raise self.error
        return self._value

    def outputs(self, source: ExternalSource, size: int) -> Any:
        """The outputs, or the error in their place."""
        if self.error is not None:
            return self.error
        if self._size != size:
            try:
                self._made = source._converted(self._value, size)
            except Exception as error:
                self._made = error
            self._size = size
        return self._made


class _SourceElements:
    """The elements of a source as batches of one size, and those to come."""

    def __init__(self, source: ExternalSource, size: int) -> None:
        self._source = source
        self._size = size

    def __next__(self) -> Any:
        found = self._source._element(0).outputs(self._source, self._size)
        self._source._pulled.popleft()
        if isinstance(found, BaseException):
            raise found
        return found

    def unbind(self) -> None:
        self._source._use = ""

    leave = unbind

    def peek(self, ahead: int) -> tuple[ValueReference, ...] | None:
        found = self._source._element(ahead).outputs(self._source, self._size)
        if isinstance(found, BaseException):
            return None
        outputs = found if isinstance(found, tuple) else (found,)
        return tuple([output._reference for output in outputs])


def _takes_arguments(source: Any) -> bool:
    try:
        parameters = inspect.signature(source).parameters
    except (TypeError, ValueError):  # builtins that do not say
        return False
    return bool(parameters)


def _is_batch(value: Any) -> bool:
    return isinstance(value, Batch) or (
        hasattr(value, "as_tensor") and hasattr(value, "is_dense_tensor")
    )
