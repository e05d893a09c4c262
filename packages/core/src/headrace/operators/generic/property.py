"""`get_property`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.gpu import transfer as _transfer
from headrace.operators.support.argument_types import StringArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import LazyBatch
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.tensors.gpu.batch import DeviceBatch

_KEYS = ("layout", "source_info")


@operator(
    "get_property",
    inputs=Input("data", "The data that is asked about.", device="any"),
    args=(
        Arg(
            "key",
            StringArg,
            REQUIRED,
            '``"layout"`` for the layout, ``"source_info"`` for the file or key that the sample '
            "was read from.",
        ),
    ),
    output_docs=("The property as text: its UTF-8 bytes, one-dimensional.",),
    reads_metadata=True,
    side_data=True,
)
class GetProperty(SampleOperator):
    """Tells a property of data as a tensor of characters.

    A property that a sample does not have is an empty text.

    Examples
    --------
    >>> data, labels = fn.readers.file(file_root=root)
    >>> path = fn.get_property(data, key="source_info")
    """

    def check_constants(self) -> None:
        if self.args.key not in _KEYS:
            allowed = " and ".join(f'"{k}"' for k in _KEYS)
            raise ArgumentValueError(
                f'Unsupported property key: "{self.args.key}"; there are {allowed}.'
            )

    def infer(self, data: Spec) -> Spec:
        self._layout = _characters(data.layout) if self.args.key == "layout" else None
        return Spec(DALIDataType.UINT8, 1)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        return _characters(c.source) if self._layout is None else self._layout

    takes = (LazyBatch,)

    def gpu(self, c: BatchContext, data: Any) -> DeviceBatch:
        if self._layout is not None:
            return _transfer.to_device(c.queue, [self._layout] * c.size)
        sources = [_characters(c.source(index)) for index in range(c.size)]
        return _transfer.to_device(c.queue, sources)


def _characters(text: str) -> np.ndarray:
    return np.frombuffer(text.encode(), np.uint8)
