"""One tensor in host memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ArgumentTypeError, DataTypeError, ShapeError
from penstock.tensors import _repr
from penstock.tensors.device import CPU, DLDeviceType, no_gpu
from penstock.tensors.interop import (
    as_host_array,
    check_contiguous,
    check_layout,
    copy_to_address,
    dali_type,
    export_dlpack,
)
from penstock.tensors.pool import HOST_POOL
from penstock.types.dtypes import ENUM_TYPES, is_stored, storage_dtype
from penstock.types.enums import DALIDataType

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class TensorCPU:
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
        Whether the memory is page-locked, which needs the GPU backend.

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
    """

    __slots__ = ("__weakref__", "_array", "_dtype", "_layout", "_source")
    _array: np.ndarray
    _dtype: DALIDataType
    _layout: str
    _source: str

    def __init__(self, data: Any, layout: str | None = None, is_pinned: bool = False) -> None:
        if is_pinned:
            no_gpu("Page-locked (pinned) memory")
        if isinstance(data, TensorCPU):
            self._array, self._dtype = data._array, data._dtype
        else:
            array = as_host_array(data)
            self._dtype = dali_type(array)
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
        return self

    def shape(self) -> list[int]:
        """Extents of the axes."""
        return list(self._array.shape)

    def ndim(self) -> int:
        """Number of axes."""
        return self._array.ndim

    @property
    def dtype(self) -> DALIDataType:
        """Element type."""
        return self._dtype

    def layout(self) -> str:
        """One letter for each axis, or "" if nothing is known about them."""
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        """Name the axes; None or "" takes the names away."""
        self._layout = check_layout(layout, self._array.ndim, "tensor")

    def source_info(self) -> str:
        """Where the data came from, such as a file name; "" if unknown."""
        return self._source

    def get_property(self, key: str) -> str | None:
        """The property ``"layout"`` or ``"source_info"``; None if unset, or for any other name."""
        if key == "layout":
            return self._layout or None
        if key == "source_info":
            return self._source or None
        return None

    def data_ptr(self) -> int:
        """Address of the first element."""
        return int(self._array.ctypes.data)

    def squeeze(self, dim: int | None = None) -> bool:
        """Remove axes of extent 1 from this tensor, and their letters from its layout.

        Parameters
        ----------
        dim
            The only axis to remove, counted from the end if negative; None for all.

        Returns
        -------
        bool
            Whether there was anything to remove.

        Raises
        ------
        ShapeError
            If there is no axis `dim`.
        """
        shape = self._array.shape
        if dim is None:
            gone = {axis for axis, extent in enumerate(shape) if extent == 1}
        else:
            if isinstance(dim, bool) or not hasattr(dim, "__index__"):
                raise ArgumentTypeError(f"`dim` is an integer or None, got {dim!r}.")
            axis = dim.__index__()
            if not -len(shape) <= axis < len(shape):
                raise ShapeError(f"`dim`={axis} is not an axis of a tensor of {len(shape)} axes.")
            axis %= len(shape)
            gone = {axis} if shape[axis] == 1 else set()
        if not gone:
            return False
        self._array = self._array.reshape([n for i, n in enumerate(shape) if i not in gone])
        self._layout = "".join(c for i, c in enumerate(self._layout) if i not in gone)
        return True

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Take the same bytes for elements of another type of the same size.

        Raises
        ------
        DataTypeError
            If the sizes differ.
        """
        check_same_size(self._dtype, new_type)
        self._array = self._array.view(storage_dtype(new_type))
        self._dtype = new_type

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

    def _as_gpu(self) -> Any:
        no_gpu("A copy in GPU memory")

    def _make_copy(self) -> TensorCPU:
        return self._wrap(HOST_POOL.copy_of(self._array), self._layout, self._dtype, self._source)

    def _set_stream(self, stream: Any) -> None:
        """Host memory has no stream."""

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return as_numbers(self._array, self._dtype).__array_interface__

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
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
        return export_dlpack(as_numbers(self._array, self._dtype), max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        return CPU

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpickle, (self._array, self._layout, self._dtype, self._source)

    def __repr__(self) -> str:
        return _repr.describe_tensor(
            "TensorCPU", self._array.shape, self._dtype, self._layout, self._source
        )

    def __str__(self) -> str:
        return _repr.with_values(repr(self), [self._array], self._dtype)


def _unpickle(array: np.ndarray, layout: str, dtype: DALIDataType, source: str) -> TensorCPU:
    return TensorCPU._wrap(array, layout, dtype, source)


def as_numbers(array: np.ndarray, dtype: DALIDataType) -> np.ndarray:
    """A view of `array` to hand out; an error if its elements are members of an enumeration."""
    if dtype in ENUM_TYPES:
        raise DataTypeError(
            f"Elements of type {dtype.name} are members of an enumeration, which other libraries "
            f"do not know. Convert them to integers in the pipeline: "
            f"`fn.cast(x, dtype=types.INT32)`."
        )
    return array[...]  # an object of its own, whose attributes may be set


def check_same_size(dtype: DALIDataType, new_type: DALIDataType) -> None:
    """Check that elements of `dtype` can be taken for elements of `new_type`."""
    if not isinstance(new_type, DALIDataType):
        raise ArgumentTypeError(f"Expected a types.DALIDataType, got {new_type!r}.")
    sizes = [storage_dtype(t).itemsize if is_stored(t) else 0 for t in (dtype, new_type)]
    if sizes[0] != sizes[1] or not sizes[0]:
        raise DataTypeError(
            f"Elements of type {dtype.name} cannot be reinterpreted as {new_type.name}: "
            f"they take {sizes[0]} and {sizes[1]} bytes."
        )
