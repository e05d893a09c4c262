"""`transforms.shear`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu import affine
from headrace.operators.support.argument_types import FrameFloatListArg
from headrace.operators.support.rules import exactly_one
from headrace.operators.support.schema import Arg
from headrace.operators.support.transform import (
    CENTER,
    Parts,
    Transform,
    Values,
    identities,
    no_offset,
    transform,
)

_ORDER = "(xy, yx), or in space (xy, xz, yx, yz, zx, zy): of the first axis by the second"


@transform(
    "transforms.shear",
    args=(
        Arg(
            "shear",
            FrameFloatListArg,
            None,
            f"How far coordinates move for each unit of another one, {_ORDER}.",
            per_frame=True,
            shape_of="(2,), (2, 1) or (3, 2)",
        ),
        Arg(
            "angles",
            FrameFloatListArg,
            None,
            f"The same as angles in degrees, from -90 to 90: {_ORDER}.",
            per_frame=True,
            shape_of="(2,), (2, 1) or (3, 2)",
        ),
        CENTER,
    ),
    rules=(exactly_one("shear", "angles"),),
)
class Shear(Transform):
    """Makes an affine transform that shears, or puts it after another transform.

    Examples
    --------
    >>> slanted = fn.transforms.shear(angles=fn.random.uniform(range=(-10, 10), shape=2))
    """

    numbers = ("shear", "angles", "center")

    def check_shape(self, name: str, shape: tuple[int, ...]) -> None:
        if name != "center" and len(shape) > 1 and shape[-1] != shape[-2] - 1:
            raise ShapeError(
                f"`{name}` has the shape {shape}; expected (2,), (2, 1), or, in space, (3, 2)."
            )

    def parts(self, values: Values, rank: int) -> Parts:
        name = "shear" if "shear" in values else "angles"
        given = values[name]
        count = given.shape[1]
        if count not in (2, 6):
            raise ArgumentValueError(
                f"`{name}` has {count} numbers; expected 2, or 6 in space: {_ORDER}."
            )
        if name == "angles":
            if not ((given >= -90) & (given <= 90)).all():
                raise ArgumentValueError(
                    f"`angles` must be from -90 to 90 degrees, got {given.tolist()}."
                )
            slopes = np.empty_like(given)
            affine.tangents(given.reshape(-1), slopes.reshape(-1))
            given = slopes
        n = 2 if count == 2 else 3
        linear = identities(len(given), n)
        others = ~np.eye(n, dtype=bool)
        linear[:, others] = given
        return linear, no_offset(n)
