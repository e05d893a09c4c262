"""`brightness_contrast`, `brightness` and `contrast`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock._later import later
from penstock.kernels.cpu.pointwise import brightness_contrast
from penstock.operators.support.argument_types import DataTypeArg, FloatArg
from penstock.operators.support.arguments import scalars
from penstock.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.pointwise.color_batch import ColorBatch
from penstock.operators.support.pointwise.element_type import element_type
from penstock.operators.support.pointwise.pointwise_batch import (
    MappedBatch,
    PointwiseBatch,
    pointwise,
)
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.operators.support.windows.arithmetic import as_float32
from penstock.tensors.gpu.batch import LazyBatch, StridedBatch, plain
from penstock.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from penstock.kernels.gpu import adjustments as _adjustments
    from penstock.kernels.gpu import pointwise as _kernels
else:
    _adjustments = later("penstock.kernels.gpu.adjustments")
    _kernels = later("penstock.kernels.gpu.pointwise")
_TYPES = (DALIDataType.UINT8, DALIDataType.INT16, DALIDataType.INT32, DALIDataType.FLOAT)
_INPUT = Input(
    "data",
    "Images, volumes or sequences of images.",
    # Sequences are listed because of their place: 4 axes without a layout are frames.
    layouts=("HWC", "FHWC", "DHWC"),
    dtypes=_TYPES,
)
_OUTPUT = "The adjusted data, in the layout of the input."
_BRIGHTNESS = (
    Arg(
        "brightness",
        FloatArg,
        1.0,
        "What values are multiplied by.",
        per_sample=True,
        per_frame=True,
    ),
    Arg(
        "brightness_shift",
        FloatArg,
        0.0,
        "What is added in the end, in units of the output type's largest value (1 for floating "
        "point).",
        per_sample=True,
        per_frame=True,
    ),
)
_CONTRAST = (
    Arg(
        "contrast",
        FloatArg,
        1.0,
        "What distances from `contrast_center` are multiplied by; 0 leaves nothing but the centre.",
        per_sample=True,
        per_frame=True,
    ),
    Arg(
        "contrast_center",
        FloatArg,
        None,
        "Value that `contrast` leaves alone. When not given, the middle of the input type's "
        "non-negative range: 128, 2**14 or 2**30 for integers, 0.5 for floating point.",
        per_sample=True,
        per_frame=True,
    ),
)
_NAMES = ("brightness", "brightness_shift", "contrast", "contrast_center")
_DTYPE = Arg("dtype", DataTypeArg, None, "Element type of the output; the input's when not given.")


def _value_bits(dtype: np.dtype) -> int:
    """Bits of an integer besides its sign."""
    return dtype.itemsize * 8 - (dtype.kind == "i")


class _Adjustment(SampleOperator):
    """What the three operators have in common."""

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
        self._center = 0.5 if source.kind == "f" else 2.0 ** (_value_bits(source) - 1)
        defaults = dict(zip(_NAMES, (1.0, 0.0, 1.0, self._center), strict=True))
        self._constants = {
            name: np.array([default if given is None else given], np.float32)
            for name, default in defaults.items()
            if name not in self.tensor_args
            for given in (getattr(self.args, name, None),)
        }
        # Even without an adjustment, int32 is rounded to float32 on its way.
        self._unchanged = dtype == data.dtype and dtype != DALIDataType.INT32
        return data._replace(dtype=dtype)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        args = vars(c.args)
        brightness, shift = args.get("brightness", 1.0), args.get("brightness_shift", 0.0)
        contrast, center = args.get("contrast", 1.0), args.get("contrast_center")
        if self._unchanged and brightness == contrast == 1.0 and shift == 0.0:
            return data
        out = c.empty(data.shape, self._dtype)
        brightness_contrast(
            data,
            out,
            brightness=brightness,
            shift=as_float32(shift) * self._range,
            contrast=contrast,
            center=self._center if center is None else center,
        )
        return out

    takes = (PointwiseBatch, ColorBatch, MappedBatch, StridedBatch)
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        brightness, shift, contrast, center = (self._each(c, name) for name in _NAMES)
        count = max(map(len, (brightness, shift, contrast, center)))
        scale, offset = np.empty(count, np.float32), np.empty(count, np.float32)
        same = _adjustments.scales_and_offsets(
            brightness, shift, contrast, center, self._range, self._unchanged, scale, offset
        )
        if same:
            return data
        if count == 1:
            scale, offset = np.broadcast_to(scale, c.size), np.broadcast_to(offset, c.size)
        term = _kernels.scale_and_shift(self._source, self._dtype)
        return pointwise(c.queue, term, (data,), data.shapes, (scale, offset))

    def _each(self, c: BatchContext, name: str) -> np.ndarray:
        """Argument `name` of each sample, ``(samples,)``, or ``(1,)`` if it is a constant."""
        constant = self._constants.get(name)
        if constant is not None:
            return constant
        found = scalars(c, name, np.float32)
        assert found is not None
        return plain(found)


@operator(
    "brightness_contrast",
    inputs=_INPUT,
    args=(*_BRIGHTNESS, *_CONTRAST, _DTYPE),
    output_docs=(_OUTPUT,),
    frames=True,
)
class BrightnessContrast(_Adjustment):
    """Adjusts brightness and contrast.

    The output is ``brightness_shift * range + brightness * (contrast_center + contrast * (data -
    contrast_center))``, where `range` is the largest value of the output type, or 1 for floating
    point. Integers are rounded to the nearest and saturate.

    Examples
    --------
    >>> lively = fn.brightness_contrast(images, brightness=1.1, contrast=1.3)
    """


@operator(
    "brightness",
    inputs=_INPUT,
    args=(*_BRIGHTNESS, _DTYPE),
    output_docs=(_OUTPUT,),
    frames=True,
)
class Brightness(_Adjustment):
    """Adjusts brightness.

    The output is ``brightness_shift * range + brightness * data``, where `range` is the largest
    value of the output type, or 1 for floating point. Integers are rounded to the nearest and
    saturate.

    Examples
    --------
    >>> brighter = fn.brightness(images, brightness=1.2)
    """


@operator(
    "contrast",
    inputs=_INPUT,
    args=(*_CONTRAST, _DTYPE),
    output_docs=(_OUTPUT,),
    frames=True,
)
class Contrast(_Adjustment):
    """Adjusts contrast.

    The output is ``contrast_center + contrast * (data - contrast_center)``. Integers are rounded
    to the nearest and saturate.

    Examples
    --------
    >>> flatter = fn.contrast(images, contrast=0.7)
    """
