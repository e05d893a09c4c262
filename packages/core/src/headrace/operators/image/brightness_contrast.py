"""`brightness_contrast`, `brightness` and `contrast`."""

from __future__ import annotations

from functools import partial

import numpy as np

from headrace.kernels.cpu.pointwise import ScaleAndShift
from headrace.kernels.gpu import pointwise as _kernels
from headrace.kernels.plan import adjustments as _adjustments
from headrace.operators.support.argument_types import DataTypeArg, FloatArg
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import (
    NumberTable,
    PlanContext,
    Planned,
    Samples,
    plan_batch,
    repeated,
)
from headrace.operators.support.pointwise.element_type import element_type
from headrace.operators.support.pointwise.pointwise_batch import TAKEN, pointwise
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.operators.support.windows.arithmetic import as_float32
from headrace.tensors.gpu.batch import LazyBatch
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, to_numpy_type

_TYPES = (DALIDataType.UINT8, DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT)
_INPUT = Input(
    "data",
    "Images, volumes or sequences of images.",
    # Sequences are listed because of their place: 4 axes without a layout are frames.
    layouts=("HWC", "FHWC", "DHWC"),
    dtypes=_TYPES,
)
_adjusting_operator = partial(
    operator,
    inputs=_INPUT,
    output_docs=("The adjusted data, in the layout of the input.",),
    frames=True,
)
_BRIGHTNESS = (
    Arg("brightness", FloatArg, 1.0, "Factor of the values.", per_frame=True),
    Arg(
        "brightness_shift",
        FloatArg,
        0.0,
        "What is added in the end, in units of the output type's largest value (1 for floating "
        "point).",
        per_frame=True,
    ),
)
_CONTRAST = (
    Arg(
        "contrast",
        FloatArg,
        1.0,
        "What distances from `contrast_center` are multiplied by; 0 leaves nothing but the centre.",
        per_frame=True,
    ),
    Arg(
        "contrast_center",
        FloatArg,
        None,
        "Value that `contrast` leaves alone. When not given, the middle of the input type's "
        "non-negative range: 128, 2**14 or 2**30 for integers, 0.5 for floating point.",
        per_frame=True,
    ),
)
_DTYPE = Arg("dtype", DataTypeArg, None, "Element type of the output; the input's when not given.")


def _value_bits(dtype: np.dtype) -> int:
    """Bits of an integer besides its sign."""
    return dtype.itemsize * 8 - (dtype.kind == "i")


class _Adjustment(SampleOperator):
    """Shared code of `brightness`, `contrast` and `brightness_contrast`."""

    keeps_shape = True
    elementwise = True

    def infer(self, data: Spec) -> Spec:
        dtype = element_type(self.args, data, _TYPES)
        self._dtype = np.dtype(to_numpy_type(dtype))
        source = np.dtype(to_numpy_type(data.dtype))
        self._range = (
            1.0 if self._dtype.kind == "f" else as_float32(2.0 ** _value_bits(self._dtype) - 1)
        )
        self._source = source
        self._adjust = ScaleAndShift(source, self._dtype)
        center = 0.5 if source.kind == "f" else 2.0 ** (_value_bits(source) - 1)
        self._numbers = NumberTable(
            self,
            {
                "brightness": 1.0,
                "brightness_shift": 0.0,
                "contrast": 1.0,
                "contrast_center": center,
            },
        )
        # Even without an adjustment, int32 is rounded to float32 on its way.
        self._unchanged = dtype == data.dtype and dtype != DALIDataType.INT32
        return data._replace(dtype=dtype)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        """Plan factors, offsets, and whether a sample stays as it is."""
        shapes = data.shapes
        numbers = self._numbers.rows(c, len(shapes))
        table = np.empty((len(shapes), 3), np.float32)
        _adjustments.scales_and_offsets(numbers, self._range, self._unchanged, table)
        return Planned(shapes, table)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        scale, offset, unchanged = c.row
        if unchanged:
            return data
        out = c.out
        self._adjust(data, out, scale, offset)
        return out

    chunks_light = True

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows | None:
        table = c.records
        if table[:, 2].any():
            return None
        out = c.out()
        self._adjust.rows(data.addresses, data.sizes, out.addresses, table)
        return out

    def compiled(self, c: CompiledStepContext, data: SampleColumns) -> SampleColumns:
        from headrace.kernels.cpu import pointwise_steps

        out = c.out()
        numbers = c.planned(3, out)
        carry = pointwise_steps.scaling(data.dtype, out.dtype)
        c.steps.add(None, carry, (*data.words, *out.words[:2], numbers))
        return out

    takes = TAKEN
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        scale, offset, unchanged = plan_batch(self, c, data).table.T  # type: ignore[union-attr]
        if unchanged.all():
            return data
        term = _kernels.scale_and_shift(self._source, self._dtype)
        numbers = repeated(scale, c.size), repeated(offset, c.size)
        return pointwise(c.queue, term, (data,), data.shapes, numbers)


@_adjusting_operator("brightness_contrast", args=(*_BRIGHTNESS, *_CONTRAST, _DTYPE))
class BrightnessContrast(_Adjustment):
    """Adjusts brightness and contrast.

    The output is ``brightness_shift * range + brightness * (contrast_center + contrast * (data -
    contrast_center))``, where `range` is the largest value of the output type, or 1 for floating
    point. Integers are rounded to the nearest and saturate.

    Examples
    --------
    >>> lively = fn.brightness_contrast(images, brightness=1.1, contrast=1.3)
    """


@_adjusting_operator("brightness", args=(*_BRIGHTNESS, _DTYPE))
class Brightness(_Adjustment):
    """Adjusts brightness.

    The output is ``brightness_shift * range + brightness * data``, where `range` is the largest
    value of the output type, or 1 for floating point. Integers are rounded to the nearest and
    saturate.

    Examples
    --------
    >>> brighter = fn.brightness(images, brightness=1.2)
    """


@_adjusting_operator("contrast", args=(*_CONTRAST, _DTYPE))
class Contrast(_Adjustment):
    """Adjusts contrast.

    The output is ``contrast_center + contrast * (data - contrast_center)``. Integers are rounded
    to the nearest and saturate.

    Examples
    --------
    >>> flatter = fn.contrast(images, contrast=0.7)
    """
