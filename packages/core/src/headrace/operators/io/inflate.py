"""`decoders.inflate`."""

from __future__ import annotations

import math

import numpy as np

from headrace.errors import (
    ArgumentChoiceError,
    ArgumentValueError,
    BadSampleError,
    LayoutError,
    ShapeError,
)
from headrace.kernels.cpu import inflate as _cpu
from headrace.kernels.gpu import inflate as _gpu
from headrace.operators.support.argument_types import (
    BoolArg,
    DataTypeArg,
    IntListArg,
    LayoutArg,
    StringArg,
)
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import (
    PlanContext,
    Planned,
    Samples,
    plan_batch,
    repeated,
    shapes_of,
)
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType, to_numpy_type

_ALGORITHMS = ("lz4", "deflate")
_CHUNKS = "Without it or the other one, a sample is a single chunk."


@operator(
    "decoders.inflate",
    old_names=("experimental.inflate",),
    inputs=Input(
        "data", "Compressed bytes: one chunk, or several of them.", dtypes=(DALIDataType.UINT8,)
    ),
    args=(
        Arg(
            "shape",
            IntListArg,
            REQUIRED,
            "Shape of what a chunk inflates to. If that is less, zeros follow.",
            per_sample=True,
        ),
        Arg("dtype", DataTypeArg, DALIDataType.UINT8, "Element type of the output."),
        Arg(
            "algorithm",
            StringArg,
            "LZ4",
            '"LZ4", blocks without a frame; or, on the CPU, "deflate", with the header of zlib or '
            "gzip, or without one.",
        ),
        Arg(
            "chunk_offsets",
            IntListArg,
            None,
            f"Where chunks begin, in bytes; if not given, one after the other. {_CHUNKS}",
            per_sample=True,
        ),
        Arg(
            "chunk_sizes",
            IntListArg,
            None,
            "How many bytes each chunk has; if not given, up to the next one, or the end. "
            f"{_CHUNKS}",
            per_sample=True,
        ),
        Arg("layout", LayoutArg, "", "Layout of what a chunk inflates to."),
        Arg(
            "sequence_axis_name",
            LayoutArg,
            "F",
            "Name of the axis of chunks, which comes first if `layout` and chunks are given.",
        ),
        Arg(
            "check_output_size",
            BoolArg,
            False,
            "On the GPU, wait for the result, and tell of chunks that are damaged or do not fit. "
            "Otherwise zeros take the place of what cannot be inflated. The CPU always tells.",
        ),
    ),
    output_docs=("What was compressed; of several chunks, stacked.",),
)
class Inflate(SampleOperator):
    """Inflates compressed data.

    Examples
    --------
    >>> frames = fn.decoders.inflate(data, shape=[120, 160, 3], chunk_sizes=sizes, layout="HWC")
    """

    def check_constants(self) -> None:
        args = self.args
        if args.algorithm.lower() not in _ALGORITHMS:
            raise ArgumentChoiceError(
                "Unknown inflate algorithm was specified for `algorithm` argument: "
                f'"{args.algorithm}". It may be "LZ4" or "deflate".'
            )
        if len(args.sequence_axis_name) != 1:
            raise ArgumentValueError(
                "The `sequence_axis_name` must be a single character, got "
                f'"{args.sequence_axis_name}".'
            )

    def infer(self, data: Spec) -> Spec:
        if data.ndim not in (1, None):
            raise ShapeError(f"Compressed data has one dimension, bytes; got {data.ndim}.")
        args = self.args
        self._algorithm = args.algorithm.lower()
        self._dtype = np.dtype(to_numpy_type(args.dtype))
        self._chunked = self.given("chunk_offsets") or self.given("chunk_sizes")
        ndim: int | None
        if "shape" in self.tensor_args:
            rank = self.tensor_args["shape"].ndim
            if rank is not None and rank > 1:
                raise ShapeError(
                    "The shape argument must be a scalar or a 1D tensor, got tensor with "
                    f"{rank} extents."
                )
            ndim = 1 if rank == 0 else len(args.layout) or None
        else:
            ndim = len(args.shape)
        if args.layout and ndim != len(args.layout):
            raise LayoutError(
                f'`layout` "{args.layout}" names {len(args.layout)} axes, but `shape` has {ndim} '
                "extents."
            )
        self._ndim = ndim
        if not self._chunked or ndim is None:
            return Spec(args.dtype, ndim, args.layout)
        return Spec(args.dtype, ndim + 1, args.layout and args.sequence_axis_name + args.layout)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        given = {n: c.values(n) for n in ("shape", "chunk_offsets", "chunk_sizes")}
        sizes = repeated(data.shapes, c.size)[:, 0].tolist()
        shapes, spans = [], []
        for size, shape, *chunks in zip(sizes, *given.values(), strict=True):
            if any(extent < 0 for extent in shape):
                raise ArgumentValueError(
                    "Extents of the output shape must be non-negative integers, got `shape`="
                    f"{list(shape)}."
                )
            if self._ndim not in (None, len(shape)):
                raise ShapeError(
                    f"`shape`={list(shape)} has {len(shape)} extents; {self._ndim} are expected."
                )
            if not size:
                raise BadSampleError("Input sample cannot be empty, but it has no bytes.")
            span = _spans(size, *chunks) if self._chunked else np.array([[0, size]], np.int64)
            spans.append(span)
            shapes.append((len(span), *shape) if self._chunked else tuple(shape))
        return Planned(shapes_of(shapes), (spans,))

    def _room(self, shape: np.ndarray | tuple[int, ...]) -> int:
        """Bytes of a chunk's output in a sample of this shape."""
        extents = shape[1:] if self._chunked else shape
        return math.prod(map(int, extents)) * self._dtype.itemsize

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out, (spans,) = c.out, c.row
        room, places = self._room(out.shape), out.reshape(-1).view(np.uint8)
        for k, (begin, end) in enumerate(spans):
            part = places[k * room : (k + 1) * room]
            error = self._error(_cpu.inflate(self._algorithm, data[begin:end], part), room, k)
            if error is not None:
                raise error
        return out

    def _error(self, status: int, room: int, chunk: int) -> BadSampleError | None:
        why = _cpu.why_not(status, room)
        if not why:
            return None
        return BadSampleError(f"Chunk {chunk} cannot be inflated as {self.args.algorithm}: {why}.")

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        if self._algorithm != "lz4":
            raise ArgumentChoiceError(
                f'`algorithm`="{self.args.algorithm}" works on the CPU only; the GPU inflates '
                '"LZ4". Inflate before `.gpu()`.'
            )
        planned = plan_batch(self, c, data)
        spans = [*planned.table[0]] * (c.size // len(planned.table[0]))
        out = c.empty(planned.shapes[0], self._dtype)
        counts = np.array([len(span) for span in spans], np.int64)
        owners = np.repeat(np.arange(c.size), counts)
        numbers = np.arange(len(owners)) - np.repeat(np.cumsum(counts) - counts, counts)
        shapes = repeated(planned.shapes[0], c.size)
        rooms = shapes[:, int(self._chunked) :].prod(axis=1)[owners] * self._dtype.itemsize
        begins, ends = np.concatenate([*spans, np.zeros((0, 2), np.int64)]).T
        found = _gpu.inflate(
            c.queue,
            data.pointers[owners] + begins.astype(np.uint64),
            ends - begins,
            out.pointers[owners] + (numbers * rooms).astype(np.uint64),
            rooms,
        )
        if self.args.check_output_size and len(owners):
            statuses = np.zeros(len(owners), np.int64)
            runtime, address = c.queue.runtime, int(found.pointers[0])
            runtime.copy(
                statuses.ctypes.data, address, statuses.nbytes, c.queue.stream, may_wait=True
            )
            runtime.synchronize(c.queue.stream)
            for status, room, sample, k in zip(statuses, rooms, owners, numbers, strict=True):
                error = self._error(int(status), int(room), int(k))
                if error is not None:
                    raise c.located(error, int(sample))
        return out


def _spans(size: int, offsets: tuple[int, ...] | None, sizes: tuple[int, ...] | None) -> np.ndarray:
    """Begin and end of each chunk of a sample of `size` bytes, ``(chunks, 2)``."""
    wrong = [k for k in offsets or () if not 0 <= k < size]
    if wrong:
        raise ArgumentValueError(
            f"`chunk_offsets` must lie in the sample, which has {size} bytes; got {wrong[0]}."
        )
    wrong = [k for k in sizes or () if not 0 < k <= size]
    if wrong:
        raise ArgumentValueError(
            f"`chunk_sizes` must be positive and no more than the {size} bytes of the sample, got "
            f"{wrong[0]}."
        )
    if offsets is not None and sizes is not None:
        if len(offsets) != len(sizes):
            raise ArgumentValueError(
                f"There are {len(offsets)} `chunk_offsets` and {len(sizes)} `chunk_sizes`; there "
                "must be one of each for a chunk."
            )
        ends = np.array(offsets, np.int64) + np.array(sizes, np.int64)
        begins = np.array(offsets, np.int64)
    elif offsets is not None:
        begins = np.array(offsets, np.int64)
        ends = np.array([*offsets[1:], size][: len(offsets)], np.int64)
        if (ends <= begins).any():
            raise ArgumentValueError(
                f"`chunk_offsets` must increase where `chunk_sizes` are not given, got "
                f"{list(offsets)}."
            )
    else:
        ends = np.cumsum(np.array(sizes, np.int64), dtype=np.int64)
        begins = ends - np.array(sizes, np.int64)
    if (ends > size).any():
        raise ArgumentValueError(
            f"A chunk goes from byte {begins[ends > size][0]} to {ends[ends > size][0]}, but the "
            f"sample has {size}."
        )
    return np.stack([begins, ends], axis=1)
