"""`coord_transform`."""

from __future__ import annotations

import math

import numpy as np

from penstock.errors import ArgumentValueError, DataTypeError, ShapeError, UsageError
from penstock.kernels.cpu import points as points_on_cpu
from penstock.operators.support.argument_types import DataTypeArg, FrameFloatListArg
from penstock.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.operators.support.transform import MOST_AXES, spread
from penstock.tensors.gpu.batch import DeviceBatch
from penstock.types import DALIDataType, to_numpy_type

_TYPES = (
    DALIDataType.FLOAT,
    DALIDataType.FLOAT64,
    DALIDataType.UINT8,
    DALIDataType.INT16,
    DALIDataType.UINT16,
    DALIDataType.INT32,
)


@operator(
    "coord_transform",
    inputs=Input(
        "data", "Points: the last axis has the coordinates, 1 to 6 of them.", dtypes=_TYPES
    ),
    args=(
        Arg(
            "M",
            FrameFloatListArg,
            None,
            "The matrix that coordinates are multiplied by, row by row, as many rows as the output "
            "has coordinates; or one number for all of them.",
            per_sample=True,
            per_frame=True,
            shape_of="(m, n) or ()",
        ),
        Arg(
            "T",
            FrameFloatListArg,
            None,
            "What is added then: a number for each coordinate, or one for all.",
            per_sample=True,
            per_frame=True,
            shape_of="(m,) or ()",
        ),
        Arg(
            "MT",
            FrameFloatListArg,
            None,
            "Both in one matrix, as `fn.transforms` make it: `T` is the last column. One number "
            "multiplies all coordinates.",
            per_sample=True,
            per_frame=True,
            shape_of="(m, n + 1) or ()",
        ),
        Arg(
            "dtype",
            DataTypeArg,
            DALIDataType.FLOAT,
            "Element type of the output: FLOAT, or that of the input, for which numbers are "
            "rounded, halves away from zero, and saturate.",
        ),
    ),
    output_docs=("The mapped points, in the layout of the input.",),
    frames=True,
)
class CoordTransform(SampleOperator):
    """Maps points by an affine map: ``M @ point + T``.

    Examples
    --------
    >>> turn = fn.transforms.rotation(angle=30, center=(112, 112))
    >>> turned = fn.coord_transform(landmarks, MT=turn)
    """

    def infer(self, data: Spec) -> Spec:
        dtype = self.args.dtype
        if dtype not in (DALIDataType.FLOAT, data.dtype):
            raise DataTypeError(
                f"`dtype` is {dtype.name}; allowed are FLOAT and the input's {data.dtype.name}. "
                "Use `fn.cast` behind the operator for others."
            )
        if self.given("MT") and (self.given("M") or self.given("T")):
            raise UsageError("`MT` is `M` and `T` in one; give it, or these.")
        if data.ndim is not None and data.ndim < 2:
            raise ShapeError(
                f"The input has {data.ndim} axes; points are at least ``(points, coordinates)``."
            )
        self._dtype = np.dtype(to_numpy_type(dtype))
        return data._replace(dtype=dtype)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        """The maps, float32 ``(samples, 6, 7)``: rows, and columns with what is added behind."""
        shapes = data.shapes.copy()
        size, n = len(shapes), int(shapes[0, -1])
        if size > 1 and (shapes[:, -1] != n).any():
            raise ShapeError("Points have different numbers of coordinates.")
        if not 1 <= n <= MOST_AXES:
            raise ShapeError(f"Points have {n} coordinates; from 1 to {MOST_AXES} are allowed.")
        maps = np.zeros((size, MOST_AXES, MOST_AXES + 1), np.float32)
        maps.reshape(size, -1)[:, : n * (MOST_AXES + 2) : MOST_AXES + 2] = 1  # identities
        name, columns = ("MT", n + 1) if self.given("MT") else ("M", n)
        given, offset = c.array(name, np.float32), c.array("T", np.float32)
        rows = n
        if given is not None:
            factors = given[:size].reshape(size, -1)
            if factors.shape[1] == 1 and not (name in self.tensor_args and given.ndim > 1):
                maps[:, :n, :n] *= factors[:, :, np.newaxis]
            else:
                found = self._matrices(given[:size], name, columns)
                rows = found.shape[1]
                maps[:, :rows, :columns] = found
        if offset is not None:
            maps[:, :rows, n] = spread(offset[:size].reshape(size, -1), rows, "T")
        shapes[:, -1] = rows
        return Planned(shapes, (maps,))

    def _matrices(self, given: np.ndarray, name: str, columns: int) -> np.ndarray:
        """Matrices of what was given, numbers or tensors: float32 ``(samples, rows, columns)``."""
        shape = given.shape[1:]
        if name in self.tensor_args and (len(shape) != 2 or shape[1] != columns):
            raise ShapeError(
                f"`{name}` has the shape {shape}; expected a matrix with {columns} columns."
            )
        count = math.prod(shape)
        if not count or count % columns:
            raise ArgumentValueError(
                f"`{name}` has {count} numbers, which make no matrix with {columns} columns."
            )
        if count // columns > MOST_AXES:
            raise ArgumentValueError(
                f"`{name}` has {count // columns} rows; points have at most {MOST_AXES} "
                "coordinates."
            )
        return given.reshape(len(given), -1, columns)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.out
        if out.size:
            points = np.ascontiguousarray(data).reshape(-1, data.shape[-1])
            points_on_cpu.map_points(points, c.row[0], out.reshape(-1, out.shape[-1]))
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        from penstock.kernels.gpu.points import map_points

        planned = plan_batch(self, c, data)
        out = c.empty(planned.shapes[0], self._dtype)
        map_points(c.queue, data, planned.table[0], out)
        return out
