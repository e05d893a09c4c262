"""DALI's enumerations. `penstock.types` is their public place."""

from __future__ import annotations

import enum


class DALIEnum(enum.IntEnum):
    """An integer that prints as ``Class.NAME`` and, like any constant with a name, is true.

    Members compare and hash as their integer. Truth must not depend on it: ``RGB``, ``UINT8`` and
    ``INTERP_NN`` are 0, and ``output_type or types.RGB`` has to mean what it says.
    """

    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __format__(self, spec: str) -> str:
        return format(str(self), spec)

    def __bool__(self) -> bool:
        return True


class DALIDataType(DALIEnum):
    """Element type of a tensor, or type of an argument."""

    NO_TYPE = -1
    UINT8 = 0
    UINT16 = 1
    UINT32 = 2
    UINT64 = 3
    INT8 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    FLOAT16 = 8
    FLOAT = 9
    FLOAT64 = 10
    BOOL = 11
    STRING = 12
    _BOOL_VEC = 13
    _INT32_VEC = 14
    _STRING_VEC = 15
    _FLOAT_VEC = 16
    FEATURE = 17
    _FEATURE_VEC = 18
    _FEATURE_DICT = 19
    IMAGE_TYPE = 20
    DATA_TYPE = 21
    INTERP_TYPE = 22
    TENSOR_LAYOUT = 23
    PYTHON_OBJECT = 24
    _TENSOR_LAYOUT_VEC = 25
    _DATA_TYPE_VEC = 26
    _INT64_VEC = 27


class DALIImageType(DALIEnum):
    """Colour space of an image."""

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class DALIInterpType(DALIEnum):
    """Interpolation used when an image is resampled."""

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


class PipelineAPIType(enum.Enum):
    """Which of the three ways to run a pipeline is in use; they cannot be mixed."""

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


class StreamPolicy(enum.Enum):
    """How GPU work is spread over streams."""

    SINGLE = 16
    PER_BACKEND = 32
    PER_OPERATOR = 48
    UNSPECIFIED = 0


class OperatorConcurrency(enum.Enum):
    """Which operators may run at the same time."""

    NONE = 2
    BACKEND = 4
    FULL = 6
    UNSPECIFIED = 0


for _cls in (
    DALIDataType,
    DALIImageType,
    DALIInterpType,
    PipelineAPIType,
    StreamPolicy,
    OperatorConcurrency,
):
    _cls.__module__ = "penstock.types"
