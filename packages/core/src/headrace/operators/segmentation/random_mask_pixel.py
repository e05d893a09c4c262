"""`segmentation.random_mask_pixel`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu.mask_pixels import count_between, place_between
from headrace.kernels.cpu.random import draw_below
from headrace.operators.support.argument_types import FloatArg, IntArg
from headrace.operators.support.operator import ChunkContext, SampleOperator, operator
from headrace.operators.support.rules import at_most_one
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType
from headrace.types.dtypes import INTEGERS


@operator(
    "segmentation.random_mask_pixel",
    inputs=Input(
        "mask",
        "A mask with any number of axes.",
        dtypes=(DALIDataType.BOOL, *INTEGERS, DALIDataType.FLOAT),
    ),
    args=(
        Arg(
            "foreground",
            IntArg,
            0,
            "Whether to draw a pixel of the foreground, and not just any.",
            per_sample=True,
        ),
        Arg(
            "threshold",
            FloatArg,
            None,
            "Pixels above it are the foreground; 0 if not given.",
            per_sample=True,
        ),
        Arg(
            "value",
            IntArg,
            None,
            "In place of `threshold`: pixels equal to it are the foreground.",
            per_sample=True,
        ),
    ),
    rules=(
        at_most_one(
            *("value", "threshold"),
            said="Arguments ``value`` and ``threshold`` can not be provided together.",
        ),
    ),
    output_docs=("The place of the pixel, int64, one number for each axis.",),
    random=True,
    devices=("cpu",),
)
class RandomMaskPixel(SampleOperator):
    """Draws a pixel of a mask: of its foreground, if there is any, or of all.

    Examples
    --------
    >>> middle = fn.segmentation.random_mask_pixel(mask, foreground=fn.random.coin_flip())
    """

    def infer(self, mask: Spec) -> Spec:
        return Spec(DALIDataType.INT64, 1)

    chunked = True

    def cpu_chunk(self, c: ChunkContext, mask: Rows) -> Rows:
        shapes, sizes = mask.shapes, mask.sizes
        if not sizes.all():
            shape = tuple(shapes[sizes == 0][0].tolist())
            raise ShapeError(f"A mask of the shape {shape} has no pixels to draw from.")
        bounds, places = shapes.copy(), np.full(len(shapes), -1)
        wanted = np.flatnonzero(c.flags("foreground"))
        if len(wanted) and shapes.shape[1]:
            dtype = mask.dtype if mask.dtype != np.bool_ else np.dtype(np.uint8)
            given = zip(c.values("threshold"), c.values("value"), strict=True)
            low, high = np.array([_foreground(dtype, *each) for each in given], dtype).T.copy()
            where = mask.addresses, sizes, low, high
            counts = count_between(*where)
            wanted = wanted[counts[wanted] > 0]
            bounds[wanted, 0], bounds[wanted, 1:] = counts[wanted], 0
        # An extent of 1 takes a word, too.
        taken = np.where(bounds == 1, 1 << 32, bounds)
        drawn = draw_below(taken, c.seed, c.iteration, c.indices) % np.maximum(bounds, 1)
        if len(wanted) and shapes.shape[1]:
            places[wanted] = drawn[wanted, 0]
            place_between(*where, places)
            for axis in range(shapes.shape[1] - 1, -1, -1):
                extents = shapes[wanted, axis]
                drawn[wanted, axis] = places[wanted] % extents
                places[wanted] //= extents
        out = c.empty(np.full((len(shapes), 1), shapes.shape[1]), np.int64)
        for row, place in zip(out.rows, drawn, strict=True):
            row[:] = place
        return out


def _foreground(dtype: np.dtype, threshold: float | None, value: int | None) -> tuple[Any, Any]:
    """The least and the largest pixel of the foreground, of this type."""
    limit = np.float32(0 if threshold is None else threshold)
    if dtype.kind == "f":
        if value is not None:
            return value, value
        return (np.nan if limit == np.inf else np.nextafter(limit, np.float32(np.inf))), np.inf
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    if value is not None:
        low = high = value
    elif limit == np.inf or np.isnan(limit):
        return 1, 0
    else:
        low, high = (math.floor(limit) + 1 if np.isfinite(limit) else least), most
    low, high = max(low, least), min(high, most)
    return (low, high) if low <= high else (1, 0)
