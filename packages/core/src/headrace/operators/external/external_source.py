"""The declaration of `external_source` and the checks of its arguments."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    LayoutError,
    MisusedArgumentError,
    ShapeError,
    UsageError,
)
from headrace.operators.support.argument_types import (
    ArgType,
    BoolArg,
    DataTypeArg,
    IntArg,
    LayoutArg,
    ObjectArg,
)
from headrace.operators.support.external.callback import kind_of
from headrace.operators.support.external.input_queue import Declared, InputQueue
from headrace.operators.support.external.parallel.input_queue import (
    ParallelInputQueue,
    check_parallel,
)
from headrace.operators.support.operator import SampleOperator, operator
from headrace.operators.support.schema import Arg, Spec


def _one_or_list(one: ArgType) -> ArgType:
    def convert(value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [None if item is None else one.constant(item) for item in value]
        return one.constant(value)

    annotation = f"{one.annotation} | Sequence[{one.annotation} | None]"
    return ArgType(f"{one.name} or list", annotation, convert)


_LAYOUTS = _one_or_list(LayoutArg)
_DTYPES = _one_or_list(DataTypeArg)
_NDIMS = _one_or_list(IntArg)
_PARALLEL = ArgType('bool, "threads" or "processes"', "bool | str", check_parallel)


@operator(
    "external_source",
    args=(
        Arg(
            "source", ObjectArg, None, "Function, iterable or generator function that has the data."
        ),
        Arg(
            "num_outputs",
            IntArg,
            None,
            "Number of outputs; when given, the source returns a tuple and a list of nodes is "
            "returned.",
        ),
        Arg(
            "cycle",
            ObjectArg,
            None,
            'Action at the end of an iterable: `False` or ``"no"`` ends the data, `True` or '
            '``"quiet"`` starts over, ``"raise"`` raises StopIteration and starts over after a '
            "reset.",
        ),
        Arg("layout", _LAYOUTS, None, "Layout of the samples, or one for each output."),
        Arg(
            "dtype", _DTYPES, None, "Element type that the data must have, or one for each output."
        ),
        Arg("ndim", _NDIMS, None, "Number of dimensions that samples must have, or a list."),
        Arg("batch", BoolArg, True, "Whether the source returns batches; samples otherwise."),
        Arg(
            "batch_info",
            BoolArg,
            False,
            "Whether a source of batches is given a `types.BatchInfo` in place of the number of "
            "the iteration.",
        ),
        Arg(
            "no_copy",
            BoolArg,
            None,
            "Use the source's memory without a copy; it must then not be changed while the batch "
            "is in use. The GPU reads page-locked memory (`headrace.empty_pinned`) where it is.",
        ),
        Arg(
            "repeat_last",
            BoolArg,
            False,
            "Use the last batch that was fed again when nothing new was.",
        ),
        Arg(
            "blocking",
            BoolArg,
            False,
            "Wait for `feed_input`, called by another thread, when there is no data.",
        ),
        Arg(
            "parallel",
            _PARALLEL,
            False,
            "Run the source in workers: how many, `py_num_workers` of the pipeline says. They are "
            'processes (`True`), or threads (``"threads"``). With `True` the source has to be one '
            "that several workers can share, or to return batches: a function of the position, an "
            'iterable with ``batch=True``. With ``"processes"`` any source runs in one of them.',
        ),
        Arg(
            "prefetch_queue_depth",
            IntArg,
            None,
            "Batches computed ahead by the workers of a parallel source. When not given: one, or, "
            "where a batch is made by one worker, one for each worker.",
        ),
        Arg(
            "cuda_stream",
            ObjectArg,
            None,
            "Stream that writes data on the GPU, where the data does not say: a number, or a "
            "stream of PyTorch or CuPy; -1 if it is written. No effect on host data.",
            hint=True,
        ),
        Arg(
            "use_copy_kernel",
            BoolArg,
            None,
            "Method of copying data on the GPU; no effect on host data.",
            hint=True,
        ),
    ),
    num_outputs=lambda args: 1 if args["num_outputs"] is None else args["num_outputs"],
    positional=("source", "num_outputs"),
    dynamic=False,
    fed=True,
)
class ExternalSource(SampleOperator):
    """Brings data from Python code into the pipeline.

    The data comes from `source`, or, when there is none, from `Pipeline.feed_input` or from the
    keyword arguments of `Pipeline.run`. A source can be

    * a function without argument, called for each batch (or sample, with ``batch=False``);
    * a function of one argument: the number of the iteration within the epoch, a
      `types.BatchInfo` (``batch_info=True``), or a `types.SampleInfo` (``batch=False``);
    * an iterable, or a generator function.

    It ends the epoch by raising StopIteration. A batch is an array whose outermost dimension is the
    batch, or a list of arrays that may differ in shape. With ``device="gpu"`` arrays of the host
    are uploaded, and those on the GPU (CuPy's, PyTorch's, anything with ``__dlpack__`` or
    ``__cuda_array_interface__``) stay there. The pipeline's work comes after the work that writes
    them, on the GPU; the host does not wait. Without `no_copy` they are copied at once, and what
    their owner queues after that may overwrite them.
    """

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        """Never called: the types of external data are seen when it arrives."""
        raise AssertionError("external data is fed, not computed")


_CHECKED = ("layout", "dtype", "ndim")


_OF_PARALLEL = ("prefetch_queue_depth", "bytes_per_sample_hint")


def make_input_queue(args: dict[str, Any], name: str | None) -> InputQueue:
    """The supply line for a call with the converted arguments `args`."""
    if "source" not in args:
        from headrace.operators.video.input_video import VideoInputQueue

        return VideoInputQueue(args)
    source, count = args["source"], args["num_outputs"]
    _check_parallel_only(args)
    if count is not None:
        if source is None:
            raise ArgumentValueError(
                "`num_outputs` needs a `source`. Of data that is fed, each output is an external "
                "source of its own: call `fn.external_source` once for each, or "
                f"`ops.ExternalSource(num_outputs={count})()`, which does that."
            )
        if name is not None:
            raise UsageError(
                "`num_outputs` is not compatible with a named external source: the name is what "
                "`feed_input` uses, and it feeds one output."
            )
        if count < 1:
            raise ArgumentValueError(f"`num_outputs` is {count}; it must be positive.")
    if source is not None and args["repeat_last"]:
        raise MisusedArgumentError(
            "`repeat_last` is for data that is fed; it cannot go with `source`."
        )
    if source is None and args["cycle"]:
        raise ArgumentValueError("`cycle` can only be given together with an iterable `source`.")
    outputs = [Declared() for _ in range(1 if count is None else count)]
    for what in _CHECKED:
        _declare(outputs, what, args[what], single=count is None)
    for declared in outputs:
        _check_declared(declared)
    common = {name: args[name] for name in ("cycle", "batch", "batch_info", "cuda_stream")}
    common |= {"single": count is None, "no_copy": bool(args["no_copy"])}
    if args["parallel"]:
        if args["parallel"] is True:
            _check_shared(source, args)
        return ParallelInputQueue(
            source,
            outputs,
            **common,
            threads=args["parallel"] == "threads",
            depth=args["prefetch_queue_depth"],
            bytes_per_sample=_bytes_per_sample(args),
        )
    return InputQueue(
        source, outputs, **common, repeat_last=args["repeat_last"], blocking=args["blocking"]
    )


def _check_parallel_only(args: dict[str, Any]) -> None:
    parallel = args["parallel"]
    for key in _OF_PARALLEL:
        if args[key] is None:
            continue
        if not parallel:
            raise ArgumentValueError(
                f"`{key}` is valid only for parallel external sources (`parallel=True`)."
            )
        if np.min(args[key]) < 1:
            raise ArgumentValueError(
                f"`{key}` must be a positive integer, got {np.min(args[key])}."
            )
    if parallel and args["source"] is None:
        raise ArgumentValueError("`parallel` needs a `source`; what is fed runs nowhere.")
    if parallel in (True, "processes") and args["no_copy"] is False:
        raise ArgumentValueError(
            "`no_copy` cannot be False together with `parallel`: what workers hand over is memory "
            "that they share with this process. Leave it out."
        )


def _check_shared(source: Any, args: dict[str, Any]) -> None:
    """Check that workers can share a source: what DALI takes with ``parallel=True``."""
    kind = kind_of(source, args["cycle"])
    if kind == "function":
        raise ArgumentTypeError(
            "Callable passed to External Source in parallel mode (when `parallel=True`) must "
            "accept exactly one argument, the position in the epoch, so that workers can share "
            "it. Got a callable that does not accept arguments instead. Let "
            f"{source!r} take a `types.SampleInfo` (`batch=False`), a `types.BatchInfo` or the "
            "number of the batch; or have one worker call it, with "
            '`parallel="processes"` or `parallel="threads"`.'
        )
    if kind == "iterable" and not args["batch"]:
        what = "a generator function" if inspect.isgeneratorfunction(source) else "an iterable"
        raise ArgumentTypeError(
            f"Parallel external source with {what} must be run in a batch mode: let it give "
            "batches, with `batch=True`, or have one worker iterate it, with "
            '`parallel="processes"` or `parallel="threads"`.'
        )


def _bytes_per_sample(args: dict[str, Any]) -> int:
    hint = args["bytes_per_sample_hint"]
    return 0 if hint is None else int(np.max(hint))


def _declare(outputs: list[Declared], what: str, value: Any, *, single: bool) -> None:
    if value is None:
        return
    if isinstance(value, list) and single:
        raise UsageError(
            f"`{what}` can be a list only where `num_outputs` is given, got {value!r}."
        )
    values = value if isinstance(value, list) else [value] * len(outputs)
    if len(values) > len(outputs):
        raise ArgumentValueError(f"`{what}` has {len(values)} elements for {len(outputs)} outputs.")
    for declared, item in zip(outputs, values, strict=False):
        setattr(declared, what, item)


def _check_declared(declared: Declared) -> None:
    ndim, layout = declared.ndim, declared.layout
    if ndim is not None and ndim < 0:
        raise ShapeError(f"`ndim` is {ndim}; it cannot be negative.")
    if layout and ndim is not None and len(layout) != ndim:
        raise LayoutError(
            "Number of dimensions in the provided layout does not match the ndim argument. The "
            f'arguments provided:\n ndim = {ndim},\n layout: "{layout}".\nLeave one of them out.'
        )
    if layout and ndim is None:
        declared.ndim = len(layout)
