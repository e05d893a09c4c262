"""`coord_transform`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._later import later
from penstock.errors import ArgumentValueError, DataTypeError, ShapeError, UsageError
from penstock.operators.support.argument_types import DataTypeArg, FrameFloatListArg
from penstock.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.operators.support.transform import MOST_AXES, identities, spread
from penstock.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from penstock.kernels.cpu import points as points_on_cpu
    from penstock.tensors.gpu.batch import DeviceBatch
else:
    points_on_cpu = later("penstock.kernels.cpu.points")

_TYPES = (
    DALIDataType.FLOAT,
    DALIDataType.FLOAT64,
    DALIDataType.UINT8,
    DALIDataType.INT16,
    DALIDataType.UINT16,
    DALIDataType.INT32,
)
_NAMES = ("M", "T", "MT")


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
        self._given = [n for n in _NAMES if self.given(n)]
        self._constant: dict[int, np.ndarray] = {}
        """The map by number of coordinates, where it is the same for all."""
        return data._replace(dtype=dtype)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        n = data.shape[-1]
        if not self.tensor_args:
            matrix = self._constant_map(n)
        else:
            matrix = self._map({name: getattr(c.args, name) for name in self._given}, n)
        out = c.empty((*data.shape[:-1], len(matrix)), self._dtype)
        if out.size:
            points = np.ascontiguousarray(data).reshape(-1, n)
            points_on_cpu.map_points(points, matrix, out.reshape(-1, len(matrix)))
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        from penstock.kernels.gpu.points import map_points

        counts = data.shapes[:, -1]
        n = int(counts[0]) if len(counts) else 1
        if not self.tensor_args and (counts == n).all():
            matrices = self._constant_map(n)[np.newaxis]
        else:
            matrices = self._maps(c, counts)
        shapes = data.shapes.copy()
        shapes[:, -1] = matrices.shape[1]
        out = c.empty(shapes, self._dtype)
        map_points(c.queue, data, matrices, out)
        return out

    def _maps(self, c: BatchContext, counts: np.ndarray) -> np.ndarray:
        """The maps of all samples, float32 ``(samples, m, n + 1)``."""
        n = int(counts[0])
        alike = (counts == n).all()
        values = {}
        for name in self._given:
            try:
                values[name] = c.array(name, np.float32)
            except ShapeError:
                alike = False
        if alike:
            found = self._maps_at_once(values, n, c.size)
            if found is not None:
                return found
        each = {name: c.values(name) for name in self._given}
        maps = []
        for index, count in enumerate(counts.tolist()):
            try:
                maps.append(self._map({name: v[index] for name, v in each.items()}, count))
                if maps[-1].shape != maps[0].shape:
                    raise ShapeError(
                        f"Points of one batch have different numbers of coordinates: {counts}."
                    )
            except (ValueError, UsageError) as error:
                raise c.located(error, index) from error
        return np.stack(maps)

    def _maps_at_once(
        self, values: dict[str, np.ndarray | None], n: int, size: int
    ) -> np.ndarray | None:
        """`_maps`, where tensors are matrices and vectors of the usual shapes; else `None`."""
        whole = values.get("MT")
        if whole is not None and "MT" in self.tensor_args:
            usual = whole.ndim == 3 and whole.shape[2] == n + 1 and 1 <= whole.shape[1] <= MOST_AXES
            return np.ascontiguousarray(whole) if usual and n else None
        matrix, offset = values.get("M"), values.get("T")
        if matrix is None or "M" not in self.tensor_args or not n:
            return None
        if matrix.ndim != 3 or matrix.shape[2] != n or not 1 <= matrix.shape[1] <= MOST_AXES:
            return None
        found = np.zeros((size, matrix.shape[1], n + 1), np.float32)
        found[:, :, :n] = matrix
        if offset is not None:
            offset = offset.reshape(size, -1)
            if offset.shape[1] != 1 and offset.shape[1] != found.shape[1]:
                return None
            found[:, :, n] = offset
        return found

    def _constant_map(self, n: int) -> np.ndarray:
        found = self._constant.get(n)
        if found is None:
            found = self._map({name: getattr(self.args, name) for name in self._given}, n)
            self._constant[n] = found
        return found

    def _map(self, values: dict[str, Any], n: int) -> np.ndarray:
        """The map of points of `n` coordinates, float32 ``(m, n + 1)``."""
        if not 1 <= n <= MOST_AXES:
            raise ShapeError(f"Points have {n} coordinates; from 1 to {MOST_AXES} are allowed.")
        linear = identities(1, n)[0]
        given = values.get("MT", values.get("M"))
        if given is not None:
            single = given.ndim == 0 if isinstance(given, np.ndarray) else len(given) == 1
            if single:
                linear *= np.asarray(given, np.float32).reshape(-1)[0]
            elif "MT" in values:
                return _matrix(given, n + 1, "MT")
            else:
                linear = _matrix(given, n, "M")
        found = np.zeros((len(linear), n + 1), np.float32)
        found[:, :n] = linear
        if "T" in values:
            given = np.asarray(values["T"], np.float32)
            found[:, n] = spread(given.reshape(1, -1), len(linear), "T")[0]
        return found


def _matrix(given: Any, columns: int, name: str) -> np.ndarray:
    """A matrix that was given as numbers, or as a tensor."""
    matrix = np.asarray(given, np.float32)
    is_tensor = isinstance(given, np.ndarray)
    if is_tensor and (matrix.ndim != 2 or matrix.shape[1] != columns):
        raise ShapeError(
            f"`{name}` has the shape {matrix.shape}; expected a matrix with {columns} columns."
        )
    if not matrix.size or matrix.size % columns:
        raise ArgumentValueError(
            f"`{name}` has {matrix.size} numbers, which make no matrix with {columns} columns."
        )
    matrix = np.ascontiguousarray(matrix).reshape(-1, columns)
    if len(matrix) > MOST_AXES:
        raise ArgumentValueError(
            f"`{name}` has {len(matrix)} rows; points have at most {MOST_AXES} coordinates."
        )
    return matrix
