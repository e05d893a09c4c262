"""One tensor in the memory of a GPU."""

from __future__ import annotations

import math
from typing import Any, NoReturn, Self

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.tensors import _repr
from headrace.tensors.base import TensorBase, check_numbers
from headrace.tensors.device import DLDeviceType
from headrace.tensors.gpu.access import Access
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.copies import copy_to_address, downloaded, duplicated, uploaded
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.foreign import on_gpu
from headrace.tensors.gpu.runtime import current_device
from headrace.tensors.gpu.streams import DEFAULT_STREAM, stream_number
from headrace.tensors.interop import asks_for, check_layout, check_target, dali_type, plain_address
from headrace.tensors.tensor import TensorCPU
from headrace.types.dtypes import storage_dtype
from headrace.types.enums import DALIDataType


class OnGpu:
    """Data in the memory of a GPU: what tensors and batches have in common."""

    __slots__ = ()
    _access: Access

    def _samples(self) -> DeviceBatch:
        """All of it."""
        raise NotImplementedError

    def device_id(self) -> int:
        """Number of the GPU."""
        return self._access.runtime.device_id

    @property
    def stream(self) -> int | None:
        """The stream that the data is written on; None if it is written."""
        return self._access.stream

    def copy_to_external(
        self,
        ptr: Any,
        cuda_stream: Any = None,
        non_blocking: bool = False,
        use_copy_kernel: bool = False,
    ) -> None:
        """Copy the data, sample after sample, to other memory.

        Parameters
        ----------
        ptr
            The address, as `ctypes.c_void_p`, ctypes pointer or integer; on a GPU or on the host.
        cuda_stream
            The stream to copy on; the default stream if None.
        non_blocking
            Return before the copy is done.
        use_copy_kernel
            DALI's hint how to copy; there is one way here.
        """
        address = plain_address(ptr)
        if address is None:
            raise ArgumentTypeError(
                "The target of a copy is a ctypes.c_void_p or an integer address, got "
                f"{type(ptr).__name__}."
            )
        batch, number = self._samples(), stream_number(cuda_stream)
        target = check_target(address, int(batch.sizes().sum()) * batch.dtype.itemsize)
        copy_to_address(self._access, batch, target, number, wait=not non_blocking)

    def _as_gpu(self) -> Self:
        return self

    def _set_stream(self, stream: Any) -> None:
        self._access.pass_to(stream_number(stream))


class TensorGPU(OnGpu, TensorBase):
    """A tensor in the memory of a GPU, with a layout.

    A view: the memory belongs to `data` or to a pipeline's output, and is kept alive as long as
    this object or anything made from it exists. PyTorch, CuPy, JAX and others share it through
    ``torch.from_dlpack``, ``cupy.from_dlpack`` and the like. Work that writes it may still be
    going on then; the stream of the reader waits for that on the GPU, never the program.

    Parameters
    ----------
    data
        A C-contiguous array on a GPU: an object with ``__dlpack__`` or
        ``__cuda_array_interface__``, or a bare DLPack capsule.
    layout
        One letter for each axis, such as ``"HWC"``.
    stream
        The stream that `data` is written on, where `data` does not say: an integer, a
        ``ctypes.c_void_p``, or a stream of PyTorch or CuPy.
    device_id
        Number of the GPU, where `data` does not say; -1 to find it out.

    Raises
    ------
    ArgumentTypeError
        If `data` has no memory on a GPU to share.
    DataTypeError
        If its elements are not numbers or truth values.
    ShapeError
        If it is not C-contiguous.
    LayoutError
        If `layout` does not have one letter for each axis.
    GpuNotAvailableError
        If there is no GPU.
    """

    __slots__ = ("_access", "_address", "_shape")
    _address: int
    _shape: tuple[int, ...]

    def __init__(
        self, data: Any, layout: str | None = None, stream: Any = None, device_id: int = -1
    ) -> None:
        if isinstance(data, TensorGPU):
            self._access, self._address = data._access, data._address
            self._shape, self._dtype = data._shape, data._dtype
        else:
            found = on_gpu(data, stream, None if device_id < 0 else device_id)
            self._access, self._address, self._shape = found.access, found.address, found.shape
            self._dtype = dali_type(found.dtype)
        self._layout = check_layout(layout, len(self._shape), "tensor")
        self._source = ""

    @classmethod
    def _wrap(
        cls,
        access: Access,
        address: int,
        shape: tuple[int, ...],
        layout: str,
        dtype: DALIDataType,
        source: str = "",
    ) -> TensorGPU:
        """The tensor over C-contiguous memory, without checks."""
        self = cls.__new__(cls)
        self._access = access
        self._address = address
        self._shape = shape
        self._layout = layout
        self._dtype = dtype
        self._source = source
        return self

    @classmethod
    def _uploaded(cls, tensor: TensorCPU, device_id: int | None) -> TensorGPU:
        """A copy of a tensor in host memory."""
        device = get_device(current_device() if device_id is None else device_id)
        array = tensor._array
        shapes = np.array([array.shape], np.int64).reshape(1, array.ndim)
        access, batch = uploaded(device, [array], shapes, array.dtype)
        address = int(batch.pointers[0])
        return cls._wrap(
            access, address, array.shape, tensor._layout, tensor._dtype, tensor._source
        )

    def _extents(self) -> tuple[int, ...]:
        return self._shape

    def _set_extents(self, shape: tuple[int, ...]) -> None:
        self._shape = shape

    def _set_dtype(self, dtype: DALIDataType) -> None:
        """Nothing to do: memory has no type."""

    def _samples(self) -> DeviceBatch:
        return DeviceBatch(
            self._access.runtime,
            self._access.owners,
            np.array([self._address], np.uint64),
            np.array([self._shape], np.int64).reshape(1, len(self._shape)),
            storage_dtype(self._dtype),
        )

    def data_ptr(self) -> int:
        """Address of the first element.

        The default stream may read there, once it comes to what it is given from now on. Others
        wait for `stream`.
        """
        self._access.grant_unknown()
        return self._address

    def as_cpu(self) -> TensorCPU:
        """A copy in host memory."""
        whole = downloaded(self._access, self._samples())
        assert isinstance(whole, np.ndarray)
        return TensorCPU._wrap(whole[0, ...], self._layout, self._dtype, self._source)

    def _make_copy(self) -> TensorGPU:
        access, batch = duplicated(self._access, self._samples())
        address = int(batch.pointers[0])
        return self._wrap(access, address, self._shape, self._layout, self._dtype, self._source)

    def _array(self) -> Any:
        """The memory as an array of CuPy's, without waiting for writers."""
        check_numbers(self._dtype)
        dtype = storage_dtype(self._dtype)
        access = self._access
        size = math.prod(self._shape) * dtype.itemsize
        return access.runtime.array(self._address, self._shape, dtype, None, access, size)

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        check_numbers(self._dtype)
        return {
            "version": 3,
            "shape": self._shape,
            "typestr": storage_dtype(self._dtype).str,
            "data": (self._address, False),
            "strides": None,
            "stream": self._access.grant_unknown(),
        }

    def __dlpack__(
        self,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule over the memory."""
        if dl_device is not None and asks_for(dl_device, self.__dlpack_device__(), copy):
            return self.as_cpu().__dlpack__(max_version=max_version)
        if copy:
            return self._make_copy().__dlpack__(stream, max_version)
        array = self._array()
        self._grant_consumer(stream)
        options: dict[str, Any] = {} if max_version is None else {"max_version": max_version}
        if not isinstance(array, np.ndarray):
            options["stream"] = -1  # CuPy need not order anything
        return array.__dlpack__(**options)

    def _grant_consumer(self, stream: Any) -> None:
        access = self._access
        if stream is None:
            access.grant_host()
            return
        # Libraries often use on the default stream what they took on another one.
        access.record_stream(DEFAULT_STREAM)
        number = stream if isinstance(stream, int) else stream_number(stream)
        if number == DEFAULT_STREAM:
            access.grant(number)
            return
        if number == 0:
            raise ArgumentValueError(
                "`stream` is 0, which means different streams to different libraries: pass 1 for "
                "the default stream, 2 for that of the thread."
            )
        if number != -1:
            access.grant(stream_number(number))

    def __dlpack_device__(self) -> tuple[DLDeviceType, int]:
        return DLDeviceType.kDLCUDA, self.device_id()

    def __reduce__(self) -> NoReturn:
        raise ArgumentTypeError(
            "A tensor in GPU memory cannot be pickled; pickle `tensor.as_cpu()`."
        )

    def __repr__(self) -> str:
        return _repr.describe_tensor(
            "TensorGPU", self._shape, self._dtype, self._layout, self._source, "gpu"
        )

    def __str__(self) -> str:
        return _repr.with_values(
            repr(self), [tuple(self.shape())], lambda _: self.as_cpu()._array, self._dtype
        )
