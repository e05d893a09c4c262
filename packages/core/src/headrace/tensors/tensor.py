"""One tensor in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.tensors import _repr
from headrace.tensors.base import TensorBase, check_numbers
from headrace.tensors.device import CPU, DLDeviceType
from headrace.tensors.gpu.runtime import check_available
from headrace.tensors.interop import (
    as_host_array,
    asks_for,
    check_contiguous,
    check_layout,
    copy_to_address,
    dali_type,
    export_dlpack,
)
from headrace.tensors.pool import HOST_POOL
from headrace.types.dtypes import SIDE_TYPES, storage_dtype
from headrace.types.enums import DALIDataType
from headrace.types.side_data import as_objects, decoded

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.tensors.gpu.tensor import TensorGPU


class TensorCPU(TensorBase):
    """A tensor in host memory, with a layout.

    A view: the memory belongs to `data` or to a pipeline's output, and is kept alive as long as
    this object or anything made from it exists. NumPy and PyTorch share it through
    `numpy.asarray`, `torch.from_dlpack` and the like.

    Parameters
    ----------
    data
        A C-contiguous array, any object with a buffer, an array interface or ``__dlpack__``, or a
        bare DLPack capsule.
    layout
        One letter for each axis, such as ``"HWC"``.
    is_pinned
        True if the memory is page-locked; needs a GPU. Other libraries are told so.

    Raises
    ------
    ArgumentTypeError
        If `data` has no memory to share.
    DataTypeError
        If its elements are not numbers or truth values.
    ShapeError
        If it is not C-contiguous.
    LayoutError
        If `layout` does not have one letter for each axis.
    GpuNotAvailableError
        If `is_pinned` is set where there is no GPU.
    """

    __slots__ = ("_array", "_pinned")
    _array: np.ndarray
    _pinned: bool

    def __init__(self, data: Any, layout: str | None = None, is_pinned: bool = False) -> None:
        self._pinned = bool(is_pinned)
        if self._pinned:
            check_available()
        if isinstance(data, TensorCPU):
            self._array, self._dtype = data._array, data._dtype
        else:
            array = as_host_array(data)
            self._dtype = dali_type(array.dtype)
            self._array = check_contiguous(array)
        self._layout = check_layout(layout, self._array.ndim, "tensor")
        self._source = ""

    @classmethod
    def _wrap(
        cls, array: np.ndarray, layout: str, dtype: DALIDataType, source: str = ""
    ) -> TensorCPU:
        """The tensor over a C-contiguous array, without checks."""
        self = cls.__new__(cls)
        self._array = array
        self._layout = layout
        self._dtype = dtype
        self._source = source
        self._pinned = False
        return self

    def _extents(self) -> tuple[int, ...]:
        return self._array.shape

    def _set_extents(self, shape: tuple[int, ...]) -> None:
        self._array = self._array.reshape(shape)

    def _set_dtype(self, dtype: DALIDataType) -> None:
        self._array = self._array.view(storage_dtype(dtype))

    def data_ptr(self) -> int:
        """Address of the first element."""
        return int(self._array.ctypes.data)

    def tolist(self) -> Any:
        """The elements as nested lists of numbers; of side data, the text or object."""
        found = value_of(self._array, self._dtype)
        return found if self._dtype in SIDE_TYPES else found.tolist()

    def as_cpu(self) -> TensorCPU:
        """Return this tensor itself."""
        return self

    def copy_to_external(self, ptr: Any) -> None:
        """Copy the data to other host memory.

        Parameters
        ----------
        ptr
            The address, as `ctypes.c_void_p`, ctypes pointer or integer; or a writable buffer of
            the same number of bytes.
        """
        copy_to_address([self._array], ptr)

    def _as_gpu(self, device_id: int | None = None) -> TensorGPU:
        """A copy in the memory of a GPU, by default the current one."""
        from headrace.tensors.gpu.tensor import TensorGPU

        return TensorGPU._uploaded(self, device_id)

    def _make_copy(self) -> TensorCPU:
        return self._wrap(HOST_POOL.copy_of(self._array), self._layout, self._dtype, self._source)

    def _set_stream(self, stream: Any) -> None:
        """Host memory has no stream."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        if self._dtype in SIDE_TYPES:
            raise AttributeError("side data has no array interface")  # NumPy asks `__array__` then
        return as_numbers(self._array, self._dtype).__array_interface__

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if self._dtype in SIDE_TYPES:
            return as_objects([self.tolist()]).reshape(())
        array = as_numbers(self._array, self._dtype)
        if dtype is not None and np.dtype(dtype) != array.dtype:
            if copy is False:
                raise ValueError(f"A {array.dtype} tensor is not {np.dtype(dtype)} without a copy.")
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(
        self,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        if dl_device is not None and asks_for(dl_device, CPU, copy):
            on_gpu = self._as_gpu(int(dl_device[1]))
            return on_gpu.__dlpack__(stream=stream, max_version=max_version)
        return export_dlpack(as_numbers(self._array, self._dtype), max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        return (DLDeviceType.kDLCUDAHost, 0) if self._pinned else CPU

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._array, self._layout, self._dtype, self._source)

    def __repr__(self) -> str:
        return _repr.describe_tensor(
            "TensorCPU", self._array.shape, self._dtype, self._layout, self._source
        )

    def __str__(self) -> str:
        return _repr.with_values(
            repr(self), [self._array.shape], lambda _: self._array, self._dtype
        )


def _unpickle(array: np.ndarray, layout: str, dtype: DALIDataType, source: str) -> TensorCPU:
    return TensorCPU._wrap(array, layout, dtype, source)


def value_of(array: np.ndarray, dtype: DALIDataType) -> Any:
    """A view of `array` to hand out; of side data, what its bytes stand for."""
    return decoded(array, dtype) if dtype in SIDE_TYPES else as_numbers(array, dtype)


def as_numbers(array: np.ndarray, dtype: DALIDataType) -> np.ndarray:
    """A view of `array` to hand out; an error if its elements are members of an enumeration."""
    check_numbers(dtype)
    return array[...]  # an object of its own, whose attributes may be set
