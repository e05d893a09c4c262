"""`random_crop_generator`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.plan.random_crop import random_windows
from headrace.operators.support.operator import SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, repeated
from headrace.operators.support.schema import Input, Spec
from headrace.operators.support.windows.random_crop import RANDOM_CROP_ARGS, random_crop_ranges
from headrace.types import DALIDataType
from headrace.types.dtypes import INTEGERS


@operator(
    "random_crop_generator",
    inputs=Input("shapes", "Shapes of images, HW or HWC.", dtypes=INTEGERS),
    args=RANDOM_CROP_ARGS,
    num_outputs=2,
    output_docs=("Where the window begins, int32: row and column.", "Its height and width, int32."),
    random=True,
    devices=("cpu",),
)
class RandomCropGenerator(SampleOperator):
    """Draws windows of images, of which it knows the shapes: those of `decoders.image_random_crop`.

    With the same `seed` they are the same.

    Examples
    --------
    >>> start, shape = fn.random_crop_generator(fn.peek_image_shape(encoded))
    >>> images = fn.decoders.image_slice(encoded, start=start, shape=shape, axes=[0, 1])
    """

    plans_values = True

    def check_constants(self) -> None:
        random_crop_ranges(self.args)

    def infer(self, shapes: Spec) -> tuple[Spec, Spec]:
        self._area, self._ratio = random_crop_ranges(self.args)
        if shapes.ndim not in (1, None):
            raise ShapeError(_expected(f"data with {shapes.ndim} dimensions"))
        return Spec(DALIDataType.INT32, 1), Spec(DALIDataType.INT32, 1)

    def plan(self, c: PlanContext, shapes: Samples) -> Planned:
        lengths = repeated(shapes.shapes, c.size)
        if lengths.shape[1] != 1 or ((lengths != 2) & (lengths != 3)).any():
            raise ShapeError(_expected(f"the shape {tuple(lengths[0].tolist())}"))
        extents = np.array([row[:2] for row in shapes.rows], np.int64).reshape(-1, 2)
        windows = random_windows(
            extents, self._area, self._ratio, self.args.num_attempts, c.seed, c.iteration, c.indices
        ).astype(np.int32)
        windows[(extents <= 0).any(axis=1)] = 0
        return Planned(values=(windows[:, :2], windows[:, 2:]))


def _expected(got: str) -> str:
    return (
        "Expected a 1D tensor with 2 or 3 values representing an input shape (HW or HWC), got "
        f"{got}."
    )
