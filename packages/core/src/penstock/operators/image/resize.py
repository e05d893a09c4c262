"""`resize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.operators.argument_types import BOOL, IMAGE_TYPE
from penstock.operators.deferred import DeferredImage, pixels
from penstock.operators.image.resample_sample import SampleResampler
from penstock.operators.image.resampling import (
    RESAMPLING_ARGS,
    RESAMPLING_DTYPES,
    RESAMPLING_LAYOUTS,
    Resampling,
)
from penstock.operators.image.resize_request import RESIZE_ARGS, ResizeRequest
from penstock.operators.image.resized_image import ResizedImage
from penstock.operators.operator import Operator, SampleContext, operator
from penstock.operators.schema import Arg, Input, Spec
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.kernels.cpu.resample_taps import AxisSampling


@operator(
    "resize",
    inputs=Input(
        "data",
        "Images, volumes or sequences of them.",
        layouts=RESAMPLING_LAYOUTS,
        dtypes=RESAMPLING_DTYPES,
    ),
    args=(
        *RESIZE_ARGS,
        *RESAMPLING_ARGS,
        Arg(
            "save_attrs",
            BOOL,
            False,
            "Whether to return, as a second output, the extents before resizing.",
        ),
        Arg("image_type", IMAGE_TYPE, None, "Has had no effect for long.", deprecated=""),
    ),
    num_outputs=lambda args: 2 if args.get("save_attrs") else 1,
    output_docs=(
        "The resized data, in the layout of the input.",
        "With `save_attrs`: (height, width) or (depth, height, width) of the input, int32.",
    ),
    defers=True,
    takes_deferred=True,
)
class Resize(Operator):
    """Resizes images and volumes.

    The size is given in one of four ways: `size`, any of `resize_x`, `resize_y` and `resize_z`,
    `resize_shorter`, or `resize_longer`. Extents are rounded to whole pixels, and are at least 1.

    Pixel i covers the coordinates from i to i + 1, so edges meet edges and not centres; outside of
    the image its border is repeated. When an axis shrinks, its filter widens by as much
    (`antialias`), and every pixel of the source has its weight in the output.

    Followed by `crop`, `crop_mirror_normalize` or another operator that reads a part of it only,
    just that part is computed, and an image decoder in front decodes no more than it needs.

    Examples
    --------
    >>> square = fn.resize(images, size=(256, 256))
    >>> shorter = fn.resize(images, resize_shorter=256, interp_type=types.INTERP_CUBIC)
    >>> upper_half = fn.resize(
    ...     images, size=(128, 256), roi_start=(0, 0), roi_end=(0.5, 1), roi_relative=True
    ... )
    """

    def infer(self, *inputs: Spec) -> Spec | tuple[Spec, ...]:
        from penstock.kernels.cpu import resample

        data = inputs[0]
        self._kernel = resample
        self._resampler = SampleResampler(data.layout)
        self._request = ResizeRequest(self, self._resampler.spatial_ndim)
        self._resampling = Resampling(self, data.dtype)
        self._image = data.layout == "HWC"
        resized = data._replace(dtype=self._resampling.dtype)
        if self.args.save_attrs:
            return resized, Spec(DALIDataType.INT32, 1)
        return resized

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> Any:
        data = inputs[0]
        extents = self._resampler.spatial(data.shape)
        axes = self._resampling.axes(c.args, self._request(c.args, extents))
        resampling = self._resampling
        if data.dtype == resampling.numpy_dtype and all(axis.copies for axis in axes):
            out = pixels(data)
        else:
            out = c.empty(self._resampler.out_shape(data.shape, axes), resampling.numpy_dtype)
            if self._image:
                self._resized(c, data, axes).write(out)
            else:
                self._resampler.run(c, data, axes, out, resampling.rounds_to)
        if not self.args.save_attrs:
            return out
        attributes = c.empty((len(extents),), np.int32, 1)
        attributes[:] = extents
        return out, attributes

    def defer(self, c: SampleContext, *inputs: np.ndarray | DeferredImage) -> Any:
        data = inputs[0]
        axes = self._resampling.axes(c.args, self._request(c.args, data.shape[:2]))
        if data.dtype == self._resampling.numpy_dtype and all(axis.copies for axis in axes):
            return data
        return self._resized(c, data, axes)

    def _resized(
        self, c: SampleContext, data: np.ndarray | DeferredImage, axes: Sequence[AxisSampling]
    ) -> ResizedImage:
        resampling = self._resampling
        rows, columns = axes
        return ResizedImage(
            c, self._kernel, data, rows, columns, resampling.numpy_dtype, resampling.rounds_to
        )
