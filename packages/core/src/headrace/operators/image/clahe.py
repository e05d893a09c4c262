"""`clahe`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu import clahe as _cpu
from headrace.kernels.gpu import clahe as _gpu
from headrace.operators.support.argument_types import BoolArg, FloatArg, IntArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType

_BINS = 256
_MOST_TILES = 1 << 15


@operator(
    "clahe",
    inputs=Input(
        "images",
        "Gray images, of one channel, or RGB images.",
        layouts=("HWC",),
        dtypes=(DALIDataType.UINT8,),
    ),
    args=(
        Arg("tiles_x", IntArg, REQUIRED, "Number of tiles along the width."),
        Arg("tiles_y", IntArg, REQUIRED, "Number of tiles along the height."),
        Arg(
            "clip_limit",
            FloatArg,
            REQUIRED,
            "How many times the mean of its bins a tile's histogram may hold in one of them; what "
            "is more is spread over all. 0 and less: any number.",
        ),
        Arg(
            "luma_only",
            BoolArg,
            True,
            "Whether the lightness of RGB images is equalized, the L of CIE L*a*b*, rather than "
            "each channel.",
        ),
        Arg(
            "bins",
            IntArg,
            _BINS,
            "Number of bins of the histograms.",
            unsupported="it has no effect in DALI on the CPU: uint8 has 256 levels",
        ),
    ),
    output_docs=("The images, in the layout HWC.",),
)
class Clahe(SampleOperator):
    """Raises the contrast of each part of an image: equalizes histograms of tiles, up to a limit.

    Levels change by what is interpolated between the four nearest tiles. They are those of
    OpenCV's CLAHE, on both devices.

    Examples
    --------
    >>> clear = fn.clahe(images, tiles_x=8, tiles_y=8, clip_limit=2.0)
    """

    keeps_shape = True

    def infer(self, images: Spec) -> Spec:
        args = self.args
        for name in ("tiles_x", "tiles_y"):
            count = getattr(args, name)
            if not 1 <= count <= _MOST_TILES:
                raise ArgumentValueError(f"`{name}` must be from 1 to {_MOST_TILES}, got {count}.")
        if np.isnan(args.clip_limit):
            raise ArgumentValueError("`clip_limit` must be a number, got nan.")
        # A bin that may hold all pixels is not limited; more would overflow in OpenCV.
        settings = (args.tiles_x, args.tiles_y), min(args.clip_limit, _BINS), args.luma_only
        self._settings = settings
        self._on_gpu = _gpu.Clahe(*settings)
        return images

    def plan(self, c: PlanContext, images: Samples) -> Planned:
        wrong = ~np.isin(images.shapes[:, 2], (1, 3))
        if wrong.any():
            raise ShapeError(
                "Gray images, of 1 channel, or RGB images, of 3 channels, are supported, got "
                f"{images.shapes[wrong][0, 2]} channels."
            )
        return Planned(images.shapes)

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        out = c.out
        _cpu.clahe(image, *self._settings, out)
        return out

    def gpu(self, c: BatchContext, images: DeviceBatch) -> DeviceBatch:
        plan_batch(self, c, images)
        out = c.empty(images.extents, np.uint8)
        self._on_gpu.run(c.queue, images, out)
        return out
