"""`warp_affine`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError, UsageError
from headrace.kernels.cpu import affine
from headrace.kernels.gpu import warp_matrices as _warp_matrices
from headrace.operators.support.argument_types import BoolArg, FrameFloatListArg
from headrace.operators.support.arguments import given
from headrace.operators.support.operator import BatchContext, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.operators.support.warp.warping_operator import (
    WARP_ARGS,
    WARP_LAYOUTS,
    WARP_TYPES,
    WarpingOperator,
)
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, as_contiguous
from headrace.types import DALIDataType


@operator(
    "warp_affine",
    inputs=(
        Input(
            "data", "Images, volumes or sequences of them.", layouts=WARP_LAYOUTS, dtypes=WARP_TYPES
        ),
        Input(
            "mtx",
            "In place of the argument `matrix`: ``(2, 3)``, or ``(3, 4)`` for volumes, of each "
            "sample, or with frames (F) in front. On the GPU it may be on either device; the "
            "host does not wait for one there.",
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
            "The map of coordinates (x, y) or (x, y, z), in elements: the rows of a matrix, with "
            "what is added after the others. The centre of the first element is at 0.5.",
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

    def infer(self, data: Spec, transform: Spec | None = None) -> Spec:
        if transform is not None and (self.args.matrix or "matrix" in self.tensor_args):
            raise UsageError("Give the matrix as an input or as the argument `matrix`, not both.")
        self._constant: dict[int, np.ndarray] = {}
        """A constant matrix by rank, as it is looked up with."""
        if transform is None and "matrix" not in self.tensor_args and not self.args.matrix:
            raise UsageError(
                "`matrix` is not given: give 6 numbers (12 for volumes), a tensor, or the matrix "
                "as a second input."
            )
        self._inverts = not self.args.inverse_map
        made = self.prepare(data)
        if data.ndim is not None and self.args.matrix:
            self._constant_matrix(data.ndim - 1)
        return made

    def plan(
        self, c: PlanContext, data: Samples, transform: Samples | None = None
    ) -> Planned | None:
        """Without its second input, which is on a GPU, of the shapes alone."""
        shapes = data.shapes
        rank = shapes.shape[1] - 1
        canvas = self.requested_sizes(c, rank) if self.given("size") else shapes[:, :-1]
        if self.args.matrix:
            matrices = np.broadcast_to(self._constant_matrix(rank), (len(shapes), rank, rank + 1))
            return self.planned(shapes, canvas, matrices)
        if transform is not None:
            if not transform.are_there:
                return None
            found = transform.dense
            if found is None:
                found = np.array([_checked(row[np.newaxis], rank)[0] for row in transform.rows])
        elif "matrix" in self.tensor_args:
            found = c.array("matrix", np.float32)
            assert found is not None
        else:
            return self.planned(shapes, canvas, None)
        matrices = _checked(found, rank)
        if self._inverts:
            matrices, found = np.empty_like(matrices), matrices
            if affine.inverted_each(found, matrices) >= 0:
                raise _singular()
        return self.planned(shapes, canvas, matrices)

    def gpu(self, c: BatchContext, data: DeviceBatch, transform: Any = None) -> LazyBatch:
        if isinstance(transform, LazyBatch):
            return self._by_device(c, data, plan_batch(self, c, data), transform)
        planned = plan_batch(self, c, data, *given(transform))
        matrices = planned.table[0]
        if self.args.matrix:
            matrices = as_contiguous(matrices[:1])
        return self.warped_batch(c, data, planned, matrices, as_input=not self.given("size"))

    def _by_device(
        self, c: BatchContext, data: DeviceBatch, planned: Planned, given: LazyBatch
    ) -> LazyBatch:
        """By matrices on the GPU."""
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

        matrices = _warp_matrices.DeviceMatrices(batch, fault)
        return self.warped_batch(c, data, planned, matrices, as_input=not self.given("size"))

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


def _checked(matrices: np.ndarray, rank: int) -> np.ndarray:
    """Matrices that were given as tensors, ``(samples, rank, rank + 1)``; axes of 1 are dropped
    where they come before the last two.
    """
    shape = matrices.shape[1:]
    if shape[-2:] != (rank, rank + 1) or math.prod(shape) != rank * (rank + 1):
        raise _wrong_shape(shape, rank)
    found = as_contiguous(matrices).reshape(-1, rank, rank + 1)
    return found if found.flags.aligned else found.copy()


def _wrong_shape(shape: tuple[int, ...], rank: int) -> ShapeError:
    return ShapeError(
        f"The matrix has the shape {shape}; {'volumes' if rank == 3 else 'images'} take "
        f"{(rank, rank + 1)}. A matrix for each frame has a layout that starts with F: "
        "`fn.per_frame` names it so."
    )


def _inverse(matrix: np.ndarray) -> np.ndarray:
    out = np.empty_like(matrix)
    if not affine.inverted(matrix, out):
        raise _singular()
    return out


def _singular() -> ArgumentValueError:
    return ArgumentValueError(
        "The matrix is singular: it has no inverse, as `inverse_map=False` asks for."
    )
