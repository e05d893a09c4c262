"""Shared code of operators that make affine transforms."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ClassVar

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu import affine
from headrace.operators.support.argument_types import BoolArg, FrameFloatListArg
from headrace.operators.support.arguments import given
from headrace.operators.support.operator import Operator, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType

MOST_AXES = 6
"""Transforms of spaces of more dimensions are refused, as DALI does."""

TRANSFORM = Input(
    "transform",
    "Transforms to go on from, ``(n, n + 1)``: the columns of a matrix, and after them what is "
    "added. With frames (F) in front, one for each frame.",
    dtypes=(DALIDataType.FLOAT,),
    optional=True,
)
REVERSE_ORDER = Arg(
    "reverse_order",
    BoolArg,
    False,
    "Whether this transform is done before the one that is the input, and not after it.",
)
CENTER = Arg(
    "center",
    FrameFloatListArg,
    None,
    "The point that stays where it is: a number for each axis, or one for all; the origin when not "
    "given.",
    per_frame=True,
    shape_of="(n,)",
)
OUTPUT_DOC = (
    "float32 ``(n, n + 1)``; with frames (F) in front, where an argument or the input has some."
)
_NO_CENTER = np.empty((0, 1), np.float32)
_NO_TRANSFORM = np.empty((0, 1, 2), np.float32)

Values = dict[str, np.ndarray]
"""Arguments by name, float32 ``(frames, numbers)``; one frame where it serves all."""
Parts = tuple[np.ndarray, np.ndarray]
"""A linear map, float32 ``(frames, n, n)``, and what is added, ``(frames, n)``."""


def transform(name: str, *, args: Iterable[Arg], **traits: Any) -> Callable[[Any], type[Operator]]:
    """Declare an operator that makes a transform: a sub-class of `Transform`.

    What all of them have is added to `args`, the arguments of its own, and to `traits`.
    """
    every = (*args, REVERSE_ORDER)
    traits = {"output_docs": (OUTPUT_DOC,), "devices": ("cpu",), **traits}
    return operator(name, inputs=TRANSFORM, args=every, **traits)


def transform_spec(inputs: Sequence[Spec], *, framed: bool) -> Spec:
    """Spec of the transforms made of such inputs."""
    for position, spec in enumerate(inputs):
        has_frames = spec.layout[:1] == "F"
        framed = framed or has_frames
        if spec.ndim is not None and spec.ndim != 2 + has_frames:
            raise ShapeError(
                f"Input {position} has {spec.ndim} axes; a transform is a matrix (n, n + 1), or "
                "one for each frame, with a layout that starts with F (`fn.per_frame` names it "
                "so)."
            )
    return Spec(DALIDataType.FLOAT, 3 if framed else 2, "F**" if framed else "**")


def transform_frames(samples: Samples, position: int, *, framed: bool) -> np.ndarray:
    """Transforms of an input, ``(samples, frames, n, n + 1)``."""
    stack = samples.dense
    if stack is None:
        if len(set(samples.shape_tuples)) > 1:
            raise ShapeError("Transforms differ in shape, and are made one by one.")
        stack = np.stack(samples.rows)
    if not framed:
        stack = stack[:, np.newaxis]
    rows, columns = stack.shape[2:]
    if columns != rows + 1 or not 1 <= rows <= MOST_AXES or not stack.shape[1]:
        raise ShapeError(
            f"Input {position} has the shape {(rows, columns)}; a transform of n axes is a matrix "
            f"(n, n + 1), with n from 1 to {MOST_AXES}."
        )
    return stack


def for_frames(stack: np.ndarray, frames: int) -> np.ndarray:
    """``(samples, 1 or frames, ...)`` as contiguous ``(samples * frames, ...)``."""
    size, _, *shape = stack.shape
    whole = np.broadcast_to(stack, (size, frames, *shape))
    return np.ascontiguousarray(whole.reshape(size * frames, *shape))


def in_samples(found: np.ndarray, size: int, *, frames: bool) -> np.ndarray:
    """``(samples * frames, ...)`` as ``(samples, frames, ...)``, or as it is without frames."""
    return found.reshape(size, len(found) // max(size, 1), *found.shape[1:]) if frames else found


class Transform(SampleOperator):
    """Base of operators that make a transform of arguments, and put it after another one.

    A sub-class names the arguments that its transform is made of, and makes it in `parts`.
    """

    numbers: ClassVar[tuple[str, ...]]
    """Arguments that are numbers, one or several, which may differ by frame."""

    def infer(self, transform: Spec | None = None) -> Spec:
        framed = {n for n in self.numbers if self._layout(n)[:1] == "F"}
        self._framed = framed
        self._given = [n for n in self.numbers if self.given(n)]
        self._constants: Values = {}
        for name in self._given:
            constant = getattr(self.args, name)
            if constant is not None:
                self._constants[name] = np.array(constant, np.float32).reshape(1, -1)
        spec = transform_spec(given(transform), framed=bool(framed))
        self._frames = spec.ndim == 3
        self._in_frames = transform is not None and transform.layout[:1] == "F"
        # Without anything that differs, there is one transform for good.
        self._only: np.ndarray | None = None
        if transform is None and not self.tensor_args:
            self._only = self._made(self._constants, None, 1)
        return spec

    plans_values = True

    def plan(self, c: PlanContext, transform: Samples | None = None) -> Planned | None:
        size = c.size
        if self._only is not None:
            return Planned(values=np.broadcast_to(self._only[0], (size, *self._only.shape[1:])))
        stacks = {}
        for name in self.tensor_args:
            value = c.array(name, np.float32)
            assert value is not None
            framed = name in self._framed
            self.check_shape(name, value.shape[1 + framed :])
            count = value.shape[1] if framed else 1
            stacks[name] = value.reshape(size, count, math.prod(value.shape[1 + framed :]))
        before = None
        if transform is not None:
            if not transform.are_there:
                return None
            before = transform_frames(transform, 0, framed=self._in_frames)
        frames = self._count(stacks, before)
        values = dict(self._constants)
        for name, value in stacks.items():
            values[name] = for_frames(value, frames)
        if before is not None:
            before = for_frames(before, frames)
        found = self._made(values, before, size * frames)
        return Planned(values=in_samples(found, size, frames=self._frames))

    def _layout(self, name: str) -> str:
        spec = self.tensor_args.get(name)
        return "" if spec is None else spec.layout

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise if a tensor argument, of one frame, has a shape that means nothing."""

    def _made(self, values: Values, given: np.ndarray | None, frames: int) -> np.ndarray:
        rank = 0 if given is None else given.shape[1]
        values = dict(values)
        linear, offset = self.parts(values, rank)
        n = linear.shape[1]
        if not 1 <= n <= MOST_AXES:
            raise ArgumentValueError(
                f"The arguments are for {n} axes; transforms have from 1 to {MOST_AXES}."
            )
        if rank not in (0, n):
            raise ShapeError(
                f"The input is a transform of {rank} axes, but the arguments are for {n}; give as "
                "many numbers as it has axes."
            )
        center = _NO_CENTER
        if "center" in values:
            center = spread(values["center"], n, "center")
        out = np.empty((frames, n, n + 1), np.float32)
        reverse = bool(self.args.reverse_order)
        given = _NO_TRANSFORM if given is None else given
        affine.placed(linear, offset, center, given, reverse, out)
        return out

    def _count(self, values: Values, given: np.ndarray | None) -> int:
        """Number of frames of samples in arrays ``(samples, frames, ...)``; 1 without frames."""
        counts = {n: values[n].shape[1] for n in values if n in self._framed}
        most = max(counts.values(), default=1)
        if given is not None and given.shape[1] > 1:
            most = given.shape[1]
        for name, count in counts.items():
            if count not in (1, most) or not count:
                raise ArgumentValueError(
                    f"Argument `{name}` has values for {count} frames, but there are {most}."
                )
        return most

    def parts(self, values: Values, rank: int) -> Parts:
        """The transform about the origin, or about the centre where it is taken out of `values`."""
        raise NotImplementedError


def spread(values: np.ndarray, count: int, name: str) -> np.ndarray:
    """`values`, ``(frames, numbers)``, as `count` numbers a frame: one stands for all."""
    if values.shape[1] == count:
        return values
    if values.shape[1] != 1:
        raise ArgumentValueError(
            f"`{name}` has {values.shape[1]} numbers; expected {count}, one for each axis, or one "
            "for all."
        )
    return np.repeat(values, count, axis=1)


def identities(frames: int, n: int) -> np.ndarray:
    """float32 ``(frames, n, n)``."""
    found = np.zeros((frames, n, n), np.float32)
    found.reshape(frames, n * n)[:, :: n + 1] = 1
    return found


def no_offset(n: int) -> np.ndarray:
    """Nothing is added: float32 ``(1, n)``."""
    return np.zeros((1, n), np.float32)


def check_finite(angles: np.ndarray) -> None:
    """Raise if an angle is infinite or none."""
    if not all(map(math.isfinite, angles.reshape(-1).tolist())):
        raise ArgumentValueError(f"`angle` must be finite numbers, got {angles.tolist()}.")
