"""`decoders.numpy`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import DataTypeError, ShapeError
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.copy_rows import copy_pieces
from headrace.kernels.cpu.npy import header_of
from headrace.operators.support.argument_types import DataTypeArg
from headrace.operators.support.operator import BatchOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.addresses import addresses_of
from headrace.tensors.gpu.batch import volumes
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
        places, files, headers = [], [], []
        for k, data in enumerate(encoded):
            if data.dtype != np.uint8 or data.ndim != 1 or not data.flags.c_contiguous:
                data = np.ascontiguousarray(data).reshape(-1).view(np.uint8)
            try:
                header = header_of(data)
                if data.size > header.end:
                    raise header.wrong_size(data)
            except Exception as error:
                c.fail(error, k)
                continue
            places.append(k)
            files.append(data)
            headers.append(header)
        if not places:
            return
        wanted = self.args.dtype
        dtype = headers[0].dtype if wanted is None else np.dtype(to_numpy_type(wanted))
        ndim = len(headers[0].shape)
        c.declare(Spec(to_dali_type(dtype), ndim))
        for k, header in zip(places, headers, strict=True):
            if len(header.shape) != ndim:
                raise c.located(
                    ShapeError(
                        "All samples in the dataset must have the same number of dimensions, got "
                        f"{ndim} and {len(header.shape)}."
                    ),
                    k,
                )
            if wanted is None and header.dtype != dtype:
                raise c.located(
                    DataTypeError(
                        "All samples in the dataset must have the same data type, got "
                        f"{dtype} and {header.dtype}. `dtype` converts them to one."
                    ),
                    k,
                )
        if all(header.dtype == dtype and header.is_plain for header in headers):
            shapes = np.array([header.shape for header in headers], np.int64)
            offsets = np.array([header.offset for header in headers], np.uint64)
            targets = c.empty_rows(places, shapes, dtype).addresses
            copy_pieces(addresses_of(files) + offsets, targets, volumes(shapes) * dtype.itemsize)
            return
        for k, data, header in zip(places, files, headers, strict=True):
            out = c.empty(k, header.shape, dtype)
            converter(header.dtype, dtype)(header.array(data), out)
