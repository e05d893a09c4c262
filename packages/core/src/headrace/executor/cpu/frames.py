"""Sequences: run an operator that knows single frames on every frame of a sample."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.executor.planning import Planner, SamplePlans
from headrace.operators.support.contexts import SampleContext
from headrace.operators.support.lazy_value import computed
from headrace.operators.support.operator import SampleOperator
from headrace.operators.support.planning import Samples
from headrace.operators.support.schema import Spec, as_specs
from headrace.tensors.rows import Rows
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class FrameLoop(SampleOperator):
    """An operator that takes sequences; made from one that takes frames.

    Arguments given frame by frame (tensor arguments whose layout starts with ``F``) are handed
    out one frame at a time. All frames of a sequence are planned together, with the index of their
    sequence, so that an operator whose output shape follows from such arguments can give them one.

    Further inputs whose layout starts with ``F`` are handed out frame by frame, too, and others are
    the same for all frames; so is the first one, if it is no sequence itself. Without any sequence
    among the inputs, arguments tell how many frames there are.

    Only an operator with ``keeps_shape = True``, whose output has the shape of its input, can tell
    what becomes of a sequence without frames.
    """

    def __init__(
        self, op: SampleOperator, inputs: Sequence[Spec], tensor_layouts: dict[str, str]
    ) -> None:
        super().__init__(vars(op.args), op.tensor_args)
        self.op = op
        self.repeats = "F" not in inputs[0].layout
        """True if the first input is the same for all frames."""
        self.axis = 0 if self.repeats else inputs[0].layout.index("F")
        self.framed = [spec.layout[:1] == "F" for spec in inputs[1:]]
        """Of each input but the first, whether it has frames."""
        schema = op.schema
        self.frame_args = tuple(n for n, layout in tensor_layouts.items() if layout[:1] == "F")
        for name in self.frame_args:
            if not schema.args[name].per_frame:
                raise ArgumentValueError(
                    f"Argument `{name}` cannot differ from frame to frame; give one value for "
                    "each sequence."
                )

    def suspect(self, *inputs: Spec) -> str:
        """Build the warning about suspect data of a frame."""
        return self.op.suspect(*inputs)

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        """Specs of the output sequences."""
        first = inputs[0]
        frame = first if self.repeats else _of_frame(first)
        others = [
            _of_frame(spec) if framed else spec
            for spec, framed in zip(inputs[1:], self.framed, strict=True)
        ]
        outputs = as_specs(self.op.infer(frame, *others))
        self._outputs = len(outputs)
        self._planner = None
        if self.op.plan is not None and self.op.needs_plan:
            self._planner = Planner(self.op, None, outputs, constant=False)
        axis = self.axis
        self._type_of_empty = storage_dtype(outputs[0].dtype) if self.op.keeps_shape else None
        return tuple(
            spec._replace(
                ndim=None if spec.ndim is None else spec.ndim + 1,
                layout=spec.layout and spec.layout[:axis] + "F" + spec.layout[axis:],
            )
            for spec in outputs
        )

    def cpu(self, c: Any, sequence: np.ndarray, *others: np.ndarray) -> Any:
        """Run every frame and return the sequences of their outputs."""
        count = sequence.shape[self.axis]
        if True in self.framed:
            shapes = [None if self.repeats else sequence.shape] + [
                data.shape if framed else None
                for data, framed in zip(others, self.framed, strict=True)
            ]
            count = common_count(shapes, self.axis)
        elif self.repeats:
            count = max(len(getattr(c.args, name)) for name in self.frame_args)
        if count == 0:
            if self._type_of_empty is not None and not self.frame_args:
                return c.empty(sequence.shape, self._type_of_empty)
            raise ShapeError(f"The sequence has no frames: its shape is {sequence.shape}.")
        args = self._frame_arguments(c.args, count)
        memory = [_Frames(c, k, count, self.axis) for k in range(self._outputs)]
        own = SimpleNamespace() if args else c.args
        context = SampleContext(
            c.node,
            own,
            c.arena,
            c.seed,
            memory,
            [c.index] * count,
            [c.source] * count,
            None if self._planner is None else self._planned(c, count, sequence, others),
        )
        context.iteration = c.iteration
        lead: tuple[slice | int, ...] = (slice(None),) * self.axis
        for f in range(count):
            context.position = context.place = f
            for output in memory:
                output.frame = f
            if args:
                own.__dict__.update(c.args.__dict__)
                own.__dict__.update({k: v[f] for k, v in args.items()})
            frame: np.ndarray = sequence if self.repeats else sequence[(*lead, f)]
            of_frame = [
                data[f] if framed else data
                for data, framed in zip(others, self.framed, strict=True)
            ]
            result = computed(self.op.cpu(context, frame, *of_frame), context)
            results = result if isinstance(result, tuple) else (result,)
            if len(results) != len(memory):  # the caller reports the error
                return results
            for output, made in zip(memory, results, strict=True):
                output.store(made)
        whole = tuple(output.sequence for output in memory)
        return whole[0] if len(whole) == 1 else whole

    def _planned(
        self,
        c: Any,
        count: int,
        sequence: np.ndarray,
        others: Sequence[np.ndarray],
    ) -> SamplePlans:
        """The plans of all frames of one sequence."""
        assert self._planner is not None
        inputs = [
            Samples(
                [sequence] * count if self.repeats else list(np.moveaxis(sequence, self.axis, 0))
            )
        ]
        for data, framed in zip(others, self.framed, strict=True):
            inputs.append(Samples(list(data) if framed else [data] * count))
        tensors: dict[str, tuple[Samples, Any]] = {}
        for name in self.frame_args:
            rows = [np.asarray(value) for value in getattr(c.args, name)]
            convert = self.op.schema.args[name].type.sample
            tensors[name] = Samples(rows if len(rows) == count else rows * count), convert
        return self._planner.plan(
            inputs,
            tensors,
            [c.index] * count,
            seed=c.seed,
            iteration=c.iteration,
            args=c.args,
        )

    def _frame_arguments(self, args: Any, count: int) -> dict[str, list[Any]]:
        found = {}
        for name in self.frame_args:
            values = getattr(args, name)
            if len(values) != count and len(values) != 1:
                raise ArgumentValueError(
                    f"Argument `{name}` has values for {len(values)} frames, but the sequence "
                    f"has {count}."
                )
            convert = self.op.schema.args[name].type.sample
            assert convert is not None
            converted = [convert(np.asarray(v)) for v in values]
            found[name] = converted * count if len(converted) == 1 and count != 1 else converted
        return found


def common_count(shapes: Sequence[tuple[int, ...] | None], axis: int) -> int:
    """Return the number of frames that all inputs share."""
    counts = [
        None if shape is None else shape[0 if position else axis]
        for position, shape in enumerate(shapes)
    ]
    found = [count for count in counts if count is not None]
    if any(count != found[0] for count in found):
        position = next(k for k, n in enumerate(counts) if n is not None and n != found[0])
        raise ShapeError(
            f"Input {position} has {counts[position]} frames, but input "
            f"{counts.index(found[0])} has {found[0]}; give as many."
        )
    return found[0]


def _of_frame(spec: Spec) -> Spec:
    """Return the spec of a single frame of a sequence."""
    return spec._replace(
        ndim=None if spec.ndim is None else spec.ndim - 1, layout=spec.layout.replace("F", "")
    )


class _Frames:
    """Memory of an output sequence, in the places of its frames.

    `frame`: number of the frame at hand. `sequence`: the whole sequence; `None` until a frame has
    told the shape.
    """

    __slots__ = ("_axis", "_count", "_dtype", "_output", "_whole", "frame", "sequence")

    def __init__(self, whole: SampleContext, output: int, count: int, axis: int) -> None:
        self._whole = whole
        self._output = output
        self._count = count
        self._axis = axis
        self._dtype: DTypeLike = np.uint8
        self.frame = 0
        self.sequence: np.ndarray | None = None

    def check(self, shape: Sequence[int], dtype: DTypeLike) -> None:
        """Record the memory that the operator asks for."""
        self._dtype = dtype

    def rows_for(self, indices: Sequence[int], shapes: np.ndarray) -> Rows:
        """Memory for the frame at hand, for an operator that takes several samples at a time."""
        return Rows.of_row(self.row(indices[0], tuple(shapes[0].tolist())), shapes)

    def row(self, index: int, shape: tuple[int, ...]) -> np.ndarray:
        """Memory for the frame at hand: its place in the sequence, if it has that shape."""
        if not self._axis:
            place = self._place(shape, self._dtype)
            # A frame of another shape than the first has no place; `store` says so.
            if place.shape == tuple(shape):
                return place
        return self._whole.temp(shape, self._dtype)

    def _place(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Return the view of the sequence that the frame is written to."""
        axis = self._axis
        if self.sequence is None:
            full = (*shape[:axis], self._count, *shape[axis:])
            self.sequence = self._whole.empty(full, dtype, self._output)
        return self.sequence[(slice(None),) * axis + (self.frame,)]

    def store(self, frame: np.ndarray) -> None:
        """Copy the operator's result into the sequence, unless it was written there."""
        place = self._place(frame.shape, frame.dtype)
        if place.shape != frame.shape:
            raise ShapeError(
                f"The frames of one sequence came out with different shapes: {place.shape} and "
                f"{frame.shape}. All frames of a sequence must keep one shape."
            )
        if place.ctypes.data != frame.ctypes.data or place.strides != frame.strides:
            np.copyto(place, frame)
