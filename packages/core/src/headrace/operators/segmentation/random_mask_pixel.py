"""`segmentation.random_mask_pixel`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu.random import draw_below
from headrace.operators.support.argument_types import FloatArg, IntArg
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.rules import at_most_one
from headrace.operators.support.schema import Arg, Input, Spec
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

    def cpu(self, c: SampleContext, mask: np.ndarray) -> np.ndarray:
        if not mask.size:
            raise ShapeError(f"A mask of the shape {mask.shape} has no pixels to draw from.")
        bounds, places = mask.shape, np.empty(0, np.int64)
        if c.args.foreground:
            if c.args.value is not None:
                chosen = mask == c.args.value
            else:
                threshold = np.float32(0 if c.args.threshold is None else c.args.threshold)
                chosen = mask > threshold
            places = np.flatnonzero(chosen)
            if len(places):
                bounds = (len(places),)
        extents = np.array([bounds])
        taken = np.where(extents == 1, 1 << 32, extents)  # an extent of 1 takes a word, too
        (drawn,) = draw_below(taken, c.seed, c.iteration, [c.index]) % extents
        out = c.empty((mask.ndim,), np.int64)
        out[:] = np.unravel_index(places[drawn[0]], mask.shape) if len(places) else drawn
        return out
