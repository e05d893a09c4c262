"""`grid_mask`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu import grid_mask as _cpu
from headrace.kernels.gpu import grid_mask as _gpu
from headrace.operators.support.argument_types import FloatArg, IntArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType


@operator(
    "grid_mask",
    inputs=Input(
        "images",
        "Images: the first two axes are rows and columns, whatever the layout says.",
        dtypes=(DALIDataType.UINT8, DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT),
    ),
    args=(
        Arg(
            "tile",
            IntArg,
            100,
            "Distance of a square from the next one, in pixels.",
            per_sample=True,
        ),
        Arg("ratio", FloatArg, 0.5, "Extent of a square, as a share of `tile`.", per_sample=True),
        Arg("angle", FloatArg, 0.0, "Angle of the grid, in radians.", per_sample=True),
        Arg(
            "shift_x",
            FloatArg,
            0.0,
            "Shift of the turned grid along its first axis, in pixels.",
            per_sample=True,
        ),
        Arg("shift_y", FloatArg, 0.0, "The same along its second axis.", per_sample=True),
    ),
    output_docs=("The masked images, in the layout of the input.",),
)
class GridMask(SampleOperator):
    """Sets the pixels in the squares of a regular grid to zero (GridMask, arXiv:2001.04086).

    Examples
    --------
    >>> masked = fn.grid_mask(images, tile=64, angle=fn.random.uniform(range=(0, 1.57)))
    """

    def infer(self, images: Spec) -> Spec:
        if images.ndim not in (3, None):
            raise ShapeError(f"Images must have three dimensions, got {images.ndim}.")
        return images

    def plan(self, c: PlanContext, images: Samples) -> Planned:
        tile = numbers_of(c, "tile", np.int32)
        if (tile <= 0).any():
            raise ArgumentValueError(f"`tile` argument must be positive, got {tile.min()}.")
        angle, *shifts, ratio = (
            numbers_of(c, name, np.float32) for name in ("angle", "shift_x", "shift_y", "ratio")
        )
        extent = tile.astype(np.float32)
        shapes = repeated(images.shapes, c.size)
        rotation = np.cos(angle) / extent, np.sin(angle) / extent
        return Planned(shapes, (*rotation, *(shift / extent for shift in shifts), ratio))

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        out = c.out
        np.copyto(out, image)
        if out.size:
            pixels = out.view(np.uint8).reshape(*out.shape[:2], -1)
            _cpu.mask_grid(pixels, *[np.float32(number) for number in c.row])
        return out

    def gpu(self, c: BatchContext, images: DeviceBatch) -> DeviceBatch:
        planned = plan_batch(self, c, images)
        out = c.empty(np.broadcast_to(planned.shapes[0], images.shapes.shape), images.dtype)
        _gpu.mask_grid(c.queue, images, tuple(planned.table), out)
        return out
