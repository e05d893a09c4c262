"""`warp_affine`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._later import later
from penstock.errors import ArgumentValueError, ShapeError, UsageError
from penstock.operators.argument_types import ArgType, BoolArg, FloatListArg
from penstock.operators.image.warping import (
    WARP_ARGS,
    WARP_LAYOUTS,
    WARP_TYPES,
    WarpingOperator,
)
from penstock.operators.operator import BatchContext, SampleContext, operator
from penstock.operators.schema import Arg, Input, Spec
from penstock.tensors.gpu.batch import LazyBatch, plain
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.kernels.cpu import affine
    from penstock.tensors.gpu.batch import DeviceBatch
else:
    affine = later("penstock.kernels.cpu.affine")

_MATRIX = ArgType(
    FloatListArg.name,
    FloatListArg.annotation,
    FloatListArg.constant,
    lambda value: value.astype(np.float32, copy=False),
)
"""Of a tensor, the shape matters."""


@operator(
    "warp_affine",
    inputs=(
        Input(
            "data",
            "Images, volumes or sequences of them.",
            layouts=WARP_LAYOUTS,
            dtypes=WARP_TYPES,
        ),
        Input(
            "transform",
            "In place of the argument `matrix`: ``(2, 3)``, or ``(3, 4)`` for volumes, of each "
            "sample, or with frames (F) in front. On the GPU it may be on either device; nobody "
            "waits for one there.",
            dtypes=(DALIDataType.FLOAT,),
            device="any",
            optional=True,
        ),
    ),
    args=(
        Arg(
            "matrix",
            _MATRIX,
            (),
            "The map of coordinates (x, y) or (x, y, z), in elements: the rows of a matrix, with "
            "what is added behind the others. The centre of the first element is at 0.5.",
            per_sample=True,
            per_frame=True,
            shape_of="(2, 3) or (3, 4)",
        ),
        Arg(
            "inverse_map",
            BoolArg,
            True,
            "Whether the matrix maps the output to the input. Otherwise it maps the input to the "
            "output, and is inverted.",
        ),
        *WARP_ARGS,
    ),
    output_docs=("The warped data, in the layout of the input.",),
    frames=True,
)
class WarpAffine(WarpingOperator):
    """Warps images and volumes by an affine map.

    Every element of the output is looked up where the map takes its centre. The output has the
    extent of the input, unless `size` is given. A matrix for each frame, as an input, makes a
    sequence of an image that is none.

    Examples
    --------
    >>> turn = fn.transforms.rotation(angle=fn.random.uniform(range=(-20, 20)), center=(112, 112))
    >>> warped = fn.warp_affine(images, turn, size=(224, 224), fill_value=0)
    """

    def infer(self, *inputs: Spec) -> Spec:
        if len(inputs) > 1 and (self.args.matrix or "matrix" in self.tensor_args):
            raise UsageError("Give the matrix as an input or as the argument `matrix`, not both.")
        self._constant: dict[int, np.ndarray] = {}
        """A constant matrix by rank, as it is looked up with."""
        if len(inputs) == 1 and "matrix" not in self.tensor_args and not self.args.matrix:
            raise UsageError(
                "`matrix` is not given: give 6 numbers (12 for volumes), a tensor, or the matrix "
                "as a second input."
            )
        self._inverts = not self.args.inverse_map
        data = inputs[0]
        made = self.prepare(data)
        if data.ndim is not None and self.args.matrix:
            self._constant_matrix(data.ndim - 1)
        return made

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        data = inputs[0]
        rank = data.ndim - 1
        size = c.args.size
        canvas = data.shape[:-1] if size is None else self.requested_size(size, rank)
        if self.args.matrix:
            matrix = self._constant_matrix(rank)
        else:
            matrix = _checked(inputs[1] if len(inputs) > 1 else c.args.matrix, rank)
            if self._inverts:
                matrix = _inverse(matrix)
        return self.warped(c, data, canvas, matrix)

    def gpu(self, c: BatchContext, *inputs: Any) -> LazyBatch:
        data: DeviceBatch = inputs[0]
        rank = data.ndim - 1
        canvas = self._canvas(c, rank) if self.given("size") else None
        if self.args.matrix:
            matrices: Any = self._constant_matrix(rank)[np.newaxis]
        elif len(inputs) > 1:
            given = inputs[1]
            if isinstance(given, LazyBatch):
                return self._by_device(c, data, canvas, given)
            matrices = self._matrices(c, rank, given.dense, given.rows)
        else:
            matrices = self._matrices(c, rank, self._argument(c), c.values("matrix"))
        return self.warped_batch(c, data, canvas, matrices)

    def _by_device(
        self, c: BatchContext, data: DeviceBatch, canvas: np.ndarray | None, given: LazyBatch
    ) -> LazyBatch:
        """By matrices on the GPU."""
        from penstock.kernels.gpu.warp_matrices import DeviceMatrices

        shapes, rank = given.shapes, data.ndim - 1
        good = shapes.prod(axis=1) == rank * (rank + 1)
        good &= (shapes[:, -2:] == (rank, rank + 1)).all(axis=1) if given.ndim > 1 else False
        if not good.all():
            index = int(np.argmin(good))
            raise c.located(_wrong_shape(tuple(shapes[index].tolist()), rank), index)
        batch = given.materialise(c.queue)
        fault = None
        if self._inverts:

            def fault(index: int) -> BaseException:
                return c.located(_singular(), index)

        return self.warped_batch(c, data, canvas, DeviceMatrices(batch, fault))

    def _canvas(self, c: BatchContext, rank: int) -> np.ndarray:
        sizes = self.requested_sizes(c, rank)
        if sizes is not None:
            return plain(sizes)
        found = []
        for index, size in enumerate(c.values("size")):
            try:
                found.append(self.requested_size(size, rank))
            except ValueError as error:
                raise c.located(error, index) from error
        return np.array(found, np.int64).reshape(-1, rank)

    def _argument(self, c: BatchContext) -> np.ndarray | None:
        try:
            return c.array("matrix", np.float32)
        except ShapeError:
            return None

    def _matrices(
        self, c: BatchContext, rank: int, dense: np.ndarray | None, rows: Sequence[np.ndarray]
    ) -> np.ndarray:
        """Matrices of all samples that are on the host, float32 ``(samples, rank, rank + 1)``."""
        if dense is not None and dense.shape[1:] == (rank, rank + 1):
            found = plain(dense)
        else:
            found = np.empty((len(rows), rank, rank + 1), np.float32)
            for index, row in enumerate(rows):
                try:
                    found[index] = _checked(row, rank)
                except ShapeError as error:
                    raise c.located(error, index) from error
        if not self._inverts:
            return found
        inverted_each = affine.inverted_each

        out = np.empty_like(found)
        wrong = inverted_each(found, out)
        if wrong >= 0:
            raise c.located(_singular(), wrong)
        return out

    def _constant_matrix(self, rank: int) -> np.ndarray:
        """The constant matrix for data of `rank` axes besides channels."""
        found = self._constant.get(rank)
        if found is None:
            numbers = self.args.matrix
            if len(numbers) != rank * (rank + 1):
                raise ArgumentValueError(
                    f"`matrix` has {len(numbers)} numbers; {'volumes' if rank == 3 else 'images'} "
                    f"take {rank * (rank + 1)}, the rows of a matrix {(rank, rank + 1)}."
                )
            found = np.array(numbers, np.float64).astype(np.float32).reshape(rank, rank + 1)
            if self._inverts:
                found = _inverse(found)
            self._constant[rank] = found
        return found


def _checked(matrix: np.ndarray, rank: int) -> np.ndarray:
    """A matrix that was given as a tensor, ``(rank, rank + 1)``; axes of 1 in front are dropped."""
    if matrix.shape[-2:] != (rank, rank + 1) or matrix.size != rank * (rank + 1):
        raise _wrong_shape(matrix.shape, rank)
    return np.ascontiguousarray(matrix).reshape(rank, rank + 1)


def _wrong_shape(shape: tuple[int, ...], rank: int) -> ShapeError:
    return ShapeError(
        f"The matrix has the shape {shape}; {'volumes' if rank == 3 else 'images'} take "
        f"{(rank, rank + 1)}. A matrix for each frame has a layout that starts with F: "
        "`fn.per_frame` names it so."
    )


def _inverse(matrix: np.ndarray) -> np.ndarray:
    inverted = affine.inverted

    out = np.empty_like(matrix)
    if not inverted(matrix, out):
        raise _singular()
    return out


def _singular() -> ArgumentValueError:
    return ArgumentValueError(
        "The matrix is singular: it has no inverse, as `inverse_map=False` asks for."
    )
