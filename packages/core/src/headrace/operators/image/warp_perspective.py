"""`experimental.warp_perspective`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, MisusedArgumentError, ShapeError
from headrace.kernels.cpu.perspective import from_corners, warp_perspective
from headrace.kernels.gpu import perspective as _gpu
from headrace.operators.support.argument_types import (
    BoolArg,
    FloatListArg,
    FrameFloatListArg,
    InterpTypeArg,
    StringArg,
)
from headrace.operators.support.arguments import given, rows_of
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch
from headrace.types import DALIDataType, DALIInterpType

_INTERPOLATIONS = {
    DALIInterpType.INTERP_NN: "nearest",
    DALIInterpType.INTERP_LINEAR: "linear",
    DALIInterpType.INTERP_CUBIC: "cubic",
}
_BORDERS = ("constant", "replicate", "reflect", "reflect_101", "wrap")
_MOST_CHANNELS = 4


@operator(
    "experimental.warp_perspective",
    inputs=(
        Input(
            "images",
            "Images or sequences of them.",
            layouts=("HWC", "HW", "FHWC", "CHW", "FCHW"),
            dtypes=data_types("UINT8 UINT16 INT16 FLOAT"),
        ),
        Input(
            "transform",
            "In place of the argument `matrix`: ``(3, 3)`` of each sample, or with frames (F) in "
            "front. On the GPU it may be on either device.",
            dtypes=(DALIDataType.FLOAT,),
            device="any",
            optional=True,
        ),
    ),
    args=(
        Arg(
            "matrix",
            FrameFloatListArg,
            (),
            "The map of coordinates (x, y, 1), the rows of a matrix; what comes out is divided by "
            "its third number.",
            per_frame=True,
            shape_of="(3, 3)",
        ),
        Arg(
            "inverse_map",
            BoolArg,
            True,
            "Whether the matrix maps the output to the input. Otherwise it maps the input to the "
            "output.",
        ),
        Arg(
            "size",
            FloatListArg,
            None,
            "Height and width of the output in pixels, rounded, at least 1; those of the input if "
            "not given.",
            per_sample=True,
            shape_of="(2,)",
        ),
        Arg(
            "pixel_origin",
            StringArg,
            "corner",
            "Where coordinates are (0, 0): in the corner or the centre of the first pixel.",
            choices=("corner", "center"),
            said="Invalid pixel_origin argument: {}",
        ),
        Arg(
            "interp_type",
            InterpTypeArg,
            DALIInterpType.INTERP_LINEAR,
            "How values between pixels come about.",
            choices=tuple(_INTERPOLATIONS),
            said="Unknown interpolation type: {}",
        ),
        Arg(
            "border_mode",
            StringArg,
            "constant",
            "What is outside of the image.",
            choices=_BORDERS,
            said="Invalid border_mode argument: {}",
        ),
        Arg(
            "fill_value",
            FloatListArg,
            (),
            "Value with the first of these: one value, or one for each channel of HWC; 0 if "
            "not given.",
        ),
    ),
    output_docs=("The images, in the layout of the input.",),
    frames=True,
)
class WarpPerspective(SampleOperator):
    """Shows images from elsewhere: warps them by a projective map.

    A matrix for each frame, as an input, makes a sequence of an image that is none.

    Examples
    --------
    >>> tilt = np.float32([[1, 0, 0], [0, 1, 0], [0.0005, 0.001, 1]])
    >>> tilted = fn.experimental.warp_perspective(images, matrix=tilt, border_mode="reflect")
    """

    def infer(self, images: Spec, transform: Spec | None = None) -> Spec:
        args = self.args
        if transform is not None and self._has_argument:
            raise MisusedArgumentError(
                "Matrix input and `matrix` argument should not be provided at the same time."
            )
        if transform is None and not self._has_argument:
            raise ShapeError(_expected(0))
        layout = images.layout or {2: "HW", 3: "HWC"}.get(images.ndim or 0, "")
        self._planar = layout == "CHW"
        if self._planar and len(args.fill_value) > 1:
            raise MisusedArgumentError(
                "Only scalar fill_value can be provided when processing data in planar layout."
            )
        self._options: dict[str, Any] = {
            "inverse": args.inverse_map,
            "interpolation": _INTERPOLATIONS[args.interp_type],
            "border": args.border_mode,
            "fill": tuple(args.fill_value) or (0.0,),
            "planar": self._planar,
        }
        return images._replace(layout=layout)

    @property
    def _has_argument(self) -> bool:
        return bool(self.args.matrix) or "matrix" in self.tensor_args

    def plan(self, c: PlanContext, images: Samples, transform: Samples | None = None) -> Planned:
        shapes = repeated(images.shapes, c.size).copy()
        channels = 0 if shapes.shape[1] == 2 else shapes[:, 0 if self._planar else -1]
        if not self._planar and (np.asarray(channels) > _MOST_CHANNELS).any():
            raise ShapeError(
                f"Images with more than {_MOST_CHANNELS} channels are not supported in HWC, got "
                f"{np.max(channels)}; transpose them to CHW."
            )
        fills = len(self.args.fill_value)
        if fills > 1 and (np.asarray(channels) != fills).any():
            raise ShapeError(
                "Number of values provided as a fill_value should match the number of channels. "
                f"Number of channels: {np.max(channels)}. Number of values provided: {fills}."
            )
        first = int(self._planar)
        if self.given("size"):
            sizes = rows_of(c, "size", np.float64)
            if sizes.shape[1] not in (1, 2):
                raise ShapeError(
                    f'Argument "size" expected shape 2 but got {sizes.shape[1]} values: give '
                    "height and width."
                )
            if not np.isfinite(sizes).all():
                raise ArgumentValueError(f"`size` must be finite, got {sizes[0].tolist()}.")
            sizes = np.maximum(np.floor(sizes + 0.5), 1).astype(np.int64)
            if not images.shapes[:, first : first + 2].all():
                raise ShapeError("An image without pixels cannot have another size.")
            shapes[:, first : first + 2] = sizes
        if transform is not None:
            matrices = np.array([_checked(row) for row in transform.rows])
        elif not self._has_argument:  # it is on a GPU
            matrices = np.eye(3)[np.newaxis]
        elif "matrix" in self.tensor_args:
            found = c.array("matrix", np.float64)
            assert found is not None
            matrices = np.array([_checked(row) for row in found])
        else:
            if len(self.args.matrix) != 9:
                raise ShapeError(_expected(len(self.args.matrix)))
            matrices = np.array(self.args.matrix, np.float32).reshape(1, 3, 3)
        if self.args.pixel_origin == "corner":
            matrices = np.array([from_corners(matrix) for matrix in matrices])
        matrices = matrices.astype(np.float64)
        return Planned(shapes, (repeated(matrices, c.size),))

    def cpu(
        self, c: SampleContext, image: np.ndarray, transform: np.ndarray | None = None
    ) -> np.ndarray:
        out = c.out
        warp_perspective(image, out, np.array(c.row[0]), **self._options)
        return out

    def gpu(self, c: BatchContext, images: DeviceBatch, transform: Any = None) -> DeviceBatch:
        addresses = None
        if isinstance(transform, LazyBatch):
            shapes = transform.shapes
            wrong = (shapes.prod(axis=1) != 9) | (shapes[:, -1] != 3)
            if wrong.any():
                index = int(wrong.argmax())
                raise c.located(_wrong_shape(tuple(shapes[index].tolist())), index)
            addresses = transform.materialise(c.queue).pointers
            planned = plan_batch(self, c, images)
        else:
            planned = plan_batch(self, c, images, *given(transform))
        out = c.empty(planned.shapes[0], images.dtype)
        corners = self.args.pixel_origin == "corner"
        (matrices,) = planned.table
        options = {"corners": corners, **self._options}
        _gpu.warp_perspective(c.queue, images, matrices, addresses, out, **options)
        return out


def _checked(matrix: np.ndarray) -> np.ndarray:
    if matrix.shape[-2:] != (3, 3) or matrix.size != 9:
        raise _wrong_shape(matrix.shape)
    return matrix.reshape(3, 3)


def _wrong_shape(shape: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        f"Expected a uniform list of 3x3 matrices, one for each sample; got {shape}. A matrix for "
        "each frame has a layout that starts with F: `fn.per_frame` names it so."
    )


def _expected(count: int) -> str:
    return (
        f'Argument "matrix" expected shape 3 x 3 but got {count} values. Give the rows of a '
        "matrix, or a tensor, or a second input."
    )
