"""`transforms.translation`."""

from __future__ import annotations

from headrace.errors import ArgumentValueError
from headrace.operators.support.argument_types import FrameFloatListArg
from headrace.operators.support.schema import REQUIRED, Arg
from headrace.operators.support.transform import Parts, Transform, Values, identities, transform


@transform(
    "transforms.translation",
    old_names=("transform_translation",),
    args=(
        Arg(
            "offset",
            FrameFloatListArg,
            REQUIRED,
            "What is added to the coordinates (x, y, ...): a number for each axis.",
            per_frame=True,
            shape_of="(n,)",
        ),
    ),
)
class Translation(Transform):
    """Makes an affine transform that moves points, or puts it after another transform.

    Examples
    --------
    >>> moved = fn.transforms.translation(offset=fn.random.uniform(range=(-9, 9), shape=2))
    """

    numbers = ("offset",)

    def parts(self, values: Values, rank: int) -> Parts:
        offset = values["offset"]
        if not offset.shape[1]:
            raise ArgumentValueError("`offset` is empty; give a number for each axis.")
        return identities(1, offset.shape[1]), offset
