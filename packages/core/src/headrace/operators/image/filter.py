"""`filter`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, OutOfRangeError, ShapeError
from headrace.kernels.cpu import correlate as _cpu
from headrace.kernels.gpu import correlate as _gpu
from headrace.operators.support.argument_types import IntListArg, StringArg
from headrace.operators.support.arguments import rows_of
from headrace.operators.support.filter_windows import FILTERED_DTYPE, data_axes, filtered_type
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType, to_numpy_type

_TYPES = data_types("UINT8 INT8 UINT16 INT16 FLOAT16 FLOAT")
_BORDERS = {
    "reflect_101": "reflect_101",
    "101": "reflect_101",
    "reflect_1001": "reflect_1001",
    "1001": "reflect_1001",
    "reflect": "reflect_1001",
    "clamp": "clamp",
    "edge": "clamp",
    "wrap": "wrap",
    "constant": "constant",
    "fill": "constant",
}
_MODES = ("same", "valid")


@operator(
    "filter",
    inputs=(
        Input(
            "data",
            "Images, volumes or sequences of them, with channels (C) first, last or not at all.",
            dtypes=_TYPES,
            frames_lead=True,
        ),
        Input(
            "filter",
            "Weights: one axis for each of height and width, or depth, height and width. With a "
            "layout that starts with ``F``, one filter a frame.",
            dtypes=(DALIDataType.FLOAT,),
        ),
        Input(
            "fill_value",
            'A scalar of the type of `data`: what is outside of it with the border ``"constant"``, '
            "0 when not given.",
            optional=True,
        ),
    ),
    args=(
        Arg(
            "anchor",
            IntListArg,
            (-1,),
            "Which weight stands over the element that is computed, in the order of the axes; one "
            "number for all of them, and -1 for the middle.",
            per_frame=True,
            shape_of="() or (axes,)",
        ),
        Arg(
            "border",
            StringArg,
            "reflect_101",
            'Elements outside of the data: ``"reflect_101"`` (or ``"101"``) mirrors it without and '
            '``"reflect_1001"`` (or ``"1001"``, ``"reflect"``) with the outermost element; '
            '``"clamp"`` (or ``"edge"``) repeats that; ``"wrap"`` begins on the other side; '
            '``"constant"`` (or ``"fill"``) is `fill_value`.',
            choices=tuple(_BORDERS),
            late=True,
        ),
        FILTERED_DTYPE,
        Arg(
            "mode",
            StringArg,
            "same",
            '``"same"`` keeps the extents; ``"valid"`` leaves out what would need elements from '
            "outside of the data.",
            choices=_MODES,
        ),
    ),
    output_docs=("The filtered data, in the layout of the input.",),
    old_names=("experimental.filter",),
    frames=True,
)
class Filter(SampleOperator):
    """Weighted sums of the neighbourhood of each element, which may differ from sample to sample.

    The filter is not turned round: this is a correlation. Sums are float32; integers are rounded,
    halves to the even neighbour, and saturate. The CPU takes volumes and all element types, too.

    Examples
    --------
    >>> edges = fn.filter(images, np.float32([[0, 1, 0], [1, -4, 1], [0, 1, 0]]))
    """

    def infer(self, data: Spec, weights: Spec, fill: Spec | None = None) -> Spec:
        args = self.args
        dtype = filtered_type(args.dtype, data.dtype)
        if fill is not None and fill.dtype != data.dtype:
            raise DataTypeError(
                f"`fill_value` is of type {fill.dtype.name}, `data` of {data.dtype.name}; give it "
                "in the same type."
            )
        self._border = _BORDERS[args.border]
        self._layout = data.layout
        self._dtype = np.dtype(to_numpy_type(dtype))
        if data.ndim is not None:
            data_axes(self._layout, data.ndim, 2)
        return data._replace(dtype=dtype)

    def plan(
        self, c: PlanContext, data: Samples, weights: Samples, fill: Samples | None = None
    ) -> Planned:
        shapes, windows = data.shapes, weights.shapes
        first, count = data_axes(self._layout, shapes.shape[1], 2)
        if windows.shape[1] != count:
            raise ShapeError(
                f"The filter has {windows.shape[1]} axes, but the data {count} besides channels "
                "and frames; give a weight for each neighbour along these. The layout of the "
                "data tells which axis is channels (C)."
            )
        if fill is not None and (fill.shapes.shape[1] and (fill.shapes != 1).any()):
            raise ShapeError(f"`fill_value` must be a scalar, got {fill.shape_tuples[0]}.")
        anchors = rows_of(c, "anchor", np.int64)
        if anchors.shape[1] not in (1, count):
            raise ArgumentValueError(
                f"`anchor` has {anchors.shape[1]} values; expected one, or one for each of the "
                f"{count} axes."
            )
        size = max(len(shapes), len(windows), len(anchors))
        shapes = repeated(shapes, size)
        windows = np.broadcast_to(windows, (size, count))
        anchors = np.broadcast_to(anchors, (size, count))
        if (windows == 0).any():
            raise ShapeError("The filter is empty; give at least one weight.")
        wrong = ((anchors < -1) | (anchors >= windows)).any(axis=1)
        if wrong.any():
            k = int(wrong.argmax())
            raise OutOfRangeError(
                f"`anchor` is {tuple(anchors[k].tolist())}, but the filter has the shape "
                f"{tuple(windows[k].tolist())}; it must be in there, or -1 for the middle."
            )
        if self.args.mode == "valid":
            shapes = shapes.copy()
            shapes[:, first : first + count] -= windows - 1
            wrong = (shapes < 0).any(axis=1) | (shapes[:, first : first + count] < 1).any(axis=1)
            if wrong.any():
                k = int(wrong.argmax())
                raise ShapeError(
                    f"The filter, of the shape {tuple(windows[k].tolist())}, is larger than the "
                    f'sample, so that the mode "valid" leaves nothing; use "same".'
                )
            return Planned(shapes, (np.zeros_like(anchors),))
        return Planned(shapes, (np.where(anchors < 0, windows // 2, anchors),))

    def cpu(
        self,
        c: SampleContext,
        data: np.ndarray,
        weights: np.ndarray,
        fill: np.ndarray | None = None,
    ) -> np.ndarray:
        out = c.out
        first, count = data_axes(self._layout, data.ndim, 2)
        value = 0.0 if fill is None else float(fill.reshape(-1)[0])
        _cpu.correlate(data, weights, c.row[0], self._border, value, first, count, out)
        return out

    def gpu(
        self,
        c: BatchContext,
        data: DeviceBatch,
        weights: DeviceBatch,
        fill: DeviceBatch | None = None,
    ) -> DeviceBatch:
        planned = plan_batch(self, c, data, weights, *([] if fill is None else [fill]))
        first, count = data_axes(self._layout, data.ndim, 2)
        out = c.empty(planned.shapes[0], self._dtype)
        _gpu.correlate(
            c.queue, data, weights, fill, planned.table[0], self._border, first, count, out
        )
        return out
