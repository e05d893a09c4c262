"""`resize`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.operators.support.argument_types import BoolArg, ImageTypeArg
from headrace.operators.support.lazy_image import LazyPixels
from headrace.operators.support.operator import BatchContext, SampleContext, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.resize.request import RESIZE_ARGS, ResizeRequest
from headrace.operators.support.resize.resampling import (
    RESAMPLING_ARGS,
    RESAMPLING_DTYPES,
    RESAMPLING_LAYOUTS,
)
from headrace.operators.support.resize.resizing_operator import ResizingOperator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import LazyBatch
from headrace.types import DALIDataType

_DECLARED: dict[str, Any] = {
    "inputs": Input(
        "data",
        "Images, volumes or sequences of them.",
        layouts=RESAMPLING_LAYOUTS,
        dtypes=RESAMPLING_DTYPES,
    ),
    "args": (
        *RESIZE_ARGS,
        *RESAMPLING_ARGS,
        Arg(
            "save_attrs",
            BoolArg,
            False,
            "Whether to return, as a second output, the extents before resizing.",
        ),
        Arg("image_type", ImageTypeArg, None, "Has had no effect for long.", deprecated=""),
    ),
    "num_outputs": lambda args: 2 if args.get("save_attrs") else 1,
    "output_docs": (
        "The resized data, in the layout of the input.",
        "With `save_attrs`: (height, width) or (depth, height, width) of the input, int32.",
    ),
}


@operator("resize", **_DECLARED)
class Resize(ResizingOperator):
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

    def infer(self, data: Spec) -> Spec | tuple[Spec, ...]:
        resized = self.prepare(data)
        self._request = ResizeRequest(self, self.resampler.spatial_ndim)
        if self.args.save_attrs:
            self.returns_lazy, self.chunks_lazy = (), False
            return resized, Spec(DALIDataType.INT32, 1)
        return resized

    def plan_axes(self, c: PlanContext, extents: np.ndarray) -> np.ndarray:
        return self._request.plan(c, extents, self.resampling.filters(c))

    def plan(self, c: PlanContext, data: Samples | LazyBatch) -> Planned:
        planned = super().plan(c, data)
        if self.args.save_attrs:
            count = len(planned.shapes[0])
            attributes = np.full((count, 1), self.resampler.spatial_ndim, np.int64)
            planned.shapes = (*planned.shapes, attributes)
        return planned

    def cpu(self, c: SampleContext, data: Any) -> Any:
        out = super().cpu(c, data)
        if not self.args.save_attrs:
            return out
        if isinstance(out, LazyPixels):
            out = out.materialise(c)
        extents = data.shape[self.spatial]
        attributes = c.empty((len(extents),), np.int32, 1)
        attributes[:] = extents
        return out, attributes

    def gpu(self, c: BatchContext, data: Any) -> Any:
        out = super().gpu(c, data)
        if not self.args.save_attrs:
            return out
        extents = c.queue.pinned.copy_of(data.shapes[:, self.spatial].astype(np.int32))
        attributes = c.empty((self.resampler.spatial_ndim,), np.int32, 1)
        c.queue.keep(extents)
        address = int(attributes.pointers[0])
        c.queue.runtime.copy(address, extents.ctypes.data, extents.nbytes, c.queue.stream)
        return out, attributes


@operator("experimental.resize", **_DECLARED)
class ExperimentalResize(Resize):
    """Resizes images and volumes: `resize` by the name of DALI's other implementation.

    Examples
    --------
    >>> square = fn.experimental.resize(images, size=(256, 256))
    """
