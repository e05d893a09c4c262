"""`transforms.scale`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.operators.support.argument_types import FrameFloatListArg, IntArg
from headrace.operators.support.schema import REQUIRED, Arg
from headrace.operators.support.transform import (
    CENTER,
    Parts,
    Transform,
    Values,
    no_offset,
    spread,
    transform,
)


@transform(
    "transforms.scale",
    args=(
        Arg(
            "scale",
            FrameFloatListArg,
            REQUIRED,
            "What coordinates (x, y, ...) are multiplied by: a number for each axis, or one for "
            "all.",
            per_frame=True,
            shape_of="(n,)",
        ),
        CENTER,
        Arg(
            "ndim",
            IntArg,
            None,
            "Number of axes, where `scale` is one number for all and there is no input to tell. "
            "When not given, there is one axis.",
        ),
    ),
)
class Scale(Transform):
    """Makes an affine transform that scales points, or puts it after another transform.

    Examples
    --------
    >>> smaller = fn.transforms.scale(scale=(0.5, 0.5), center=(112, 112))
    """

    numbers = ("scale", "center")

    def parts(self, values: Values, rank: int) -> Parts:
        scale = values["scale"]
        n = scale.shape[1]
        if not n:
            raise ArgumentValueError("`scale` is empty; give a number for each axis.")
        if n == 1:
            ndim = self.args.ndim
            n = rank or (ndim if ndim is not None and ndim > 0 else 1)
        scale = spread(scale, n, "scale")
        linear = np.zeros((len(scale), n, n), np.float32)
        linear.reshape(len(scale), n * n)[:, :: n + 1] = scale
        center = values.pop("center", None)
        if center is None:
            return linear, no_offset(n)
        # So DALI rounds.
        return linear, spread(center, n, "center") * (np.float32(1) - scale)
