"""The operators of `numba_function`: functions compiled by Numba, for samples or batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    DataTypeError,
    GpuNotAvailableError,
    MisusedArgumentError,
    ShapeError,
)
from headrace.operators.support.argument_types import BoolArg, ObjectArg
from headrace.operators.support.operator import BatchOperator, Operator, operator
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.types import DALIDataType, as_data_type, storage_dtype

if TYPE_CHECKING:
    from headrace.operators.support.batch_context import BatchContext
    from headrace.tensors.gpu.batch import DeviceBatch

_MOST = 6


class _Compiled(BatchOperator):
    """Shared code of both ways to call a compiled function."""

    same_on_cpu = False

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        """Check inputs against their declared types, and compile."""
        args = self.args
        types = [as_data_type(t) for t in _listed("out_types", args.out_types)]
        ndims = _listed("outs_ndim", args.outs_ndim)
        _check_inputs(
            inputs, _listed("in_types", args.in_types), _listed("ins_ndim", args.ins_ndim)
        )
        if len(types) != len(ndims) or len(types) > _MOST:
            raise MisusedArgumentError(
                f"`out_types` has {len(types)} types and `outs_ndim` {len(ndims)} numbers; there "
                f"is one of each for every output, and there are at most {_MOST}."
            )
        for kind in (*types, *(spec.dtype for spec in inputs)):
            if kind == DALIDataType.FLOAT16:
                raise DataTypeError("Numba knows no FLOAT16 on the CPU; `fn.cast` converts.")
        self._dtypes = [storage_dtype(t) for t in types]
        self._ndims = [int(n) for n in ndims]
        self._run = _compile(args.run_fn)
        self._setup = None if args.setup_fn is None else _compile(args.setup_fn)
        if self._setup is None:
            found = [spec.ndim for spec in inputs[: len(types)]]
            if found != self._ndims:
                raise MisusedArgumentError(
                    f"`outs_ndim` is {self._ndims}, and without `setup_fn` outputs have the shapes "
                    f"of the inputs in their places, which have {found} axes. Give a `setup_fn`."
                )
        return tuple(Spec(t, n) for t, n in zip(types, self._ndims, strict=True))

    def _shapes(self, inputs: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Shapes of the outputs, int64 ``(samples, ndim)`` each, from those of the inputs."""
        if self._setup is None:
            return list(inputs[: len(self._ndims)])
        count = len(inputs[0])
        shapes = tuple(np.zeros((count, ndim), np.int64) for ndim in self._ndims)
        self._setup(shapes, tuple(inputs))
        for output, found in enumerate(shapes):
            if (found < 0).any():
                raise ShapeError(f"`setup_fn` gave output {output} a negative extent.")
        return list(shapes)

    def _host_shapes(self, samples: Sequence[Sequence[np.ndarray]]) -> list[np.ndarray]:
        return self._shapes(
            [
                np.array([row.shape for row in rows], np.int64).reshape(len(rows), rows[0].ndim)
                for rows in samples
            ]
        )

    def gpu(self, c: BatchContext, *batches: DeviceBatch) -> Any:
        """Launch the function, a kernel, once for each sample."""
        cuda = _cuda()
        if self.args.batch_processing:
            raise MisusedArgumentError("`batch_processing` is not possible on the GPU.")
        grid = [_three(name, getattr(self.args, name)) for name in ("blocks", "threads_per_block")]
        kernel = cuda.jit(getattr(self.args.run_fn, "py_func", self.args.run_fn))
        queue = c.queue
        shapes = self._shapes([np.array(batch.shapes, np.int64) for batch in batches])
        outputs = [queue.empty(s, d) for s, d in zip(shapes, self._dtypes, strict=True)]
        stream = cuda.external_stream(queue.stream)
        for index in range(c.size):
            arrays = [cuda.as_cuda_array(b.array(index)) for b in (*outputs, *batches)]
            try:
                kernel[grid[0], grid[1], stream](*arrays)
            except Exception as error:
                raise c.located(error, index) from error
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


class SampleFunction(_Compiled):
    """Calls the function for each sample, in all workers."""

    def reduce(self, c: Any, *samples: Sequence[np.ndarray]) -> np.ndarray:
        """Shapes of all outputs, int64 ``(places, outputs, axes)``."""
        table = np.zeros((max(c.indices) + 1, len(self._ndims), max(self._ndims, default=0)), int)
        for output, shapes in enumerate(self._host_shapes(samples)):
            table[list(c.indices), output, : shapes.shape[1]] = shapes
        return table

    def apply(self, c: Any, *inputs: np.ndarray) -> Any:
        """Work on one sample."""
        *rows, table = inputs
        shapes = table[c.index].tolist()
        outputs = [
            c.empty(tuple(shapes[k][:ndim]), self._dtypes[k], k)
            for k, ndim in enumerate(self._ndims)
        ]
        self._run(*outputs, *map(_plain, rows))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)


@operator(
    "_numba_function",
    inputs=(Input("data", "What the function reads."),),
    args=(
        Arg(
            "run_fn",
            ObjectArg,
            REQUIRED,
            "What is compiled and called, with arrays of the outputs, to be written to, and of the "
            "inputs. On the GPU it is a kernel.",
        ),
        Arg("out_types", ObjectArg, REQUIRED, "Element types of the outputs."),
        Arg("in_types", ObjectArg, REQUIRED, "Element types of the inputs."),
        Arg("outs_ndim", ObjectArg, REQUIRED, "How many axes the outputs have."),
        Arg("ins_ndim", ObjectArg, REQUIRED, "How many axes the inputs have."),
        Arg(
            "setup_fn",
            ObjectArg,
            None,
            "What is compiled and called once for a batch, with an array of shapes, int64 "
            "`(samples, ndim)`, for each output, to be written to, and for each input. Without "
            "it, outputs have the shapes of the inputs in their places.",
        ),
        Arg(
            "batch_processing",
            BoolArg,
            False,
            "Call `run_fn` once for a batch, with a list of arrays for each output and input.",
        ),
        Arg("blocks", ObjectArg, None, "Blocks of the grid on the GPU: three numbers."),
        Arg("threads_per_block", ObjectArg, None, "Threads of a block on the GPU: three numbers."),
    ),
    num_outputs=lambda args: len(_listed("out_types", args["out_types"])),
    output_docs=("What the function writes.",),
    variadic=True,
    max_inputs=_MOST,
    hidden=True,
    dynamic=False,
    is_kept=True,
    class_name="NumbaFunction",
    written="numba_function",
    positional=(
        *("run_fn", "out_types", "in_types", "outs_ndim", "ins_ndim", "setup_fn", "device"),
        *("batch_processing", "blocks", "threads_per_block"),
    ),
)
class NumbaFunction(_Compiled):
    """Compiles a Python function by Numba, without the interpreter, and calls it.

    Samples are shared among all threads of the pipeline, which do not hold the interpreter while
    they are in the function; with `batch_processing`, one thread calls it. What it raises is an
    error of the pipeline.

    The operator is kept in the pipeline also where nothing uses its outputs.
    """

    @classmethod
    def for_arguments(cls, args: dict[str, Any]) -> type[Operator]:
        """Single samples, or this class for batches."""
        return cls if args["batch_processing"] else SampleFunction

    def cpu(self, c: Any, *samples: Sequence[np.ndarray]) -> Any:
        """Work on a batch."""
        from numba.typed import List

        outputs = [
            [c.empty(k, tuple(shape), dtype, output) for k, shape in enumerate(shapes.tolist())]
            for output, (shapes, dtype) in enumerate(
                zip(self._host_shapes(samples), self._dtypes, strict=True)
            )
        ]
        inputs = [[_plain(row) for row in rows] for rows in samples]
        self._run(*[List(rows) for rows in (*outputs, *inputs)])
        return tuple(outputs)


SampleFunction.schema = NumbaFunction.schema


def _compile(function: Any) -> Any:
    """`function` compiled, so that it lets go of the interpreter."""
    import numba

    return numba.njit(nogil=True)(getattr(function, "py_func", function))


def _cuda() -> Any:
    """Numba's module for the GPU."""
    try:
        from numba import cuda

        found = cuda.is_available()
    except ImportError:
        found = False
    if not found:
        raise GpuNotAvailableError(
            "`numba_function` needs `numba.cuda` on the GPU, which is missing or finds no CUDA. "
            "Install the distribution numba-cuda for your CUDA, or leave out `device`."
        )
    return cuda


def _listed(name: str, given: Any) -> list[Any]:
    if not isinstance(given, (list, tuple)):
        raise ArgumentTypeError(f"`{name}` is {given!r}; expected a list.")
    return list(given)


def _check_inputs(inputs: Sequence[Spec], types: list[Any], ndims: list[Any]) -> None:
    if not len(inputs) == len(types) == len(ndims):
        raise MisusedArgumentError(
            f"There are {len(inputs)} inputs, {len(types)} `in_types` and {len(ndims)} `ins_ndim`; "
            "there is one of each for every input."
        )
    for number, (spec, kind, ndim) in enumerate(zip(inputs, types, ndims, strict=True)):
        if spec.dtype != as_data_type(kind):
            raise DataTypeError(
                f"Input {number} has elements of type {spec.dtype.name}, but `in_types` says "
                f"{as_data_type(kind).name}."
            )
        if spec.ndim is not None and spec.ndim != ndim:
            raise ShapeError(f"Input {number} has {spec.ndim} axes, but `ins_ndim` says {ndim}.")


def _three(name: str, given: Any) -> tuple[int, ...]:
    values = tuple(given) if isinstance(given, (list, tuple)) else ()
    if len(values) != 3 or not all(isinstance(v, int) and v > 0 for v in values):
        raise MisusedArgumentError(
            f"`{name}` is {given!r}; on the GPU it has to be three positive numbers."
        )
    return values


def _plain(row: np.ndarray) -> np.ndarray:
    """`row` as the function is compiled for it: C-contiguous and writable."""
    return row if row.flags.c_contiguous and row.flags.writeable else row.copy()
