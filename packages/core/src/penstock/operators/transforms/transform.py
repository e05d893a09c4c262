"""What operators that make affine transforms have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from penstock._later import later
from penstock.errors import ArgumentValueError, ShapeError
from penstock.operators.argument_types import BoolArg, FrameFloatListArg
from penstock.operators.operator import Operator, SampleContext
from penstock.operators.schema import Arg, Input, Spec
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.kernels.cpu import affine
else:
    affine = later("penstock.kernels.cpu.affine")

MOST_AXES = 6
"""Transforms of spaces of more dimensions are refused, as DALI does."""

TRANSFORM = Input(
    "transform",
    "Transforms to go on from, ``(n, n + 1)``: the columns of a matrix, and behind them what is "
    "added. With frames (F) in front, one for each frame.",
    dtypes=(DALIDataType.FLOAT,),
    optional=True,
)
REVERSE_ORDER = Arg(
    "reverse_order",
    BoolArg,
    False,
    "Whether this transform is done before the one that is the input, and not behind it.",
)
CENTER = Arg(
    "center",
    FrameFloatListArg,
    None,
    "The point that stays where it is: a number for each axis, or one for all; the origin when not "
    "given.",
    per_sample=True,
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


def transform_spec(inputs: Sequence[Spec], *, framed: bool) -> Spec:
    """What transforms come out as, of such inputs."""
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


def checked_transforms(stack: np.ndarray, position: int) -> np.ndarray:
    """Transforms of an input, ``(frames, n, n + 1)``."""
    rows, columns = stack.shape[1:]
    if columns != rows + 1 or not 1 <= rows <= MOST_AXES or not len(stack):
        raise ShapeError(
            f"Input {position} has the shape {(rows, columns)}; a transform of n axes is a matrix "
            f"(n, n + 1), with n from 1 to {MOST_AXES}."
        )
    return np.ascontiguousarray(stack)


class Transform(Operator):
    """Base of operators that make a transform of arguments, and put it behind another one.

    A sub-class names the arguments that its transform is made of, and makes it in `parts`.
    """

    numbers: ClassVar[tuple[str, ...]]
    """Arguments that are numbers, one or several, which may differ by frame."""

    def infer(self, *inputs: Spec) -> Spec:
        framed = {n for n in self.numbers if self._layout(n)[:1] == "F"}
        self._framed = framed
        self._given = [n for n in self.numbers if self.given(n)]
        self._constants: Values = {}
        for name in self._given:
            constant = getattr(self.args, name)
            if constant is not None:
                self._constants[name] = np.array(constant, np.float32).reshape(1, -1)
        spec = transform_spec(inputs, framed=bool(framed))
        self._frames = spec.ndim == 3
        self._in_frames = bool(inputs) and inputs[0].layout[:1] == "F"
        # Without anything that differs, there is one transform for good.
        self._only: np.ndarray | None = None
        if not inputs and not self.tensor_args:
            frames = self._count(self._constants, None)
            self._only = self._made(self._constants, None, frames)
        return spec

    @property
    def same_for_all(self) -> np.ndarray | None:
        """The transform of every sample, if it is one."""
        return None if self._only is None else self._only[0]

    @property
    def takes_batches(self) -> bool:
        """Whether `from_batches` may be called: there are no frames."""
        return not self._frames

    def from_batches(
        self, size: int, inputs: Sequence[np.ndarray], tensors: dict[str, np.ndarray]
    ) -> np.ndarray:
        """The transforms of `size` samples, of arrays ``(size, ...)`` or ``(1, ...)``."""
        values = dict(self._constants)
        for name, value in tensors.items():
            self.check_shape(name, value.shape[1:])
            values[name] = np.ascontiguousarray(value, np.float32).reshape(len(value), -1)
        return self._made(values, checked_transforms(inputs[0], 0) if inputs else None, size)

    def _layout(self, name: str) -> str:
        spec = self.tensor_args.get(name)
        return "" if spec is None else spec.layout

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        found = self._only
        if found is None:
            values = dict(self._constants)
            for name in self.tensor_args:
                value: np.ndarray = getattr(c.args, name)
                count = len(value) if name in self._framed else 1
                values[name] = np.ascontiguousarray(value).reshape(count, -1)
                self.check_shape(name, value.shape[1:] if name in self._framed else value.shape)
            given = None
            if inputs:
                given = checked_transforms(inputs[0] if self._in_frames else inputs[0][None], 0)
            found = self._made(values, given, self._count(values, given))
        out = c.empty(found.shape if self._frames else found.shape[1:], np.float32)
        out[...] = found if self._frames else found[0]
        return out

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        """Raise if a tensor argument, of one frame, has a shape that means nothing."""

    def _made(self, values: Values, given: np.ndarray | None, frames: int) -> np.ndarray:
        placed = affine.placed

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
        placed(linear, offset, center, _NO_TRANSFORM if given is None else given, reverse, out)
        return out

    def _count(self, values: Values, given: np.ndarray | None) -> int:
        """How many frames there are; 1 without frames."""
        counts = {n: len(values[n]) for n in values if n in self._framed}
        most = max(counts.values(), default=1)
        if given is not None and given.shape[0] > 1:
            most = len(given)
        for name, count in counts.items():
            if count not in (1, most) or not count:
                raise ArgumentValueError(
                    f"Argument `{name}` has values for {count} frames, but there are {most}."
                )
        return most

    def parts(self, values: Values, rank: int) -> Parts:
        """The transform about the origin, or about the centre where it is taken out of `values`.

        Parameters
        ----------
        values
            What is given of `numbers`. Without a ``"center"`` that is left in it, the transform is
            about the origin.
        rank
            How many axes the input's transform has; 0 without one.
        """
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


def check_finite(values: np.ndarray, name: str) -> None:
    """Raise if a number is infinite or none."""
    if not all(map(math.isfinite, values.reshape(-1).tolist())):
        raise ArgumentValueError(f"`{name}` must be finite numbers, got {values.tolist()}.")
