"""`preemphasis_filter`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.audio.border import Border
from headrace.kernels.gpu import preemphasis as _gpu
from headrace.operators.support.argument_types import DataTypeArg, FloatArg, StringArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, to_numpy_type
from headrace.types.dtypes import INTEGERS

_DTYPES = (*INTEGERS, DALIDataType.FLOAT, DALIDataType.FLOAT64)
_BORDERS = {border.name.lower(): border for border in Border}


@operator(
    "preemphasis_filter",
    inputs=Input("data", "The signal.", dtypes=_DTYPES),
    args=(
        Arg(
            "preemph_coeff",
            FloatArg,
            0.97,
            "Factor of the previous number, which is subtracted.",
            per_sample=True,
        ),
        Arg(
            "border",
            StringArg,
            "clamp",
            'Number before the first one: ``"clamp"``, itself; ``"zero"``, 0; '
            '``"reflect"``, the second number, and 0 where there is none.',
            choices=tuple(_BORDERS),
        ),
        Arg(
            *("dtype", DataTypeArg, DALIDataType.FLOAT, "Element type of the output."),
            choices=_DTYPES,
            late=True,
        ),
    ),
    output_docs=("The filtered signal, in the shape and layout of the input.",),
)
class PreemphasisFilter(SampleOperator):
    """Emphasises high frequencies: from each number, a part of the one before it is subtracted.

    ``y[t] = x[t] - preemph_coeff * x[t - 1]``, in float32, or float64 where the input is float64.
    Integers are rounded, halves away from zero, and saturate. Data with several axes is one
    signal, as it lies in memory: split channels, which lie side by side, before they are filtered.

    Examples
    --------
    >>> emphasised = fn.preemphasis_filter(audio, preemph_coeff=0.95)
    """

    def infer(self, data: Spec) -> Spec:
        from headrace.kernels.cpu.audio.preemphasis import preemphasize, preemphasize_rows

        args = self.args
        self._border = _BORDERS[args.border]
        self._filter, self._filter_rows = preemphasize, preemphasize_rows
        self._dtype = np.dtype(to_numpy_type(args.dtype))
        wide = DALIDataType.FLOAT64 if data.dtype == DALIDataType.FLOAT64 else DALIDataType.FLOAT
        self.chunked = args.dtype == wide
        return data._replace(dtype=args.dtype)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.empty(data.shape, self._dtype)
        self._filter(data, c.args.preemph_coeff, self._border, out)
        return out

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows:
        out = c.empty(data.shapes, self._dtype)
        assert out.flat is not None
        factors = np.array(c.values("preemph_coeff"), np.float32).astype(self._dtype)
        self._filter_rows(
            *(data.addresses, data.sizes, np.empty(0, data.dtype), factors, int(self._border)),
            *(out.flat, out.begins),
        )
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        out = c.empty(data.extents, self._dtype)
        coefficients = numbers_of(c, "preemph_coeff", np.float32)
        _gpu.preemphasize(c.queue, data, coefficients, self._border, out)
        return out
