"""`experimental.dilate` and `experimental.erode`."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu import morphology as _cpu
from headrace.kernels.gpu import morphology as _gpu
from headrace.operators.support.argument_types import IntArg, IntListArg, StringArg
from headrace.operators.support.filter_windows import for_each_axis
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import DeviceBatch

_BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")
_MOST = 1 << 15
_DECLARED: dict[str, Any] = {
    "inputs": Input(
        "images",
        "Images or sequences of them.",
        layouts=("HW", "HWC", "FHWC", "CHW", "FCHW"),
        dtypes=data_types("UINT8 UINT16 FLOAT"),
    ),
    "args": (
        Arg(
            "mask_size",
            IntListArg,
            (3, 3),
            "Width and height of the window; one number stands for both.",
            per_frame=True,
            shape_of="() or (2,)",
        ),
        Arg(
            "anchor",
            IntListArg,
            (-1, -1),
            "Column and row of the window that lie on the pixel; -1 is the middle.",
            per_frame=True,
            shape_of="() or (2,)",
        ),
        Arg(
            "iterations",
            IntArg,
            1,
            "How often it is done; each time but the first makes the window larger by its size "
            "less one.",
        ),
        Arg(
            "border_mode",
            StringArg,
            "constant",
            f"What is outside of the image: {', '.join(_BORDERS)}. The first of these leaves it "
            "out of the window.",
            choices=_BORDERS,
            said='Invalid border_mode argument: "{}"',
        ),
    ),
    "output_docs": ("The images, in the layout of the input.",),
    "frames": True,
}


class _Morphology(SampleOperator):
    """Gives each pixel the largest or the smallest value in a window."""

    keeps_shape = True
    largest: ClassVar[bool]

    def check_constants(self) -> None:
        args = self.args
        if args.iterations < 1:
            raise ArgumentValueError(f"`iterations` must be at least 1, got {args.iterations}.")

    def infer(self, images: Spec) -> Spec:
        layout = images.layout or {2: "HW", 3: "HWC"}.get(images.ndim or 0, "")
        self._options: dict[str, Any] = {
            "largest": self.largest,
            "border": self.args.border_mode,
            "planar": layout == "CHW",
        }
        return images._replace(layout=layout)

    def plan(self, c: PlanContext, images: Samples) -> Planned:
        kind, size = np.dtype(np.int64), c.size
        windows = repeated(for_each_axis(self, c, "mask_size", kind, 2)[:, ::-1], size)
        anchors = repeated(for_each_axis(self, c, "anchor", kind, 2)[:, ::-1], size)
        wrong = (windows < 1) | (windows > _MOST)
        if wrong.any():
            raise ArgumentValueError(
                f"`mask_size` must be from 1 to {_MOST}, got {windows[wrong][0]}."
            )
        anchors = np.where(anchors == -1, windows // 2, anchors)
        wrong = (anchors < 0) | (anchors >= windows)
        if wrong.any():
            raise ArgumentValueError(
                f"`anchor` must lie in the window, which has the extent {windows[wrong][0]}, or be "
                f"-1, its middle; got {anchors[wrong][0]}."
            )
        times = self.args.iterations
        return Planned(repeated(images.shapes, size), ((windows - 1) * times + 1, anchors * times))

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        out = c.out
        _cpu.slide(image, out, *c.row, **self._options)
        return out

    def gpu(self, c: BatchContext, images: DeviceBatch) -> DeviceBatch:
        windows, before = plan_batch(self, c, images).table
        out = c.empty(images.extents, images.dtype)
        _gpu.slide(c.queue, images, windows, before, out, **self._options)
        return out


@operator("experimental.dilate", **_DECLARED)
class Dilate(_Morphology):
    """Gives each pixel the largest value in a window around it: what is bright grows.

    Examples
    --------
    >>> thicker = fn.experimental.dilate(masks, mask_size=[5, 3])
    """

    largest = True


@operator("experimental.erode", **_DECLARED)
class Erode(_Morphology):
    """Gives each pixel the smallest value in a window around it: what is bright shrinks.

    Examples
    --------
    >>> thinner = fn.experimental.erode(masks, iterations=2, border_mode="reflect")
    """

    largest = False
