"""`rotate`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.plan import rotations as _rotations
from headrace.operators.support.argument_types import BoolArg, FloatArg, FloatListArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import BatchContext, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.operators.support.warp.warping_operator import (
    WARP_ARGS,
    WARP_LAYOUTS,
    WARP_TYPES,
    WarpingOperator,
)
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, as_contiguous

_NO_AXES = np.empty((0, 3))


@operator(
    "rotate",
    inputs=Input(
        "data", "Images, volumes or sequences of them.", layouts=WARP_LAYOUTS, dtypes=WARP_TYPES
    ),
    args=(
        Arg(
            "angle",
            FloatArg,
            REQUIRED,
            "Angle in degrees. Images turn counter-clockwise; volumes turn around `axis` by the "
            "right-hand rule.",
            per_frame=True,
        ),
        Arg(
            "axis",
            FloatListArg,
            None,
            "Direction (x, y, z) that a volume is rotated around, of any length but 0. Volumes "
            "need it; images do without.",
            per_frame=True,
            shape_of="(3,)",
        ),
        *WARP_ARGS,
        Arg(
            "keep_size",
            BoolArg,
            False,
            "Whether the output has the extent of the input. Without it (and without `size`) the "
            "output is just large enough for the whole rotated input.",
        ),
    ),
    output_docs=("The rotated data, in the layout of the input.",),
    frames=True,
)
class Rotate(WarpingOperator):
    """Rotates images and volumes around their centres.

    A canvas that adapts to the rotation takes the parity of the input's extents, so that rotations
    by multiples of 90 degrees move pixels without blending them. Frames of one sequence share one
    canvas.

    Examples
    --------
    >>> turned = fn.rotate(images, angle=fn.random.uniform(range=(-30, 30)), fill_value=0)
    """

    def infer(self, data: Spec) -> Spec:
        made = self.prepare(data)
        if data.ndim == 4 and not self.given("axis"):
            raise ArgumentValueError(
                "`axis` is not given: a volume (DHWC) is rotated around a direction, such as "
                "axis=(0, 0, 1)."
            )
        self._keeps_size: bool = self.args.keep_size and not self.given("size")
        return made

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes
        extents = as_contiguous(shapes[:, :-1])
        degrees = self._few("angle", numbers_of(c, "angle", np.float64))
        axes = self._directions(c) if extents.shape[1] == 3 else _NO_AXES
        count = max(len(extents), len(degrees), len(axes))
        if self.given("size"):
            canvas = as_contiguous(self.requested_sizes(c, extents.shape[1]))
        elif self._keeps_size:
            canvas = extents
        else:
            canvas = self._canvases(c, extents, degrees, axes, count)
        rank = extents.shape[1]
        matrices = np.empty((max(count, len(canvas)), rank, rank + 1), np.float32)
        if rank == 2:
            valid = _rotations.image_matrices(extents, canvas, degrees, matrices)
        else:
            valid = _rotations.volume_matrices(extents, canvas, degrees, axes, matrices)
        if not valid:
            raise _invalid(degrees, axes)
        return self.planned(shapes, canvas, matrices)

    def gpu(self, c: BatchContext, data: DeviceBatch) -> LazyBatch:
        planned = plan_batch(self, c, data)
        return self.warped_batch(c, data, planned, planned.table[0], as_input=self._keeps_size)

    def _canvases(
        self, c: PlanContext, extents: np.ndarray, degrees: np.ndarray, axes: np.ndarray, count: int
    ) -> np.ndarray:
        """Canvases that hold what is rotated, int64 ``(count, rank)``.

        Frames of one sequence, which come one after the other, share one.
        """
        canvas, odd = np.empty((2, count, extents.shape[1]), np.int64)
        if extents.shape[1] == 2:
            valid = _rotations.canvases_of_images(extents, degrees, _rotations.SLACK, canvas, odd)
        else:
            valid = _rotations.canvases_of_volumes(
                extents, degrees, axes, _rotations.SLACK, canvas, odd
            )
        if not valid:
            raise _invalid(degrees, axes)
        owners = np.array(c.indices, np.int64) if count > 1 else np.zeros(1, np.int64)
        _rotations.share_canvases(canvas, odd, owners)
        return canvas

    def _few(self, name: str, values: np.ndarray) -> np.ndarray:
        """The values of an argument, of which a constant has one row for all samples."""
        return as_contiguous(values if name in self.tensor_args else values[:1])

    def _directions(self, c: PlanContext) -> np.ndarray:
        """Argument `axis`, float64 ``(samples, 3)``, or one row for all."""
        given = c.array("axis", np.float64)
        if given is None:
            raise _invalid_axis(())
        axes = self._few("axis", given)
        axes = axes.reshape(len(axes), -1)
        if axes.shape[1] != 3:
            raise _invalid_axis(axes[0].tolist())
        return axes


def _invalid(degrees: np.ndarray, axes: np.ndarray) -> ArgumentValueError:
    """Reason why the first invalid rotation is invalid."""
    with np.errstate(over="ignore", under="ignore"):
        angles, directions = degrees.astype(np.float32), axes.astype(np.float32)
    infinite = ~np.isfinite(angles)
    if infinite.any():
        angle = float(degrees[infinite.argmax()])
        return ArgumentValueError(f"`angle` must be a finite number, got {angle}.")
    good = np.isfinite(directions).all(axis=1) & directions.any(axis=1)
    return _invalid_axis(axes[good.argmin()].tolist())


def _invalid_axis(axis: Sequence[float]) -> ArgumentValueError:
    return ArgumentValueError(
        f"`axis` must be 3 finite numbers (x, y, z) that are not all 0, got {tuple(axis)}."
    )
