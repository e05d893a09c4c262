"""`rotate`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ArgumentValueError, DataTypeError, ShapeError
from penstock.kernels.cpu.warp import warp
from penstock.operators.argument_types import BOOL, DTYPE, FLOAT, FLOATS, INTERP_TYPE
from penstock.operators.image.rotation import (
    SLACK,
    Canvas,
    canvas_of_image,
    canvas_of_volume,
    common_canvas,
    image_matrix,
    volume_matrix,
)
from penstock.operators.operator import BatchContext, Operator, SampleContext, operator
from penstock.operators.schema import REQUIRED, Arg, Input, Spec
from penstock.operators.vector_arguments import vectors
from penstock.tensors.gpu.batch import plain, shape_rows
from penstock.types import DALIDataType, DALIInterpType, to_numpy_type

if TYPE_CHECKING:
    from penstock.tensors.gpu.batch import DeviceBatch

_NO_AXES = np.empty((0, 3))
_TYPES = (DALIDataType.UINT8, DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT)


@operator(
    "rotate",
    inputs=Input(
        "data",
        "Images, volumes or sequences of them.",
        # Sequences are listed because of their place: 4 axes without a layout are frames.
        layouts=("HWC", "FHWC", "DHWC", "FDHWC"),
        dtypes=_TYPES,
    ),
    args=(
        Arg(
            "angle",
            FLOAT,
            REQUIRED,
            "Angle in degrees. Images turn counter-clockwise; volumes turn around `axis` by the "
            "right-hand rule.",
            per_sample=True,
            per_frame=True,
        ),
        Arg(
            "axis",
            FLOATS,
            None,
            "Direction (x, y, z) that a volume is rotated around, of any length but 0. Volumes "
            "need it; images do without.",
            per_sample=True,
            per_frame=True,
            shape_of="(3,)",
        ),
        Arg("dtype", DTYPE, None, "Element type of the output; that of the input when not given."),
        Arg("output_dtype", DTYPE, None, "Former name of `dtype`.", deprecated="dtype"),
        Arg(
            "fill_value",
            FLOAT,
            None,
            "Value of everything outside of the input. When not given, the border is repeated.",
        ),
        Arg(
            "interp_type",
            INTERP_TYPE,
            DALIInterpType.INTERP_LINEAR,
            "How values between elements come about.",
            choices=(DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR),
        ),
        Arg(
            "keep_size",
            BOOL,
            False,
            "Whether the output has the extent of the input. Without it (and without `size`) the "
            "output is just large enough for the whole rotated input.",
        ),
        Arg(
            "size",
            FLOATS,
            None,
            "Extent of the output, (height, width) or (depth, height, width), in elements. "
            "Fractions are rounded, and dropped where the size is given as a tensor.",
            per_sample=True,
            shape_of="(H, W) or (D, H, W)",
        ),
    ),
    output_docs=("The rotated data, in the layout of the input.",),
    frames=True,
)
class Rotate(Operator):
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
        dtype = self.args.dtype
        if dtype is None:
            dtype = self.args.output_dtype
        if dtype is None:
            dtype = data.dtype
        floats = DALIDataType.FLOAT
        if dtype not in _TYPES or (dtype != data.dtype and floats not in (dtype, data.dtype)):
            allowed = [t.name for t in _TYPES if floats in (t, data.dtype) or t == data.dtype]
            raise DataTypeError(
                f"`dtype` is {dtype.name}, but the input's {data.dtype.name} can only become "
                f"{' or '.join(allowed)}. Use `fn.cast` before or after."
            )
        self._dtype = np.dtype(to_numpy_type(dtype))
        self._nearest = self.args.interp_type == DALIInterpType.INTERP_NN
        if self.args.interp_type not in (DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR):
            raise ArgumentValueError(
                f"`interp_type` is {self.args.interp_type.name}; allowed are INTERP_NN and "
                "INTERP_LINEAR."
            )
        if data.ndim == 4 and not self.given("axis"):
            raise ArgumentValueError(
                "`axis` is not given: a volume (DHWC) is rotated around a direction, such as "
                "axis=(0, 0, 1)."
            )
        self._keeps_size: bool = self.args.keep_size and not self.given("size")
        # What the frames of a sequence have in common, if there is such a thing.
        self.args.canvas = None
        return data._replace(dtype=dtype)

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        data = inputs[0]
        canvas, matrix = self._geometry(c.args, data.shape[:-1])
        shape = (*canvas, data.shape[-1])
        fill = c.args.fill_value
        if fill is None and data.size == 0 and math.prod(shape):
            raise _no_border(data.shape)
        out = c.empty(shape, self._dtype)
        warp(data, out, matrix, nearest=self._nearest, fill=fill)
        return out

    def gpu(self, c: BatchContext, *inputs: Any) -> DeviceBatch:
        from penstock.kernels.gpu.warp import warp

        data: DeviceBatch = inputs[0]
        rows = shape_rows(data)
        canvas, matrices = self._geometry_of_batch(c, np.ascontiguousarray(rows[:, :-1]))
        if self._keeps_size:
            out = c.empty(data.extents, self._dtype)
        else:
            count = max(len(canvas), len(rows))
            shapes = np.empty((count, data.ndim), np.int64)
            shapes[:, :-1], shapes[:, -1] = canvas, rows[:, -1]
            out = c.empty(tuple(shapes[0].tolist()) if count == 1 else shapes, self._dtype)
        fill = c.args.fill_value
        if fill is None and 0 in rows:
            lacking = (data.sizes() == 0) & out.shapes.all(axis=1)
            if lacking.any():
                index = int(lacking.argmax())
                raise c.located(_no_border(tuple(data.shapes[index].tolist())), index)
        warp(c.queue, data, out, matrices, nearest=self._nearest, fill=fill)
        return out

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
        from penstock.kernels.gpu import rotations

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
            sizes = self._sizes(c, rank)
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
                valid = rotations.canvases_of_images(extents, degrees, SLACK, canvas)
            else:
                valid = rotations.canvases_of_volumes(extents, degrees, axes, SLACK, canvas)
            if not valid:
                return None
        matrices = np.empty((max(count, len(canvas)), rank, rank + 1), np.float32)
        if rank == 2:
            valid = rotations.image_matrices(extents, canvas, degrees, matrices)
        else:
            valid = rotations.volume_matrices(extents, canvas, degrees, axes, matrices)
        return (canvas, matrices) if valid else None

    def _sizes(self, c: BatchContext, rank: int) -> np.ndarray | None:
        """Argument `size` of all samples; `None` where one is invalid."""
        sizes = vectors(c, "size", rank, spread=False)
        if sizes is None or not (sizes >= 0).all():
            return None
        if "size" in self.tensor_args:
            return sizes.astype(np.int64)
        return np.maximum(np.floor(sizes + 0.5), 1).astype(np.int64) if sizes.all() else None

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
            if len(size) != len(extent):
                raise ArgumentValueError(
                    f"`size` has {len(size)} numbers, {tuple(size)}; expected "
                    f"{'(depth, height, width)' if len(extent) == 3 else '(height, width)'}."
                )
            if "size" in self.tensor_args:
                if not min(size) >= 0:
                    raise ArgumentValueError(f"`size` must not be negative, got {tuple(size)}.")
                return tuple(int(s) for s in size)
            if not min(size) > 0:
                raise ArgumentValueError(f"`size` must be positive, got {tuple(size)}.")
            return tuple(max(1, math.floor(s + 0.5)) for s in size)
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


def _no_border(shape: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        f"The input of shape {shape} has no border that could be repeated; give `fill_value` or "
        "`keep_size=True`."
    )
