"""`resize_crop_mirror` and its former name."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.operators.argument_types import IntArg
from penstock.operators.batch_arguments import scalars
from penstock.operators.image.resample_sample import OutputWindow
from penstock.operators.image.resampling import (
    RESAMPLING_ARGS,
    RESAMPLING_DTYPES,
    RESAMPLING_LAYOUTS,
)
from penstock.operators.image.resize_request import RESIZE_ARGS, ResizeRequest
from penstock.operators.image.resizing_operator import Plan, ResizingOperator
from penstock.operators.operator import BatchContext, SampleContext, operator
from penstock.operators.planning import PlanArguments
from penstock.operators.schema import Arg, Input, Spec
from penstock.operators.window import CROP_ARGS, CropWindow

if TYPE_CHECKING:
    from penstock.kernels.gpu.resample_axes import AxesSampling

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
        "Which axes to mirror: the sum of 1 for columns, 2 for rows and 4 for the depth.",
        per_sample=True,
    ),
)
_TRAITS: dict[str, Any] = {
    "inputs": _INPUT,
    "output_docs": ("The mirrored window of the resized data, in the layout of the input.",),
    "defers": True,
    "takes_deferred": True,
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

    def infer(self, *inputs: Spec) -> Spec:
        out = self.prepare(inputs[0])
        self._request = ResizeRequest(self, self.resampler.spatial_ndim)
        self._window = CropWindow(self, "DHW"[-self.resampler.spatial_ndim :])
        return out

    def sample_plan(self, c: SampleContext, extents: tuple[int, ...]) -> Plan:
        axes = self.resampling.axes(c.args, self._request(c.args, extents))
        sizes = np.array([[axis.out_size for axis in axes]], np.int64)
        alone = PlanArguments(c.args, {}, (c.index,), c.seed, c.iteration)
        (anchor,), (shape,) = (found.tolist() for found in self._window.plan(alone, sizes))
        mirror = c.args.mirror
        windows = []
        last = len(axes) - 1
        for position, (begin, count) in enumerate(zip(anchor, shape, strict=True)):
            if extents[position] == 0:
                windows.append(OutputWindow(0, 0, 1))
            elif mirror >> (last - position) & 1:
                windows.append(OutputWindow(begin + count - 1, count, -1))
            else:
                windows.append(OutputWindow(begin, count, 1))
        return axes, windows

    def batch_plan(self, c: BatchContext, extents: np.ndarray) -> AxesSampling:
        filters = self.resampling.batch_filters(c)
        found = self._request.batch(c, extents, filters)
        sizes = np.ascontiguousarray(found["out_size"].T)
        if self._window.differ:
            sizes = np.broadcast_to(sizes, (c.size, len(extents)))
        anchors, lengths = self._window.plan(c, sizes)
        # Windows may leave the image; how far does not matter to what they show.
        anchors = np.clip(anchors, -_FAR, _FAR)
        lengths = np.where(extents.T > 0, lengths, 0)
        axes = self.sampling(c, found).window(anchors, lengths)
        mirror = scalars(c, "mirror", np.int64)
        assert mirror is not None
        if mirror.any():
            last = len(extents) - 1
            for position in range(last + 1):
                axes = axes.flipped(position, (mirror >> (last - position) & 1).astype(np.bool_))
        return axes


@operator(
    "fast_resize_crop_mirror",
    args=tuple(replace(arg, default=False) if arg.name == "antialias" else arg for arg in _ARGS),
    hidden=True,
    deprecated="resize_crop_mirror",
    **_TRAITS,
)
class FastResizeCropMirror(ResizeCropMirror):
    """Former name of `resize_crop_mirror`, without antialiasing unless it is asked for."""
