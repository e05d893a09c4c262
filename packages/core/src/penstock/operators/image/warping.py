"""What operators have in common that look every element up where an affine map says."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._later import later
from penstock.errors import ArgumentValueError, DataTypeError, ShapeError, UsageError
from penstock.kernels.cpu.warp import warp
from penstock.operators.argument_types import DataTypeArg, FloatArg, FloatListArg, InterpTypeArg
from penstock.operators.operator import BatchContext, Operator, SampleContext
from penstock.operators.schema import Arg, Spec
from penstock.operators.vector_arguments import vectors
from penstock.tensors.gpu.batch import plain, shape_rows
from penstock.types import DALIDataType, DALIInterpType, to_numpy_type

if TYPE_CHECKING:
    from penstock.kernels.gpu import warp as _gpu_warp
    from penstock.kernels.gpu import warp_request as _warp_request
    from penstock.operators.image import warped_batch as _warped_batch
    from penstock.tensors.gpu.batch import DeviceBatch, LazyBatch
else:
    _gpu_warp = later("penstock.kernels.gpu.warp")
    _warp_request = later("penstock.kernels.gpu.warp_request")
    _warped_batch = later("penstock.operators.image.warped_batch")
# Sequences are listed because of their place: 4 axes without a layout are frames.
WARP_LAYOUTS = ("HWC", "FHWC", "DHWC", "FDHWC")
WARP_TYPES = (DALIDataType.UINT8, DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT)
WARP_ARGS: tuple[Arg, ...] = (
    Arg(
        "dtype", DataTypeArg, None, "Element type of the output; that of the input when not given."
    ),
    Arg("output_dtype", DataTypeArg, None, "Former name of `dtype`.", deprecated="dtype"),
    Arg(
        "fill_value",
        FloatArg,
        None,
        "Value of everything outside of the input. When not given, the border is repeated.",
    ),
    Arg(
        "interp_type",
        InterpTypeArg,
        DALIInterpType.INTERP_LINEAR,
        "How values between elements come about.",
        choices=(DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR),
    ),
    Arg(
        "size",
        FloatListArg,
        None,
        "Extent of the output, (height, width) or (depth, height, width), in elements. "
        "Fractions are rounded, and dropped where the size is given as a tensor.",
        per_sample=True,
        shape_of="(H, W) or (D, H, W)",
    ),
)


class WarpingOperator(Operator):
    """Base of operators that warp images and volumes.

    A sub-class calls `prepare` in its `infer`, and `warped` and `warped_batch` when it knows canvas
    and matrix.
    """

    def prepare(self, data: Spec) -> Spec:
        """Get ready for inputs like `data`; the `Spec` of the output."""
        dtype = self.args.dtype
        if dtype is not None and self.args.output_dtype is not None:
            raise UsageError("`output_dtype` is the former name of `dtype`; give only `dtype`.")
        if dtype is None:
            dtype = self.args.output_dtype
        if dtype is None:
            dtype = data.dtype
        floats = DALIDataType.FLOAT
        if dtype not in WARP_TYPES or (dtype != data.dtype and floats not in (dtype, data.dtype)):
            allowed = [t.name for t in WARP_TYPES if floats in (t, data.dtype) or t == data.dtype]
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
        return data._replace(dtype=dtype)

    def warped(
        self, c: SampleContext, data: np.ndarray, canvas: tuple[int, ...], matrix: np.ndarray
    ) -> np.ndarray:
        """One sample, warped to a canvas of these extents by a matrix as `warp` takes it."""
        shape = (*canvas, data.shape[-1])
        fill = c.args.fill_value
        if fill is None and data.size == 0 and math.prod(shape):
            raise _no_border(data.shape)
        out = c.empty(shape, self._dtype)
        warp(data, out, matrix, nearest=self._nearest, fill=fill)
        return out

    def warped_batch(
        self, c: BatchContext, data: DeviceBatch, canvas: np.ndarray | None, matrices: Any
    ) -> LazyBatch:
        """All samples of a batch, as a recipe; frames of sequences in memory.

        Parameters
        ----------
        c
            The batch.
        data
            The samples.
        canvas
            Extents of the output, int64 ``(samples, rank)``, or one row for all; `None` for those
            of the samples.
        matrices
            As `penstock.kernels.gpu.warp.warp` takes them.
        """
        if canvas is None:
            canvas = plain(shape_rows(data)[:, :-1])
        nearest, fill = self._nearest, c.args.fill_value
        recipe = _warped_batch.WarpedBatch.of(
            c.queue, _warp_request.Warp(data, matrices, self._dtype, nearest, fill), plain(canvas)
        )
        if fill is None and 0 in shape_rows(data):
            lacking = (data.sizes() == 0) & recipe.shapes.all(axis=1)
            if lacking.any():
                index = int(lacking.argmax())
                raise c.located(_no_border(tuple(data.shapes[index].tolist())), index)
        if not c.of_frames:
            return recipe
        out = c.empty(recipe.extents, self._dtype)
        _gpu_warp.warp(c.queue, data, out, matrices, nearest=nearest, fill=fill)
        return out

    def requested_size(self, size: tuple[float, ...], rank: int) -> tuple[int, ...]:
        """Argument `size` of a sample, as extents."""
        if len(size) != rank:
            raise ArgumentValueError(
                f"`size` has {len(size)} numbers, {tuple(size)}; expected "
                f"{'(depth, height, width)' if rank == 3 else '(height, width)'}."
            )
        if "size" in self.tensor_args:
            if not min(size) >= 0:
                raise ArgumentValueError(f"`size` must not be negative, got {tuple(size)}.")
            return tuple(int(s) for s in size)
        if not min(size) > 0:
            raise ArgumentValueError(f"`size` must be positive, got {tuple(size)}.")
        return tuple(max(1, math.floor(s + 0.5)) for s in size)

    def requested_sizes(self, c: BatchContext, rank: int) -> np.ndarray | None:
        """Argument `size` of all samples; `None` where one is invalid."""
        sizes = vectors(c, "size", rank, spread=False)
        if sizes is None or not (sizes >= 0).all():
            return None
        if "size" in self.tensor_args:
            return sizes.astype(np.int64)
        return np.maximum(np.floor(sizes + 0.5), 1).astype(np.int64) if sizes.all() else None


def _no_border(shape: tuple[int, ...]) -> ShapeError:
    return ShapeError(
        f"The input of shape {shape} has no border that could be repeated; give `fill_value` or "
        "an output of its shape."
    )
