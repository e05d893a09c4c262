"""Shared code of operators that call a user's function with arrays.

One iteration comes after the other, and the samples of a batch in their order: so functions may
remember something, and a result never depends on threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentTypeError, BadSamplesError, MisusedArgumentError
from headrace.operators.support.argument_types import BoolArg, IntArg, ObjectArg
from headrace.operators.support.current_stream import working_on
from headrace.operators.support.function_results import (
    GpuArray,
    OutputKind,
    as_outputs,
    check_lists,
    layouts_of,
)
from headrace.operators.support.operator import BatchOperator
from headrace.operators.support.runtime_typed_batch import RuntimeTypedBatch
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tracebacks import raised_at
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.operators.support.batch_context import BatchContext
    from headrace.tensors.gpu.batch import DeviceBatch
    from headrace.tensors.gpu.queue import Queue


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
        Arg("num_outputs", IntArg, 1, "Number of outputs, 0 or more."),
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
    "inputs": (Input("data", "Input of the function.", optional=True),),
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
"""Parts shared by the declarations of such operators."""


class FunctionCaller(BatchOperator):
    """Calls a function with arrays of some library; sub-classes say of which."""

    may_travel = False
    """True if the function may be called in worker processes."""

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
        self._layouts = layouts_of(self.args.output_layouts, count)
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
        """Context manager around the calls for a batch on the GPU."""
        return queue.runtime.using(queue.stream)

    def shown_on_gpu(self, queue: Queue, batch: DeviceBatch, spec: Spec) -> Iterable[Any]:
        """The samples of a batch on the GPU as the function gets them."""
        raise NotImplementedError

    def taken_on_gpu(self, queue: Queue, value: Any) -> GpuArray:
        """A sample that the function has returned on the GPU."""
        raise NotImplementedError

    @property
    def takes_batches(self) -> bool:
        """True if the function is called once for a batch."""
        return self._batches

    # -- the calls ---------------------------------------------------------------------------------

    def cpu(self, c: Any, *samples: Sequence[np.ndarray]) -> None:
        """Call the function for a batch in host memory."""
        kinds = [OutputKind(output, layout) for output, layout in enumerate(self._layouts)]

        def keep(index: int, values: Sequence[np.ndarray]) -> None:
            for output, (kind, array) in enumerate(zip(kinds, values, strict=True)):
                if kind.check(array.dtype, array.ndim):
                    c.declare(kind.spec)
                np.copyto(c.empty(index, array.shape, array.dtype, output), array)

        calls = None if c.functions is None else c.functions.calls(c, self)
        if calls is None:
            calls = self.calls([c.own(position) for position in range(len(samples))], c.size)
        self._keep_all(c, calls, keep, c.fail)

    def calls(self, inputs: list[list[np.ndarray]], size: int) -> Iterator[CallResult]:
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

        with working_on(queue.stream), self.running(queue):
            inputs = [
                list(self.shown_on_gpu(queue, batch, spec))
                for batch, spec in zip(batches, self._inputs, strict=True)
            ]
            calls = self._calls(inputs, c.size, lambda value: self.taken_on_gpu(queue, value))
            self._keep_all(c, calls, keep, fail)
            return tuple(self._late(queue, k, values) for k, values in enumerate(found))

    def _calls(
        self, inputs: list[list[Any]], size: int, taken: Callable[[Any], Any]
    ) -> Iterator[CallResult]:
        """Call the function for samples or for the batch, one after the other."""
        function, count = self.args.function, self.args.num_outputs
        results: Sequence[Any] = ()
        if self._batches:
            try:
                results = as_outputs(function(*inputs), count)
                check_lists(results, size)
            except Exception as error:
                yield CallResult(None, (), error, raised_at(error))
                return
        for index in range(size):
            try:
                if self._batches:
                    values = tuple(each[index] for each in results)
                else:
                    values = as_outputs(function(*[each[index] for each in inputs]), count)
                call = CallResult(index, tuple(map(taken, values)))
            except Exception as error:
                call = CallResult(index, (), error, raised_at(error))
            yield call

    def _keep_all(
        self,
        c: Any,
        calls: Iterable[CallResult],
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
        from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch

        kind = OutputKind(output, self._layouts[output])
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


class CallResult(NamedTuple):
    """Results of a function for one sample."""

    sample: int | None
    """Index in the batch; `None` where a call for the whole batch has failed."""
    values: Sequence[Any]
    """Its outputs."""
    error: Exception | None = None
    raised: str = ""
    """The line of the user's that the error came from."""
