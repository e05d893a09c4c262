"""What operators have in common that call a function of the user's with arrays.

One iteration comes behind the other, and the samples of a batch in their order: so functions may
remember something, and a result never depends on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BadSamplesError,
    DataTypeError,
    LayoutError,
    MisusedArgumentError,
    ShapeError,
)
from penstock.operators.support.argument_types import BoolArg, IntArg, ObjectArg
from penstock.operators.support.operator import BatchOperator
from penstock.operators.support.runtime_typed_batch import RuntimeTypedBatch
from penstock.operators.support.schema import REQUIRED, Arg, Input, Spec
from penstock.tensors.interop import dali_type
from penstock.tracebacks import raised_at
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.operators.support.batch_context import BatchContext
    from penstock.tensors.gpu.batch import DeviceBatch
    from penstock.tensors.gpu.queue import Queue


def function_args(arrays: str, *, batch_processing: bool | None = False) -> tuple[Arg, ...]:
    """The arguments of an operator whose function is handed `arrays`.

    Without a default for `batch_processing`, it is called for batches.
    """
    return (
        Arg(
            "function",
            ObjectArg,
            REQUIRED,
            f"What is called, with {arrays}, one for each input. It returns as many as there are "
            "outputs: several as a tuple, none as `None`.",
        ),
        Arg("num_outputs", IntArg, 1, "How many outputs there are, 0 or more."),
        Arg(
            "batch_processing",
            BoolArg,
            batch_processing,
            f"Call the function once for a batch, with a list of {arrays} for each input. It "
            "returns such a list for each output. If false, it is called for each sample"
            f"{'.' if batch_processing is not None else '; it is true unless given.'}",
        ),
        Arg(
            "output_layouts",
            ObjectArg,
            None,
            "Layout of the samples of all outputs, as a string, or a list with one for each of "
            "the first outputs. Without it, outputs have none.",
        ),
    )


TRAITS: dict[str, Any] = {
    "inputs": (Input("data", "What the function gets.", optional=True),),
    "num_outputs": lambda args: max(int(args["num_outputs"]), 0),
    "variadic": True,
    "max_inputs": 256,
    "in_order": True,
    "data_dependent_type": True,
    "calls_user": True,
    "is_kept": True,
    "dynamic": False,
    "positional": ("function", "num_outputs", "device", "batch_processing"),
}
"""What declarations of such operators say."""


class FunctionCaller(BatchOperator):
    """Calls a function with arrays of some library; sub-classes say of which."""

    may_travel = False
    """Whether the function may be called in worker processes."""

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        """Nothing is known before the function has returned."""
        count: int = self.args.num_outputs
        if count < 0:
            raise MisusedArgumentError(f"`num_outputs` is {count}; it can be 0 or more.")
        if not callable(self.args.function):
            raise ArgumentTypeError(
                f"`function` is a {type(self.args.function).__name__}, which cannot be called."
            )
        self._batches = self.args.batch_processing in (True, None)
        self._layouts = _layouts(self.args.output_layouts, count)
        self._inputs = inputs
        return (Spec(DALIDataType.NO_TYPE, None),) * count

    # -- what sub-classes say of their arrays ------------------------------------------------------

    def shown(self, row: np.ndarray) -> Any:
        """A sample in host memory as the function gets it."""
        return row

    def taken(self, value: Any) -> np.ndarray:
        """A sample that the function has returned on the CPU."""
        raise NotImplementedError

    def running(self, queue: Queue) -> AbstractContextManager[Any]:
        """What is around the calls for a batch on the GPU."""
        return queue.runtime.using(queue.stream)

    def shown_on_gpu(self, queue: Queue, batch: DeviceBatch, spec: Spec) -> Iterable[Any]:
        """The samples of a batch on the GPU as the function gets them."""
        raise NotImplementedError

    def taken_on_gpu(self, queue: Queue, value: Any) -> GpuArray:
        """A sample that the function has returned on the GPU."""
        raise NotImplementedError

    @property
    def takes_batches(self) -> bool:
        """Whether the function is called once for a batch."""
        return self._batches

    # -- the calls ---------------------------------------------------------------------------------

    def cpu(self, c: Any, *samples: Sequence[np.ndarray]) -> None:
        """Call the function for a batch in host memory."""
        kinds = [_Kind(output, layout) for output, layout in enumerate(self._layouts)]

        def keep(index: int, values: Sequence[np.ndarray]) -> None:
            for output, (kind, array) in enumerate(zip(kinds, values, strict=True)):
                if kind.check(array.dtype, array.ndim):
                    c.declare(kind.spec)
                np.copyto(c.empty(index, array.shape, array.dtype, output), array)

        calls = None if c.functions is None else c.functions.calls(c, self)
        if calls is None:
            calls = self.calls([c.own(position) for position in range(len(samples))], c.size)
        self._keep_all(c, calls, keep, c.fail)

    def calls(self, inputs: list[list[np.ndarray]], size: int) -> Iterator[Call]:
        """Call the function with samples in host memory, which become its own."""
        shown = [[self.shown(row) for row in rows] for rows in inputs]
        return self._calls(shown, size, self.taken)

    def gpu(self, c: BatchContext, *batches: DeviceBatch) -> tuple[RuntimeTypedBatch, ...]:
        """Call the function for a batch on the GPU, whose stream its work goes to."""
        queue = c.queue
        found: list[list[GpuArray]] = [[] for _ in range(self.args.num_outputs)]

        def keep(_index: int, values: Sequence[GpuArray]) -> None:
            for output, value in enumerate(values):
                found[output].append(value)

        def fail(error: Exception, index: int, raised: str = "") -> None:
            located = c.located(error, index, raised)
            located.__cause__ = error
            raise BadSamplesError({c.indices[index]: located})

        with self.running(queue):
            inputs = [
                list(self.shown_on_gpu(queue, batch, spec))
                for batch, spec in zip(batches, self._inputs, strict=True)
            ]
            calls = self._calls(inputs, c.size, lambda value: self.taken_on_gpu(queue, value))
            self._keep_all(c, calls, keep, fail)
            return tuple(self._late(queue, k, values) for k, values in enumerate(found))

    def _calls(
        self, inputs: list[list[Any]], size: int, taken: Callable[[Any], Any]
    ) -> Iterator[Call]:
        """Call the function for samples or for the batch, one after the other."""
        function, count = self.args.function, self.args.num_outputs
        results: Sequence[Any] = ()
        if self._batches:
            try:
                results = _as_outputs(function(*inputs), count)
                _check_lists(results, size)
            except Exception as error:
                yield Call(None, (), error, raised_at(error))
                return
        for index in range(size):
            try:
                if self._batches:
                    values = tuple(each[index] for each in results)
                else:
                    values = _as_outputs(function(*[each[index] for each in inputs]), count)
                call = Call(index, tuple(map(taken, values)))
            except Exception as error:
                call = Call(index, (), error, raised_at(error))
            yield call

    def _keep_all(
        self,
        c: Any,
        calls: Iterable[Call],
        keep: Callable[[int, Sequence[Any]], None],
        fail: Callable[..., None],
    ) -> None:
        """Hand on what the function has made of each sample."""
        for index, values, error, raised in calls:
            if index is None:
                assert error is not None
                raise c.located(error, None, raised) from error
            if error is not None:
                fail(error, index, raised)
                continue
            try:
                keep(index, values)
            except Exception as refused:
                fail(refused, index)

    def _late(self, queue: Queue, output: int, arrays: list[GpuArray]) -> RuntimeTypedBatch:
        """A copy of what the function has returned for one output, in one piece of memory."""
        from penstock.tensors.gpu.batch import DeviceBatch, StridedBatch

        kind = _Kind(output, self._layouts[output])
        for array in arrays:
            kind.check(array.dtype, len(array.shape))
        shapes = np.array([array.shape for array in arrays], np.int64)
        source = DeviceBatch(
            queue.runtime,
            tuple([owner for array in arrays for owner in array.owners]),
            np.array([array.address for array in arrays], np.uint64),
            shapes.reshape(len(arrays), kind.ndim),
            kind.dtype,
        )
        queue.keep(source)
        target = queue.empty(source.shapes, kind.dtype)
        queue.copy_strided(StridedBatch.of(source), target)
        return RuntimeTypedBatch(target, kind.spec)


class Call(NamedTuple):
    """What a function has made of a sample."""

    sample: int | None
    """Which of the batch; `None` where a call for the whole batch has failed."""
    values: Sequence[Any]
    """Its outputs."""
    error: Exception | None = None
    raised: str = ""
    """The line of the user's that the error came from."""


class GpuArray(NamedTuple):
    """C-contiguous memory on the GPU that a function has returned."""

    address: int
    shape: tuple[int, ...]
    dtype: np.dtype
    owners: tuple[Any, ...]

    @classmethod
    def of(cls, value: Any, queue: Queue) -> GpuArray:
        """The memory of an array of any library, behind whose work the queue's stream comes."""
        from penstock.tensors.gpu.foreign import on_gpu

        found = on_gpu(value, queue.stream)
        return cls(found.address, found.shape, found.dtype, found.access.owners)


class _Kind:
    """What all samples of an output have in common: those of its first one."""

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
        """What is known of the output now."""
        return Spec(dali_type(self.dtype), self.ndim, self._layout)


def not_an_array(value: Any, expected: str, hint: str = "") -> ArgumentTypeError:
    """The error for a function that returns something else than arrays of some kind."""
    return ArgumentTypeError(
        f"The function returned `{type(value).__name__}` where {expected} is expected. "
        f"{hint}".rstrip()
    )


def _as_outputs(result: Any, count: int) -> tuple[Any, ...]:
    """What a function has returned, output by output."""
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
            f"The function returned a {type(result).__name__}; it has to return its {count} "
            "outputs as a tuple."
        )
    if len(result) != count:
        raise ArgumentValueError(
            f"The function returned a tuple of {len(result)}, but `num_outputs` is {count}."
        )
    return result


def _check_lists(results: Sequence[Any], size: int) -> None:
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


def _layouts(given: Any, count: int) -> list[str]:
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
