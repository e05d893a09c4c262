"""`decoders.numpy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import DataTypeError, ShapeError
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.npy import header_of
from headrace.operators.support.argument_types import DataTypeArg
from headrace.operators.support.operator import BatchOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType, to_dali_type, to_numpy_type


@operator(
    "decoders.numpy",
    inputs=Input(
        "encoded",
        "Bytes of files of NumPy (.npy).",
        dtypes=(DALIDataType.UINT8, DALIDataType.INT8),
        device="cpu",
    ),
    args=(
        Arg(
            "dtype",
            DataTypeArg,
            None,
            "Element type of the output, converted as by `cast`. If not given, that of the files, "
            "which must then be the same.",
        ),
    ),
    output_docs=("The arrays, without a layout.",),
    devices=("cpu",),
    data_dependent_type=True,
)
class NumpyDecoder(BatchOperator):
    """Decodes arrays in files of NumPy, whose numbers of axes must be the same.

    Examples
    --------
    >>> encoded, _ = fn.readers.file(file_root="volumes", file_filters="*.npy")
    >>> volumes = fn.decoders.numpy(encoded)
    """

    def infer(self, encoded: Spec) -> Spec:
        return Spec(DALIDataType.NO_TYPE, None)

    def cpu(self, c: Any, encoded: Sequence[np.ndarray]) -> None:
        found: list[np.ndarray | None] = []
        for k, data in enumerate(encoded):
            data = data.reshape(-1).view(np.uint8)
            try:
                header = header_of(data)
                if data.size > header.end:
                    raise header.wrong_size(data)
                found.append(header.array(data))
            except Exception as error:
                c.fail(error, k)
                found.append(None)
        arrays = [array for array in found if array is not None]
        if not arrays:
            return
        wanted = self.args.dtype
        dtype = arrays[0].dtype if wanted is None else np.dtype(to_numpy_type(wanted))
        ndim = arrays[0].ndim
        c.declare(Spec(to_dali_type(dtype), ndim))
        for k, array in enumerate(found):
            if array is None:
                continue
            if array.ndim != ndim:
                raise c.located(
                    ShapeError(
                        "All samples in the dataset must have the same number of dimensions, got "
                        f"{ndim} and {array.ndim}."
                    ),
                    k,
                )
            if wanted is None and array.dtype != dtype:
                raise c.located(
                    DataTypeError(
                        "All samples in the dataset must have the same data type, got "
                        f"{dtype} and {array.dtype}. `dtype` converts them to one."
                    ),
                    k,
                )
            converter(array.dtype, dtype)(array, c.empty(k, array.shape, dtype))
