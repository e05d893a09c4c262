"""`roi_random_crop`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, OutOfRangeError, ShapeError
from headrace.kernels.cpu.random import draw_below
from headrace.operators.support.argument_types import IntListArg
from headrace.operators.support.arguments import rows_of
from headrace.operators.support.operator import SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.rules import at_most_one, exactly_one
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.types import DALIDataType


def _extents(name: str, default: object, doc: str) -> Arg:
    return Arg(name, IntListArg, default, doc, per_sample=True, shape_of="(axes,)")


@operator(
    "roi_random_crop",
    inputs=Input("data", "Data that is going to be cropped.", device="any", optional=True),
    args=(
        _extents("crop_shape", REQUIRED, "Shape of the window."),
        _extents("roi_start", REQUIRED, "Where the region begins."),
        _extents("roi_end", None, "Where the region ends, not included."),
        _extents("roi_shape", None, "Shape of the region, in place of `roi_end`."),
        _extents(
            "in_shape",
            None,
            "Shape of the data, in place of the input. Without either, windows may lie outside.",
        ),
    ),
    rules=(
        exactly_one(
            *("roi_end", "roi_shape"),
            said="Either ROI end or ROI shape should be defined, but not both.",
        ),
        at_most_one(
            *("data", "in_shape"),
            said="``in_shape`` argument is incompatible with providing an input.",
        ),
    ),
    output_docs=("Where the window begins, int64, shape (axes,).",),
    random=True,
    devices=("cpu",),
)
class ROIRandomCrop(SampleOperator):
    """Draws where a window of a given shape begins that has as much of a region as possible in it.

    The window lies in the region where that is larger, and has all of it in itself where it is
    smaller. A single number of an argument stands for all axes of `crop_shape`.

    Examples
    --------
    >>> start = fn.roi_random_crop(
    ...     image, roi_start=(0, 20), roi_shape=(200, 100), crop_shape=(64, 64)
    ... )
    >>> window = fn.slice(image, start, [64, 64], axes=[0, 1])
    """

    def infer(self, data: Spec | None = None) -> Spec:
        return Spec(DALIDataType.INT64, 1)

    plans_values = True

    def plan(self, c: PlanContext, data: Samples | None = None) -> Planned:
        crop = rows_of(c, "crop_shape", np.int64)
        _check_extents("Crop shape", "crop_shape", crop)
        axes = crop.shape[1]
        start = self._each(c, "roi_start", axes)
        if self.given("roi_end"):
            end = self._each(c, "roi_end", axes)
        else:
            end = start + self._each(c, "roi_shape", axes)
        room = end - start - crop
        low, steps = start + np.minimum(room, 0), np.abs(room)
        shapes = None
        if data is not None:
            if data.ndim < axes:
                raise ShapeError(f"`crop_shape` has {axes} extents for data of {data.ndim}.")
            shapes = np.broadcast_to(data.shapes[:, :axes], crop.shape)
        elif self.given("in_shape"):
            shapes = self._each(c, "in_shape", axes)
        if shapes is not None:
            _check_extents("Input shape", "in_shape", shapes)
            wrong = np.argwhere(shapes < crop)
            if len(wrong):
                k, d = wrong[0]
                raise ArgumentValueError(
                    "Cropping shape can't be bigger than the input shape. `crop_shape` is "
                    f"{crop[k, d]} along axis {d}, and the input {shapes[k, d]}."
                )
            wrong = np.argwhere((start < 0) | (end > shapes))
            if len(wrong):
                k, d = wrong[0]
                raise OutOfRangeError(
                    f"ROI can't be out of bounds. It is from {start[k, d]} to {end[k, d]} along "
                    f"axis {d}, and the input's extent is {shapes[k, d]}."
                )
            high = np.minimum(low + steps, shapes - crop)
            low = np.maximum(low, 0)
            steps = high - low
        bounds = steps + 1
        # Where only the input leaves no choice, a word is taken all the same.
        taken = np.where(room == 0, 1, np.maximum(bounds, 2))
        drawn = draw_below(taken, c.seed, c.iteration, c.indices) % bounds
        return Planned(values=low + drawn)

    def _each(self, c: PlanContext, name: str, axes: int) -> np.ndarray:
        """An argument with a number for each axis, int64 ``(samples, axes)``."""
        found = rows_of(c, name, np.int64)
        if found.shape[1] not in (1, axes):
            raise ShapeError(
                f"`{name}` has {found.shape[1]} values, and `crop_shape` {axes}: give one for each "
                "axis, or one for all."
            )
        return found if found.shape[1] == axes else np.broadcast_to(found, (c.size, axes))


def _check_extents(what: str, name: str, extents: np.ndarray) -> None:
    if extents.min(initial=0) < 0:
        k, d = np.argwhere(extents < 0)[0]
        raise ArgumentValueError(
            f"{what} can't be negative. `{name}` is {extents[k, d]} along axis {d}."
        )
