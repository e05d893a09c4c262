"""DALI's enumerations. `headrace.types` is their public place."""

from __future__ import annotations

import enum
import warnings
from typing import Any, TypeVar


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


_E = TypeVar("_E", bound=DALIEnum)


def of_dali(cls: type[_E], value: Any) -> _E | None:
    """Member of `cls` for DALI's own of that name, which programs mix in by a forgotten import."""
    kind = type(value)
    if kind.__name__.lstrip("_") == cls.__name__ and kind.__module__.startswith("nvidia.dali."):
        return cls(int(value))
    return None


class DALIDataType(DALIEnum):
    """Element type of a tensor, or type of an argument.

    Attributes
    ----------
    NO_TYPE
        Nothing is known, as of a batch without samples.
    UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64
        Integers of so many bits.
    FLOAT16, FLOAT, FLOAT64
        Real numbers of 16, 32 and 64 bits.
    BOOL
        Truth values, a byte each.
    IMAGE_TYPE, DATA_TYPE, INTERP_TYPE
        Members of the enumerations `DALIImageType`, `DALIDataType`, `DALIInterpType`, as int32.
    STRING, PYTHON_OBJECT
        Side data: texts, and objects of Python. In DALI types of arguments only.
    FEATURE, TENSOR_LAYOUT
        Types of arguments in DALI; no tensor has them.
    """

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

    def __call__(self) -> str:
        """Return `TensorCPU.dtype` as the method it was: a code of `struct`, such as ``"=f"``."""
        warnings.warn(
            "Calling '.dtype()' is deprecated, please use '.dtype' instead",
            DeprecationWarning,
            stacklevel=2,
        )
        return "=" + "BHIQbhiqefd?"[self] if self <= DALIDataType.BOOL else "=i"


class DALIImageType(DALIEnum):
    """Colour space of an image.

    Attributes
    ----------
    RGB, BGR
        Red, green and blue, in this order or in the opposite one.
    GRAY
        One channel: brightness.
    YCbCr
        Brightness and two differences of colours, from 16 to 235 and 240 (ITU-R BT.601).
    ANY_DATA
        Format of the file: its number of channels, and its values as they are.
    """

    RGB = 0
    BGR = 1
    GRAY = 2
    YCbCr = 3
    ANY_DATA = 4


class DALIInterpType(DALIEnum):
    """Interpolation used when an image is resampled.

    Attributes
    ----------
    INTERP_NN
        The nearest pixel.
    INTERP_LINEAR
        Between the two nearest pixels along each axis.
    INTERP_CUBIC
        A cubic spline over four pixels along each axis.
    INTERP_LANCZOS3
        A windowed sinc over six pixels along each axis.
    INTERP_TRIANGULAR
        A triangle that becomes wider where the image gets smaller: linear interpolation that does
        not alias.
    INTERP_GAUSSIAN
        A Gaussian that becomes wider where the image gets smaller.
    """

    INTERP_NN = 0
    INTERP_LINEAR = 1
    INTERP_CUBIC = 2
    INTERP_LANCZOS3 = 3
    INTERP_TRIANGULAR = 4
    INTERP_GAUSSIAN = 5


class PipelineAPIType(enum.Enum):
    """Ways to run a pipeline; they cannot be mixed.

    Attributes
    ----------
    BASIC
        `Pipeline.run`.
    ITERATOR
        An iterator of a plugin.
    SCHEDULED
        `schedule_run`, `share_outputs` and `release_outputs`, or `outputs`.
    """

    BASIC = 0
    ITERATOR = 1
    SCHEDULED = 2


class StreamPolicy(enum.Enum):
    """Distribution of GPU work over streams: DALI's names, which change nothing here.

    Attributes
    ----------
    SINGLE, PER_BACKEND, PER_OPERATOR
        One stream; one for each kind of device; one for each operator.
    UNSPECIFIED
        No wish.
    """

    SINGLE = 16
    PER_BACKEND = 32
    PER_OPERATOR = 48
    UNSPECIFIED = 0


class OperatorConcurrency(enum.Enum):
    """Operators that may run at the same time: DALI's names, which change nothing here.

    Attributes
    ----------
    NONE, BACKEND, FULL
        None; those of different kinds of devices; all.
    UNSPECIFIED
        No wish.
    """

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
    _cls.__module__ = "headrace.types"
