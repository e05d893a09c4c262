"""`rotate`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock.errors import ArgumentValueError, DataTypeError, ShapeError
from penstock.kernels.cpu.warp import warp
from penstock.operators.argument_types import BOOL, DTYPE, FLOAT, FLOATS, INTERP_TYPE
from penstock.operators.image.rotation import (
    Canvas,
    canvas_of_image,
    canvas_of_volume,
    common_canvas,
    image_matrix,
    volume_matrix,
)
from penstock.operators.operator import Operator, SampleContext, operator
from penstock.operators.schema import REQUIRED, Arg, Input, Spec
from penstock.types import DALIDataType, DALIInterpType, to_numpy_type

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
        return data._replace(dtype=dtype)

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        data = inputs[0]
        args = c.args
        extent, channels = data.shape[:-1], data.shape[-1]
        canvas = self._canvas(args, extent)
        if len(extent) == 3:
            matrix = volume_matrix(extent, canvas, args.angle, args.axis)
        else:
            matrix = image_matrix(extent, canvas, args.angle)
        fill = args.fill_value
        if fill is None and data.size == 0 and math.prod(canvas) * channels:
            raise ShapeError(
                f"The input of shape {data.shape} has no border that could be repeated; give "
                "`fill_value` or `keep_size=True`."
            )
        out = c.empty((*canvas, channels), self._dtype)
        warp(data, out, matrix, nearest=self._nearest, fill=fill)
        return out

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
        shared: tuple[int, ...] | None = getattr(args, "canvas", None)
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
