"""`transforms.crop`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.operators.support.argument_types import BoolArg, FrameFloatListArg
from headrace.operators.support.schema import Arg
from headrace.operators.support.transform import Parts, Transform, Values, transform

_CORNERS = ("from_start", "from_end", "to_start", "to_end")


def _corner(name: str, default: float, what: str) -> Arg:
    return Arg(
        name,
        FrameFloatListArg,
        (default,),
        f"{what}: a number for each axis, or one for all.",
        per_frame=True,
        shape_of="(n,)",
    )


@transform(
    "transforms.crop",
    args=(
        _corner("from_start", 0.0, "Lower coordinates (x, y, ...) of the region that is mapped"),
        _corner("from_end", 1.0, "Upper coordinates of the region that is mapped"),
        _corner("to_start", 0.0, "Where the lower coordinates go"),
        _corner("to_end", 1.0, "Where the upper coordinates go"),
        Arg(
            "absolute",
            BoolArg,
            False,
            "Whether starts that are above their ends change places with them, so that nothing is "
            "mirrored.",
        ),
    ),
)
class TransformCrop(Transform):
    """Makes an affine transform that maps a region to another, or puts it after another transform.

    Where the start of a region is also its end, the transform has infinite numbers.

    Examples
    --------
    >>> zoom = fn.transforms.crop(from_start=(50, 20), from_end=(250, 220), to_end=(224, 224))
    """

    numbers = _CORNERS

    def parts(self, values: Values, rank: int) -> Parts:
        n = max(values[name].shape[1] for name in _CORNERS)
        corners = []
        for name in _CORNERS:
            if values[name].shape[1] not in (1, n):
                raise ArgumentValueError(
                    f"`{name}` has {values[name].shape[1]} numbers; another corner has {n}. Give "
                    "one for each axis, or one for all."
                )
            corners.append(values[name])
        start, end, to_start, to_end = np.broadcast_arrays(*corners, np.empty((1, n), np.float32))[
            :4
        ]
        if self.args.absolute:
            start, end = np.minimum(start, end), np.maximum(start, end)
            to_start, to_end = np.minimum(to_start, to_end), np.maximum(to_start, to_end)
        with np.errstate(all="ignore"):
            scale = (to_end - to_start) / (end - start)
            offset = to_start - scale * start
        linear = np.zeros((len(scale), n, n), np.float32)
        linear.reshape(len(scale), n * n)[:, :: n + 1] = scale
        return linear, offset
