"""Handling of windows that leave the data: `out_of_bounds_policy` and `fill_values`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import OutOfRangeError, ShapeError
from headrace.kernels.plan import windows as _windows
from headrace.operators.support.argument_types import FloatListArg, StringArg
from headrace.operators.support.schema import Arg
from headrace.operators.support.windows.arithmetic import as_float32
from headrace.tensors.gpu.batch import as_contiguous

if TYPE_CHECKING:
    from headrace.operators.support.operator import Operator

_POLICIES = {
    "error": "error",
    "constant": "constant",
    "pad": "constant",
    "edge": "edge",
    "clamp": "edge",
    "reflect": "reflect_1001",
    "reflect_1001": "reflect_1001",
    "reflect_101": "reflect_101",
    "wrap": "wrap",
    "trim_to_shape": "trim_to_shape",
}

OUT_OF_BOUNDS_ARGS: tuple[Arg, ...] = (
    Arg(
        "out_of_bounds_policy",
        StringArg,
        "error",
        'What happens where the window leaves the data: ``"error"`` raises; ``"constant"`` (or '
        '``"pad"``) fills with `fill_values`; ``"edge"`` (or ``"clamp"``) repeats the outermost '
        'values; ``"reflect_1001"`` (or ``"reflect"``) mirrors with and ``"reflect_101"`` without '
        'the outermost value; ``"wrap"`` repeats the data; ``"trim_to_shape"`` shrinks the window.',
        choices=tuple(_POLICIES),
    ),
    Arg(
        "fill_values",
        FloatListArg,
        (0.0,),
        'Value outside of the data with policy ``"constant"``: one for all, or one a channel.',
    ),
)


class OutOfBounds:
    """Handling of windows that leave the data: the arguments of `OUT_OF_BOUNDS_ARGS`.

    `policy`: ``"error"``, ``"constant"``, ``"edge"``, ``"reflect_1001"``, ``"reflect_101"``,
    ``"wrap"`` or ``"trim_to_shape"``: the argument with its aliases resolved. `fill`: fill values:
    one, or one a channel.
    """

    __slots__ = ("fill", "policy")

    def __init__(self, op: Operator) -> None:
        self.policy = _POLICIES[op.args.out_of_bounds_policy]
        self.fill = tuple(map(as_float32, op.args.fill_values)) or (0.0,)

    def plan(
        self, anchors: np.ndarray, shapes: np.ndarray, extents: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The windows after the policy, and which of them now leave their samples.

        All are int64 ``(samples, ndim)``, but for the last: bool ``(samples,)``. Where a window
        leaves its sample, what is outside is to be made up according to `policy`.
        """
        outside = np.empty(len(anchors), np.bool_)
        if not _windows.leaves(
            as_contiguous(anchors), as_contiguous(shapes), as_contiguous(extents), outside
        ):
            return anchors, shapes, outside
        if self.policy == "trim_to_shape":
            first = np.clip(anchors, 0, extents)
            return first, np.clip(anchors + shapes, 0, extents) - first, np.zeros_like(outside)
        if self.policy == "error":
            index = int(outside.argmax())
            anchor, shape, extent = (tuple(a[index].tolist()) for a in (anchors, shapes, extents))
            raise OutOfRangeError(
                "Slice can't be placed out of bounds with current policy. Got: anchor "
                f"{anchor}, window shape {shape}, data shape {extent}, so that the window leaves "
                "the data. Make it smaller or choose another `out_of_bounds_policy` "
                '("pad", "trim_to_shape", ...).'
            )
        if self.policy != "constant":
            empty = outside & (extents == 0).any(axis=1) & (shapes != 0).all(axis=1)
            if empty.any():
                raise ShapeError(
                    f"The data is empty (shape {tuple(extents[int(empty.argmax())].tolist())}), so "
                    f'there is nothing that `out_of_bounds_policy="{self.policy}"` could repeat; '
                    'use "constant".'
                )
        return anchors, shapes, outside
