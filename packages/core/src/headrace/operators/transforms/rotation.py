"""`transforms.rotation`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu import affine
from headrace.operators.support.argument_types import FrameFloatArg, FrameFloatListArg
from headrace.operators.support.schema import REQUIRED, Arg
from headrace.operators.support.transform import (
    CENTER,
    Parts,
    Transform,
    Values,
    check_finite,
    no_offset,
    transform,
)


@transform(
    "transforms.rotation",
    args=(
        Arg(
            "angle",
            FrameFloatArg,
            REQUIRED,
            "Angle in degrees. In planes from x towards y, which is clockwise where y points down; "
            "in space around `axis` by the right-hand rule.",
            per_frame=True,
        ),
        Arg(
            "axis",
            FrameFloatListArg,
            None,
            "Direction (x, y, z) to rotate around, of any length but 0; it makes the transform one "
            "of space. When not given, it is one of planes.",
            per_frame=True,
            shape_of="(3,)",
        ),
        CENTER,
    ),
)
class Rotation(Transform):
    """Makes an affine transform that rotates points, or puts it after another transform.

    Examples
    --------
    >>> turn = fn.transforms.rotation(angle=fn.random.uniform(range=(-20, 20)), center=(112, 112))
    """

    numbers = ("angle", "axis", "center")

    def parts(self, values: Values, rank: int) -> Parts:
        angles = values["angle"]
        if angles.shape[1] != 1:
            raise ArgumentValueError(
                f"`angle` must be one number (for each frame), got {angles.shape[1]}."
            )
        angles = np.ascontiguousarray(angles[:, 0])
        check_finite(angles)
        directions = values.get("axis")
        if directions is None:
            linear = np.empty((len(angles), 2, 2), np.float32)
            affine.turns(angles, linear)
            return linear, no_offset(2)
        if directions.shape[1] != 3:
            raise ArgumentValueError(
                f"`axis` must be 3 numbers (x, y, z), got {directions.shape[1]}."
            )
        linear = np.empty((max(len(angles), len(directions)), 3, 3), np.float32)
        if not affine.turns_about(angles, directions, linear):
            raise ArgumentValueError(
                "`axis` must be 3 finite numbers (x, y, z) that are not all 0, got "
                f"{directions.tolist()}."
            )
        return linear, no_offset(3)
