"""Base class of affine-warp operators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace._lazy_module import lazy_module
from headrace.errors import ArgumentValueError, DataTypeError, ShapeError, UsageError
from headrace.kernels.cpu.warp import Warp
from headrace.kernels.gpu import warp as _gpu_warp
from headrace.kernels.gpu import warp_request as _warp_request
from headrace.operators.support.argument_types import (
    DataTypeArg,
    FloatArg,
    FloatListArg,
    InterpTypeArg,
)
from headrace.operators.support.arguments import rows_of
from headrace.operators.support.operator import BatchContext, SampleContext, SampleOperator
from headrace.operators.support.planning import PlanContext, Planned
from headrace.operators.support.schema import Arg, Spec
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, as_contiguous, shape_rows
from headrace.types import DALIDataType, DALIInterpType, to_numpy_type

if TYPE_CHECKING:
    from headrace.operators.support.warp import warped_batch as _warped_batch
else:
    _warped_batch = lazy_module("headrace.operators.support.warp.warped_batch")
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
        "Interpolation between elements.",
        choices=(DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR),
        late=True,
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


class WarpingOperator(SampleOperator):
    """Base of operators that warp images and volumes.

    A sub-class calls `prepare` in its `infer`, returns `planned` from its `plan`, and calls
    `warped_batch` for a GPU.
    """

    returns_lazy = (LazyBatch,)

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
        source = np.dtype(to_numpy_type(data.dtype))
        self._warp = Warp(source, self._dtype, nearest=self._nearest, fill=self.args.fill_value)
        return data._replace(dtype=dtype)

    def planned(
        self, shapes: np.ndarray, canvas: np.ndarray, matrices: np.ndarray | None
    ) -> Planned:
        """The plan of samples.

        `shapes`: of the inputs, int64 ``(samples, rank + 1)``, or one row for all. `canvas`:
        extents of the outputs, int64 ``(samples, rank)``, or one row for all. `matrices`: as `Warp`
        takes them, ``(samples, rank, rank + 1)``; `None` where they are on a GPU.
        """
        count = len(shapes) if matrices is None else len(matrices)
        found = np.empty((max(count, len(canvas)), shapes.shape[1]), np.int64)
        found[:, :-1], found[:, -1] = canvas, shapes[:, -1]
        if self.args.fill_value is None and np.count_nonzero(shapes) < shapes.size:
            lacking = ~shapes.all(axis=1) & found.all(axis=1)
            if lacking.any():
                row = shapes[lacking.argmax() if len(shapes) > 1 else 0]
                raise ShapeError(
                    f"The input of shape {tuple(row.tolist())} has no border that could be "
                    "repeated; give `fill_value` or an output of its shape."
                )
        return Planned(found, () if matrices is None else (matrices,))

    def cpu(
        self, c: SampleContext, data: np.ndarray, transform: np.ndarray | None = None
    ) -> np.ndarray:
        out = c.out
        self._warp(data, out, c.row[0])
        return out

    def warped_batch(
        self, c: BatchContext, data: DeviceBatch, planned: Planned, matrices: Any, *, as_input: bool
    ) -> LazyBatch:
        """All samples of a batch, as a lazy batch; frames of sequences in memory."""
        canvas = (shape_rows(data) if as_input else planned.shapes[0])[:, :-1]
        if self.args.size is not None:
            canvas = canvas[:1]
        nearest, fill = self._nearest, c.args.fill_value
        warped = _warped_batch.WarpedBatch.of(
            c.queue,
            _warp_request.Warp(data, matrices, self._dtype, nearest, fill),
            as_contiguous(canvas),
        )
        if not c.of_frames:
            return warped
        out = c.empty(warped.extents, self._dtype)
        _gpu_warp.warp(c.queue, data, out, matrices, nearest=nearest, fill=fill)
        return out

    def requested_sizes(self, c: PlanContext, rank: int) -> np.ndarray:
        """Argument `size`, as extents: int64 ``(samples, rank)``, or one row of a constant."""
        sizes = rows_of(c, "size", np.float64)
        if sizes.shape[1] != rank:
            got = tuple(sizes[0].tolist())
            raise ArgumentValueError(
                f"`size` has {len(got)} numbers, {got}; expected "
                f"{'(depth, height, width)' if rank == 3 else '(height, width)'}."
            )
        if "size" in self.tensor_args:
            wrong = ~(sizes >= 0).all(axis=1)
            if wrong.any():
                got = tuple(sizes[wrong.argmax()].tolist())
                raise ArgumentValueError(f"`size` must not be negative, got {got}.")
            return sizes.astype(np.int64)
        if not (sizes[:1] > 0).all():
            got = tuple(sizes[0].tolist())
            raise ArgumentValueError(f"`size` must be positive, got {got}.")
        return np.maximum(np.floor(sizes[:1] + 0.5), 1).astype(np.int64)
