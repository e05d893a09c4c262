"""`resize_crop_mirror` and its former name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.operators.support.argument_types import IntArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import BatchContext, SampleContext, operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.resize.request import RESIZE_ARGS, ResizeRequest
from headrace.operators.support.resize.resampling import (
    RESAMPLING_ARGS,
    RESAMPLING_DTYPES,
    RESAMPLING_LAYOUTS,
)
from headrace.operators.support.resize.resizing_operator import ResizingOperator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.operators.support.windows.arguments import (
    CROP_ARGS,
    CROP_RULES,
    CropWindow,
    check_crop,
)
from headrace.tensors.gpu.batch import LazyBatch

if TYPE_CHECKING:
    from headrace.kernels.cpu.resample_taps import PlannedAxis
    from headrace.kernels.gpu.resample_axes import AxesSampling
    from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns

_FAR = 1 << 30

_INPUT = Input(
    "data",
    "Images, volumes or sequences of them.",
    layouts=RESAMPLING_LAYOUTS,
    dtypes=RESAMPLING_DTYPES,
)
_ARGS = (
    *RESIZE_ARGS,
    *CROP_ARGS,
    *RESAMPLING_ARGS,
    Arg(
        "mirror",
        IntArg,
        0,
        "Axes to mirror: the sum of 1 for columns, 2 for rows and 4 for the depth.",
        per_sample=True,
    ),
)
_TRAITS: dict[str, Any] = {
    "rules": CROP_RULES,
    "inputs": _INPUT,
    "output_docs": ("The mirrored window of the resized data, in the layout of the input.",),
}


@operator("resize_crop_mirror", args=_ARGS, **_TRAITS)
class ResizeCropMirror(ResizingOperator):
    """Resizes, cuts out a window and mirrors it, computing no more than the window.

    The same as `resize`, `crop` and `flip` one after the other, except that a window may leave the
    resized image, whose border is repeated there.

    Examples
    --------
    >>> crops = fn.resize_crop_mirror(
    ...     images, resize_shorter=256, crop=(224, 224), mirror=fn.random.coin_flip()
    ... )
    """

    def check_constants(self) -> None:
        check_crop(self.args)

    def infer(self, data: Spec) -> Spec:
        out = self.prepare(data)
        self._request = ResizeRequest(self, self.resampler.spatial_ndim)
        self._window = CropWindow(self, "DHW"[-self.resampler.spatial_ndim :])
        self._all_axes = (1 << self.resampler.spatial_ndim) - 1
        return out

    unplanned = ("mirror",)

    def compiled(self, c: CompiledStepContext, data: SampleColumns) -> None:
        """Nothing: axes are mirrored after the plan."""

    def plan_axes(self, c: PlanContext, extents: np.ndarray) -> np.ndarray:
        axes = self._request.plan(c, extents, self.resampling.filters(c))
        anchors, lengths = self._window.plan(c, axes["out_size"].T)
        # Windows may leave the image; how far does not matter to what they show.
        axes["begin"] = np.clip(anchors.T, -_FAR, _FAR)
        axes["length"] = np.where(extents > 0, lengths.T, 0)
        return axes

    def sample_axes(self, c: SampleContext) -> Sequence[PlannedAxis]:
        mirror = c.args.mirror & self._all_axes
        if not mirror:
            return super().sample_axes(c)
        axes = list(c.row[0])
        for bit in range(len(axes)):
            if mirror >> bit & 1:
                *sampling, begin, length, step = axes[-1 - bit]
                axes[-1 - bit] = (*sampling, begin + max(length - 1, 0), length, -step)
        return axes

    def batch_axes(self, c: BatchContext, data: LazyBatch) -> AxesSampling:
        axes = super().batch_axes(c, data)
        mirror = numbers_of(c, "mirror", np.int64)
        for bit in range(axes.rank):
            where = (mirror >> bit & 1).astype(np.bool_)
            if where.any():
                axes = axes.flipped(axes.rank - 1 - bit, where)
        return axes


@operator(
    "fast_resize_crop_mirror",
    args=tuple(replace(arg, default=False) if arg.name == "antialias" else arg for arg in _ARGS),
    hidden=True,
    deprecated="resize_crop_mirror",
    dynamic=False,
    **_TRAITS,
)
class FastResizeCropMirror(ResizeCropMirror):
    """Former name of `resize_crop_mirror`, without antialiasing unless it is asked for."""
