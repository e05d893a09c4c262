"""`rotate`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._later import later
from penstock.errors import ArgumentValueError
from penstock.operators.argument_types import BoolArg, FloatArg, FloatListArg
from penstock.operators.image.rotation import (
    SLACK,
    Canvas,
    canvas_of_image,
    canvas_of_volume,
    common_canvas,
    image_matrix,
    volume_matrix,
)
from penstock.operators.image.warping import (
    WARP_ARGS,
    WARP_LAYOUTS,
    WARP_TYPES,
    WarpingOperator,
)
from penstock.operators.operator import BatchContext, SampleContext, operator
from penstock.operators.schema import REQUIRED, Arg, Input, Spec
from penstock.operators.vector_arguments import vectors
from penstock.tensors.gpu.batch import plain, shape_rows

if TYPE_CHECKING:
    from penstock.kernels.gpu import rotations as _rotations
    from penstock.tensors.gpu.batch import DeviceBatch, LazyBatch
else:
    _rotations = later("penstock.kernels.gpu.rotations")
_NO_AXES = np.empty((0, 3))


@operator(
    "rotate",
    inputs=Input(
        "data",
        "Images, volumes or sequences of them.",
        layouts=WARP_LAYOUTS,
        dtypes=WARP_TYPES,
    ),
    args=(
        Arg(
            "angle",
            FloatArg,
            REQUIRED,
            "Angle in degrees. Images turn counter-clockwise; volumes turn around `axis` by the "
            "right-hand rule.",
            per_sample=True,
            per_frame=True,
        ),
        Arg(
            "axis",
            FloatListArg,
            None,
            "Direction (x, y, z) that a volume is rotated around, of any length but 0. Volumes "
            "need it; images do without.",
            per_sample=True,
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

    def infer(self, *inputs: Spec) -> Spec:
        data = inputs[0]
        made = self.prepare(data)
        if data.ndim == 4 and not self.given("axis"):
            raise ArgumentValueError(
                "`axis` is not given: a volume (DHWC) is rotated around a direction, such as "
                "axis=(0, 0, 1)."
            )
        self._keeps_size: bool = self.args.keep_size and not self.given("size")
        # What the frames of a sequence have in common, if there is such a thing.
        self.args.canvas = None
        return made

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        data = inputs[0]
        return self.warped(c, data, *self._geometry(c.args, data.shape[:-1]))

    def gpu(self, c: BatchContext, *inputs: Any) -> LazyBatch:
        data: DeviceBatch = inputs[0]
        extents = np.ascontiguousarray(shape_rows(data)[:, :-1])
        canvas, matrices = self._geometry_of_batch(c, extents)
        return self.warped_batch(c, data, None if self._keeps_size else canvas, matrices)

    def _geometry(self, args: Any, extent: tuple[int, ...]) -> tuple[tuple[int, ...], np.ndarray]:
        """Canvas, and the matrix that looks its points up in the input."""
        canvas = self._canvas(args, extent)
        if len(extent) == 3:
            return canvas, volume_matrix(extent, canvas, args.angle, args.axis)
        return canvas, image_matrix(extent, canvas, args.angle)

    def _geometry_of_batch(
        self, c: BatchContext, extents: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Canvases, int64 ``(samples, rank)``, and float32 matrices of all samples.

        Where something is the same for all, like perhaps their `extents`, there is one row of it.
        """
        found = self._geometry_at_once(c, extents)
        return self._geometry_of_each(c, extents) if found is None else found

    def _geometry_at_once(
        self, c: BatchContext, extents: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """`_geometry_of_batch`, or `None` where an argument of a sample is invalid."""
        angles, axes = vectors(c, "angle", 1, spread=False), _NO_AXES
        rank = extents.shape[1]
        if rank == 3 and angles is not None:
            found = vectors(c, "axis", 3, spread=False)
            angles, axes = (None, axes) if found is None else (angles, plain(found))
        if angles is None:
            return None
        degrees = plain(angles.reshape(-1))
        count = max(len(extents), len(degrees), len(axes))
        shared = c.array("canvas", np.int64)
        if self.given("size"):
            sizes = self.requested_sizes(c, rank)
            if sizes is None:
                return None
            canvas = plain(sizes)
        elif self._keeps_size:
            canvas = extents
        elif shared is not None:
            canvas = plain(shared)
        else:
            canvas = np.empty((count, rank), np.int64)
            if rank == 2:
                valid = _rotations.canvases_of_images(extents, degrees, SLACK, canvas)
            else:
                valid = _rotations.canvases_of_volumes(extents, degrees, axes, SLACK, canvas)
            if not valid:
                return None
        matrices = np.empty((max(count, len(canvas)), rank, rank + 1), np.float32)
        if rank == 2:
            valid = _rotations.image_matrices(extents, canvas, degrees, matrices)
        else:
            valid = _rotations.volume_matrices(extents, canvas, degrees, axes, matrices)
        return (canvas, matrices) if valid else None

    def _geometry_of_each(
        self, c: BatchContext, extents: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """`_geometry_of_batch` one by one: raises what is wrong with a sample, if anything is."""
        names = ("angle", "axis", "size", "keep_size", "canvas")
        values = {name: c.values(name) for name in names}
        found = []
        extents = np.broadcast_to(extents, (c.size, extents.shape[1]))
        for index, extent in enumerate(extents.tolist()):
            args = SimpleNamespace(**{name: values[name][index] for name in names})
            try:
                found.append(self._geometry(args, tuple(extent)))
            except ValueError as error:
                raise c.located(error, index) from error
        return (
            np.array([canvas for canvas, _ in found], np.int64).reshape(extents.shape),
            np.stack([matrix for _, matrix in found]),
        )

    def _canvas(self, args: Any, extent: tuple[int, ...]) -> tuple[int, ...]:
        rotated = self._rotated_canvas(args, extent)
        size = args.size
        if size is not None:
            return self.requested_size(size, len(extent))
        if args.keep_size:
            return extent
        shared: tuple[int, ...] | None = args.canvas
        return shared if shared is not None else common_canvas((rotated,))

    def _rotated_canvas(self, args: Any, extent: Sequence[int]) -> Canvas:
        """Check the rotation and return the canvas it needs."""
        if not math.isfinite(args.angle):
            raise ArgumentValueError(f"`angle` must be a finite number, got {args.angle}.")
        if len(extent) == 2:
            return canvas_of_image(extent, args.angle)
        axis = args.axis if args.axis is not None else ()
        if len(axis) != 3 or not all(map(math.isfinite, axis)) or not any(axis):
            raise ArgumentValueError(
                f"`axis` must be 3 finite numbers (x, y, z) that are not all 0, got {tuple(axis)}."
            )
        return canvas_of_volume(extent, args.angle, axis)

    def shared_by_frames(self, frame: np.ndarray, arguments: Sequence[Any]) -> dict[str, Any]:
        """Argument that gives all frames of a sequence the same shape.

        Parameters
        ----------
        frame
            Any one frame.
        arguments
            Arguments of every frame.
        """
        canvases = [self._rotated_canvas(args, frame.shape[:-1]) for args in arguments]
        return {"canvas": common_canvas(canvases)}
