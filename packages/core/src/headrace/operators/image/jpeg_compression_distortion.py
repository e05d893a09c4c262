"""`jpeg_compression_distortion`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu import jpeg_compression as _cpu
from headrace.kernels.gpu import jpeg_compression as _gpu
from headrace.operators.support.argument_types import IntArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType


@operator(
    "jpeg_compression_distortion",
    inputs=Input(
        "images",
        "RGB images or sequences of them.",
        layouts=("HWC", "FHWC"),
        dtypes=(DALIDataType.UINT8,),
    ),
    args=(
        Arg(
            "quality",
            IntArg,
            50,
            "Quality of the JPEG, from 1 to 100, the best; what is beyond is taken as the nearest "
            "of these.",
            per_sample=True,
        ),
    ),
    output_docs=("The images, in the layout of the input.",),
    frames=True,
)
class JpegCompressionDistortion(SampleOperator):
    """Shows images as they come back from JPEG files: with blocks, and colours of half resolution.

    Levels are those that libjpeg-turbo gives for 4:2:0 chroma, on both devices.

    Examples
    --------
    >>> worse = fn.jpeg_compression_distortion(images, quality=20)
    """

    keeps_shape = True

    def plan(self, c: PlanContext, images: Samples) -> Planned:
        shapes = images.shapes
        if (shapes[:, 2] != 3).any():
            raise ShapeError(
                "Invalid number of channels: expected images in RGB, of 3 channels, got "
                f"{shapes[shapes[:, 2] != 3][0, 2]}. `fn.color_space_conversion` makes RGB."
            )
        qualities = np.clip(numbers_of(c, "quality", np.int64), 1, 100)
        return Planned(repeated(shapes, c.size), (qualities,))

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        out = c.out
        _cpu.compress(image, c.row[0], out)
        return out

    def gpu(self, c: BatchContext, images: DeviceBatch) -> DeviceBatch:
        (qualities,) = plan_batch(self, c, images).table
        out = c.empty(images.extents, np.uint8)
        _gpu.compress(c.queue, images, qualities, out)
        return out
