"""Element types, enumerations and constants, and what other libraries call them."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import Any, Self

from headrace.errors import ArgumentTypeError
from headrace.types import constant
from headrace.types.constant import (
    Constant,
    ConstantNode,
    constant_array,
    constant_dtype,
)
from headrace.types.dtypes import (
    DALI_OF_NUMPY,
    ENUM_TYPES,
    FLOATS,
    INTEGERS,
    NUMPY_OF,
    DataTypeLike,
    as_data_type,
    is_bool,
    is_enum_type,
    is_float,
    is_integer,
    storage_dtype,
    to_dali_type,
    to_numpy_type,
)
from headrace.types.enums import (
    DALIDataType,
    DALIImageType,
    DALIInterpType,
    OperatorConcurrency,
    PipelineAPIType,
    StreamPolicy,
)
from headrace.types.scalar_constant import ScalarConstant

_all_types = [DALIDataType.BOOL, *INTEGERS[4:], *INTEGERS[:4], *FLOATS]  # programs loop over it
_DALIDataType = DALIDataType  # as DALI's compiled module calls it

__all__ = [
    "ANY_DATA",
    "BGR",
    "BOOL",
    "CPU_ONLY_DEVICE_ID",
    "DALI_OF_NUMPY",
    "DATA_TYPE",
    "ENUM_TYPES",
    "FEATURE",
    "FLOAT",
    "FLOAT16",
    "FLOAT64",
    "GRAY",
    "IMAGE_TYPE",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "INTERP_CUBIC",
    "INTERP_GAUSSIAN",
    "INTERP_LANCZOS3",
    "INTERP_LINEAR",
    "INTERP_NN",
    "INTERP_TRIANGULAR",
    "INTERP_TYPE",
    "NCHW",
    "NFCHW",
    "NFHWC",
    "NHWC",
    "NO_TYPE",
    "NUMPY_OF",
    "PYTHON_OBJECT",
    "RGB",
    "SAME",
    "STRING",
    "TENSOR_LAYOUT",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "BatchInfo",
    "CUDAStream",
    "Constant",
    "ConstantNode",
    "DALIDataType",
    "DALIImageType",
    "DALIInterpType",
    "DataTypeLike",
    "OperatorConcurrency",
    "PipelineAPIType",
    "SampleInfo",
    "ScalarConstant",
    "StreamPolicy",
    "TensorLayout",
    "YCbCr",
    "as_data_type",
    "constant_array",
    "constant_dtype",
    "install_constant_node",
    "is_bool",
    "is_enum_type",
    "is_float",
    "is_integer",
    "raw_cuda_stream",
    "storage_dtype",
    "to_dali_type",
    "to_numpy_type",
]


def __dir__() -> list[str]:
    return [*__all__]


NO_TYPE = DALIDataType.NO_TYPE
UINT8 = DALIDataType.UINT8
UINT16 = DALIDataType.UINT16
UINT32 = DALIDataType.UINT32
UINT64 = DALIDataType.UINT64
INT8 = DALIDataType.INT8
INT16 = DALIDataType.INT16
INT32 = DALIDataType.INT32
INT64 = DALIDataType.INT64
FLOAT16 = DALIDataType.FLOAT16
FLOAT = DALIDataType.FLOAT
FLOAT64 = DALIDataType.FLOAT64
BOOL = DALIDataType.BOOL
STRING = DALIDataType.STRING
FEATURE = DALIDataType.FEATURE
IMAGE_TYPE = DALIDataType.IMAGE_TYPE
DATA_TYPE = DALIDataType.DATA_TYPE
INTERP_TYPE = DALIDataType.INTERP_TYPE
TENSOR_LAYOUT = DALIDataType.TENSOR_LAYOUT
PYTHON_OBJECT = DALIDataType.PYTHON_OBJECT

RGB = DALIImageType.RGB
BGR = DALIImageType.BGR
GRAY = DALIImageType.GRAY
YCbCr = DALIImageType.YCbCr
ANY_DATA = DALIImageType.ANY_DATA

INTERP_NN = DALIInterpType.INTERP_NN
INTERP_LINEAR = DALIInterpType.INTERP_LINEAR
INTERP_CUBIC = DALIInterpType.INTERP_CUBIC
INTERP_LANCZOS3 = DALIInterpType.INTERP_LANCZOS3
INTERP_TRIANGULAR = DALIInterpType.INTERP_TRIANGULAR
INTERP_GAUSSIAN = DALIInterpType.INTERP_GAUSSIAN

# Layouts of one sample: the batch axis that the names speak of is not part of them.
NHWC = "HWC"
NCHW = "CHW"
NFHWC = "FHWC"
NFCHW = "FCHW"
SAME = ""

CPU_ONLY_DEVICE_ID = -99999
"""A device id that means: no GPU."""


class TensorLayout(str):
    """A layout string, such as ``"HWC"``, as a type of its own.

    Layouts are plain strings everywhere; an object of this class is one of them.
    """

    __slots__ = ()

    def __new__(cls, layout: str) -> Self:
        """Make a layout of a string."""
        if not isinstance(layout, str):
            raise ArgumentTypeError(
                f'A layout is a string such as "HWC", got {type(layout).__name__}.'
            )
        return super().__new__(cls, layout)

    def __repr__(self) -> str:
        return f"headrace.types.TensorLayout({str(self)!r})"


@dataclass(eq=False)
class SampleInfo:
    """Sample that `fn.external_source` asks its callable for."""

    idx_in_epoch: int
    """Position of the sample in its epoch."""
    idx_in_batch: int
    """Position of the sample in its batch."""
    iteration: int
    """Number of the batch in its epoch."""
    epoch_idx: int
    """Number of the epoch."""


@dataclass(eq=False)
class BatchInfo:
    """Batch that `fn.external_source` asks its callable for."""

    iteration: int
    """Number of the batch in its epoch."""
    epoch_idx: int
    """Number of the epoch."""


class CUDAStream:
    """A CUDA stream, given by its address `ptr`."""

    def __init__(self, ptr: int = 0) -> None:
        self._ptr = ptr

    @property
    def ptr(self) -> int:
        """Address of the stream."""
        return self._ptr

    def __repr__(self) -> str:
        return f"CUDAStream(ptr={self._ptr:#x})"


def raw_cuda_stream(stream: Any) -> int | None:
    """Address of the CUDA stream that `stream` stands for; None for None.

    Understood are integers, `ctypes.c_void_p`, `CUDAStream`, the ``__cuda_stream__`` protocol and
    the streams of PyTorch (``.cuda_stream``), CuPy (``.ptr``) and others that have a ``.handle``.

    Raises
    ------
    ArgumentTypeError
        If `stream` is none of these.
    """
    if stream is None:
        return None
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        # A method by the protocol's text, a plain tuple in its first implementations.
        return int((protocol() if callable(protocol) else protocol)[1])
    address = getattr(stream, "cuda_stream", None)
    if address is not None:
        return int(address)
    if isinstance(stream, int) and not isinstance(stream, bool):
        return int(stream)
    if isinstance(stream, ctypes.c_void_p):
        return stream.value or 0
    for name in ("ptr", "handle"):
        address = getattr(stream, name, None)
        if address is not None:
            return int(address)
    raise ArgumentTypeError(
        f"{stream!r} of type {type(stream).__name__} is not a CUDA stream. Pass an integer, a "
        f"ctypes.c_void_p, a types.CUDAStream or a stream of PyTorch or CuPy."
    )


def install_constant_node(make: constant.NodeMaker) -> None:
    """Tell `Constant` how to make graph nodes: called once, by the graph.

    `make(array, dtype, layout, device, **operator_arguments)` returns the node.
    """
    constant.node_maker = make
