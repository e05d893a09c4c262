"""`coord_transform`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, ShapeError
from headrace.kernels.cpu import points as _cpu
from headrace.kernels.gpu import points as _gpu
from headrace.kernels.plan import affine_maps
from headrace.operators.support.argument_types import DataTypeArg, FrameFloatListArg
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.rules import at_most_one
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.operators.support.transform import MOST_AXES
from headrace.tensors.gpu.batch import DeviceBatch, as_contiguous
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, to_numpy_type

_NO_NUMBERS = np.empty((1, 0), np.float32)
_NO_MATRIX = 1 << 30
"""Columns of what is not a matrix."""
_TYPES = data_types("FLOAT FLOAT64 UINT8 INT16 UINT16 INT32")


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
            per_frame=True,
            shape_of="(m, n) or ()",
        ),
        Arg(
            "T",
            FrameFloatListArg,
            None,
            "Number added then: one for each coordinate, or one for all.",
            per_frame=True,
            shape_of="(m,) or ()",
        ),
        Arg(
            "MT",
            FrameFloatListArg,
            None,
            "Both in one matrix, as `fn.transforms` make it: `T` is the last column. One number "
            "multiplies all coordinates.",
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
    rules=(at_most_one("MT", "M T"),),
    output_docs=("The mapped points, in the layout of the input.",),
    frames=True,
    frames_of_args=True,
)
class CoordTransform(SampleOperator):
    """Maps points by an affine map: ``M @ point + T``.

    Arguments that are given frame by frame map points without frames once for each of these.

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
                "Use `fn.cast` after the operator for others."
            )
        if data.ndim is not None and data.ndim < 2:
            raise ShapeError(
                f"The input has {data.ndim} axes; points are at least ``(points, coordinates)``."
            )
        self._matrix = "MT" if self.given("MT") else "M"
        self._dtype = np.dtype(to_numpy_type(dtype))
        return data._replace(dtype=dtype)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        """The maps, float32 ``(samples, 6, 7)``: rows, and columns with what is added after."""
        shapes = data.shapes.copy()
        maps = np.empty((len(shapes), MOST_AXES, MOST_AXES + 1), np.float32)
        factors, shape = self._numbers(c, self._matrix, len(shapes))
        offsets, added = self._numbers(c, "T", len(shapes))
        columns = -1
        if self._matrix in self.tensor_args and shape:
            columns = (shape[1] if len(shape) == 2 else 0) or _NO_MATRIX
        elif factors.shape[1] != 1 and shape is not None:
            columns = 0
        found = affine_maps.affine_maps(
            shapes, factors, columns, self._matrix == "MT", offsets, maps
        )
        if added is not None and not offsets.shape[1]:
            found = affine_maps.OFFSET
        if found < 0:
            raise self._refused(found, data.shapes, factors, shape, offsets)
        return Planned(shapes, (maps,))

    def _numbers(
        self, c: PlanContext, name: str, size: int
    ) -> tuple[np.ndarray, tuple[int, ...] | None]:
        """An argument, float32 ``(samples, numbers)``, and the shape of a sample's value; `None`
        where it is not given.
        """
        if not self.given(name):
            return _NO_NUMBERS, None
        value = c.array(name, np.float32)
        assert value is not None
        return as_contiguous(value[:size].reshape(size, -1)), value.shape[1:]

    def _refused(
        self,
        why: int,
        shapes: np.ndarray,
        factors: np.ndarray,
        shape: tuple[int, ...] | None,
        offsets: np.ndarray,
    ) -> Exception:
        """The error for what `affine_maps` has found to be wrong."""
        name, n, count = self._matrix, int(shapes[0, -1]), factors.shape[1]
        columns = n + (name == "MT")
        if why == affine_maps.RAGGED:
            return ShapeError("Points have different numbers of coordinates.")
        if why == affine_maps.POINTS:
            return ShapeError(f"Points have {n} coordinates; from 1 to {MOST_AXES} are allowed.")
        if why == affine_maps.MATRIX:
            return ShapeError(
                f"`{name}` has the shape {shape}; expected a matrix with {columns} columns."
            )
        if why == affine_maps.NUMBERS:
            return ArgumentValueError(
                f"`{name}` has {count} numbers, which make no matrix with {columns} columns."
            )
        if why == affine_maps.ROWS:
            return ArgumentValueError(
                f"`{name}` has {count // columns} rows; points have at most {MOST_AXES} "
                "coordinates."
            )
        rows = n if shape is None or count == 1 else count // columns
        return ArgumentValueError(
            f"`T` has {offsets.shape[1]} numbers; expected {rows}, one for each axis, or one for "
            "all."
        )

    chunked = True

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows:
        out = c.out()
        assert out.flat is not None
        given, made = data.shapes[:, -1], out.shapes[:, -1]
        shapes = np.stack([data.sizes // given, given, made], axis=1)
        maps = np.asarray(c.table[0])
        like = np.empty(0, data.dtype)
        assert out.begins is not None
        _cpu.map_rows(data.addresses, shapes, like, maps, out.flat, out.begins)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        planned = plan_batch(self, c, data)
        out = c.empty(planned.shapes[0], self._dtype)
        _gpu.map_points(c.queue, data, planned.table[0], out)
        return out
