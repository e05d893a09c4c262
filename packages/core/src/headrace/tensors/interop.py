"""Other libraries' data as NumPy arrays over the same memory, and back."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DataTypeError,
    ExportError,
    LayoutError,
    ShapeError,
    UsageError,
)
from headrace.tensors.device import CPU, DLDeviceType
from headrace.types.dtypes import DALI_OF_NUMPY
from headrace.types.enums import DALIDataType

_CAPSULE_NAMES = (b"dltensor", b"dltensor_versioned")

_is_capsule = ctypes.pythonapi.PyCapsule_IsValid
_is_capsule.argtypes = (ctypes.py_object, ctypes.c_char_p)
_is_capsule.restype = ctypes.c_int
_Capsule = type(np.empty(0, np.uint8).__dlpack__())


class _DLPackSource:
    """A bare DLPack capsule as an object that NumPy can import."""

    def __init__(self, capsule: Any) -> None:
        self._capsule = capsule

    def __dlpack__(self, **_: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        # NumPy reads the real device from the capsule and refuses what is not host memory.
        return CPU


class _Writable:
    """Memory of a DLPack import that cannot say whether it may be written to."""

    def __init__(self, array: np.ndarray) -> None:
        self._array = array  # keeps the memory alive
        interface = dict(array.__array_interface__)
        interface["data"] = (interface["data"][0], False)
        self.__array_interface__ = interface


def is_dlpack_capsule(value: object) -> bool:
    """Return True if `value` is a bare DLPack capsule, consumed or not."""
    return type(value) is _Capsule


def from_dlpack(value: Any) -> np.ndarray:
    """The array over the memory of a DLPack capsule or of an object with ``__dlpack__``.

    Capsules of the first DLPack version carry no read-only mark; their memory is taken as writable.

    Raises
    ------
    UsageError
        If a capsule has been consumed before.
    ArgumentTypeError
        If the data is not in host memory.
    """
    legacy = True
    if is_dlpack_capsule(value):
        if not any(_is_capsule(value, name) for name in _CAPSULE_NAMES):
            raise UsageError("This DLPack capsule has been used before; each serves one import.")
        legacy = bool(_is_capsule(value, _CAPSULE_NAMES[0]))
        value = _DLPackSource(value)
    else:
        _check_device(value)
        capsule = _export(value)
        legacy = bool(_is_capsule(capsule, _CAPSULE_NAMES[0]))
        value = _DLPackSource(capsule)
    try:
        array = np.from_dlpack(value)
    except (BufferError, RuntimeError) as error:
        raise DataTypeError(f"This DLPack tensor cannot be imported: {error}") from error
    if legacy and not array.flags.writeable:
        array = np.asarray(_Writable(array))
    return array


def to_dlpack(array: np.ndarray) -> Any:
    """A DLPack capsule over the memory of `array`, or over a copy if that is read-only.

    Raises
    ------
    ArgumentTypeError
        If `array` is no array of NumPy, or of what DLPack does not have.
    """
    if not isinstance(array, np.ndarray):
        raise ArgumentTypeError(f"Expected an array of NumPy, got {type(array).__name__}.")
    try:
        return (array if array.flags.writeable else array.copy()).__dlpack__()
    except (BufferError, TypeError) as error:
        raise DataTypeError(f"There is no DLPack tensor of {array.dtype}: {error}") from error


def _export(value: Any) -> Any:
    try:
        return value.__dlpack__(max_version=(1, 1))
    except TypeError:  # made before DLPack had versions
        return value.__dlpack__()


def _check_device(value: Any) -> None:
    device = getattr(value, "__dlpack_device__", None)
    if device is None:
        return
    kind = int(device()[0])
    host = (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDAHost, DLDeviceType.kDLROCMHost)
    if kind not in host:
        raise _in_device_memory(value, f"device memory ({device_name(kind)})")


def _in_device_memory(value: Any, memory: str) -> ArgumentTypeError:
    return ArgumentTypeError(
        f"The data of this {type(value).__name__} is in {memory}, where host memory is needed. "
        "`TensorGPU` and `TensorListGPU` take data on a GPU; their `as_cpu()` copies it."
    )


def device_name(kind: int) -> str:
    """Return DLPack's name of device type `kind`."""
    try:
        return DLDeviceType(kind).name
    except ValueError:
        return f"DLPack device type {kind}"


def as_host_array(value: Any) -> np.ndarray:
    """Return an array over the memory of `value`, without a copy. Raises `ArgumentTypeError` or
    `DataTypeError` if it has none, or its elements are no numbers in native byte order.
    """
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.asarray(value)  # a plain array of what may be a subclass
    elif is_dlpack_capsule(value):
        array = from_dlpack(value)
    elif getattr(value, "__array_interface__", None) is not None:
        array = np.asarray(value)
    elif getattr(value, "__dlpack__", None) is not None:
        array = from_dlpack(value)
    elif getattr(value, "__cuda_array_interface__", None) is not None:
        raise _in_device_memory(value, "GPU memory")
    else:
        try:
            # Arrays of other libraries that only know how to become NumPy's.
            convertible = hasattr(type(value), "__array__")
            array = np.asarray(value if convertible else memoryview(value))
        except TypeError:
            raise ArgumentTypeError(
                f"{type(value).__name__} has no data that can be shared. Pass an array, bytes, or "
                f"an object with `__dlpack__` or `__array_interface__`; "
                f"`numpy.array(...)` makes an array of Python lists and numbers."
            ) from None
    return array


def dali_type(dtype: np.dtype) -> DALIDataType:
    """Element type that NumPy calls `dtype`, an error if DALI has none for it."""
    found = DALI_OF_NUMPY.get(dtype)
    if found is not None:
        return found
    if dtype.newbyteorder("=") in DALI_OF_NUMPY:
        raise DataTypeError(
            f"Data of type {dtype.str} is not in this machine's byte order; "
            f"convert it with `array.astype({dtype.name!r})`."
        )
    message = (
        f"Elements of type {dtype} are not supported, only "
        f"{', '.join(d.name for d in DALI_OF_NUMPY)}."
    )
    if dtype.kind == "c":
        message += " Complex numbers can be passed as `array.view(float)`, with one axis more."
    if dtype.kind in "mM":
        raise ArgumentValueError(message + " Dates can be passed as `array.view('int64')`.")
    raise DataTypeError(message)


def check_contiguous(array: np.ndarray) -> np.ndarray:
    """Return `array` if it lies in memory without gaps, in C order."""
    if not array.flags.c_contiguous:
        raise strided(array.shape, array.strides)
    return array


def strided(shape: tuple[int, ...], strides: tuple[int, ...], module: str = "numpy") -> ShapeError:
    """The error of data that is not C-contiguous; `strides` are in bytes."""
    return ShapeError(
        f"Strided data is not supported: the array of shape {shape} has strides {strides} (bytes) "
        f"and is not packed in C order. Pass `{module}.ascontiguousarray(array)`."
    )


def check_layout(layout: str | None, ndim: int, what: str) -> str:
    """Return `layout`, "" for None, if it has one letter for each of `ndim` axes."""
    if layout is None:
        return ""
    if not isinstance(layout, str):
        raise ArgumentTypeError(
            f'A layout is a string such as "HWC", got {layout!r} of type {type(layout).__name__}.'
        )
    if layout and len(layout) != ndim:
        raise LayoutError(
            f'The layout "{layout}" does not have one letter for each axis: '
            f"the {what} has ndim={ndim}."
        )
    return str(layout)


def copy_to_address(arrays: list[np.ndarray], target: Any) -> None:
    """Copy the bytes of C-contiguous `arrays`, one after the other, to an address with enough
    memory, or to a writable buffer, whose size is checked.
    """
    total = sum(array.nbytes for array in arrays)
    address = check_target(_address(target, total), total)
    for array in arrays:
        ctypes.memmove(address, array.ctypes.data, array.nbytes)
        address += array.nbytes


def check_target(address: int, size: int) -> int:
    """Return `address` if `size` bytes may be copied there for all that is known."""
    if size and not address:
        raise ArgumentValueError("Cannot copy to a null pointer.")
    return address


def plain_address(target: Any) -> int | None:
    """The address that `target` is, as an integer or a ctypes pointer; None if it is neither."""
    if isinstance(target, ctypes.c_void_p):
        return target.value or 0
    if isinstance(target, int) and not isinstance(target, bool):
        return target
    if isinstance(target, ctypes._Pointer):
        return ctypes.cast(target, ctypes.c_void_p).value or 0
    return None


def _address(target: Any, size: int) -> int:
    address = plain_address(target)
    if address is not None:
        return address
    try:
        view = np.asarray(memoryview(target))
    except TypeError:
        raise ArgumentTypeError(
            f"The target of a copy is a ctypes.c_void_p, an integer address or a writable buffer, "
            f"got {type(target).__name__}."
        ) from None
    check_contiguous(view)
    if not view.flags.writeable:
        raise ArgumentValueError("The target of a copy is read-only.")
    if view.nbytes != size:
        raise ArgumentValueError(f"The target of a copy has {view.nbytes} bytes, not {size}.")
    return int(view.ctypes.data)


def export_dlpack(
    array: np.ndarray,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """A DLPack capsule over the memory of `array`, for a consumer on the host."""
    options: dict[str, Any] = {}
    if dl_device is not None:
        options["dl_device"] = (int(dl_device[0]), int(dl_device[1]))
    if max_version is not None:
        options["max_version"] = max_version
    if copy is not None:
        options["copy"] = copy
    return array.__dlpack__(**options)


def asks_for(dl_device: tuple[int, int] | None, here: tuple[int, int], copy: bool | None) -> bool:
    """Return True if a DLPack consumer wants data of device `here` in the other kind of memory.
    Raises `ExportError` if it asks for a third device, or forbids a needed copy.
    """
    if dl_device is None:
        return False
    kind, number = int(dl_device[0]), int(dl_device[1])
    if kind == here[0] and (kind == DLDeviceType.kDLCPU or number == here[1]):
        return False
    if kind == here[0] or kind not in (DLDeviceType.kDLCPU, DLDeviceType.kDLCUDA):
        raise ExportError(
            f"Data on {_place(*here)} cannot be exported to {_place(kind, number)}; ask for the "
            "host's memory or for a GPU's own."
        )
    if copy is False:
        raise ExportError(
            f"Data on {_place(*here)} cannot be exported to {_place(kind, number)} without a copy."
        )
    return True


def _place(kind: int, number: int) -> str:
    return f"{device_name(kind)}:{number}"
