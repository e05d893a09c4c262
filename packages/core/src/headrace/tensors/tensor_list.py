"""A batch in host memory: samples of one type and number of axes, whose shapes may differ."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ShapeError, UsageError
from headrace.tensors import _repr
from headrace.tensors.base import (
    TensorListBase,
    as_sample,
    check_count,
    check_supports_dlpack,
    common_layout,
)
from headrace.tensors.batch_memory import BatchMemory
from headrace.tensors.gpu.runtime import check_available
from headrace.tensors.interop import (
    as_host_array,
    check_contiguous,
    check_layout,
    copy_to_address,
    dali_type,
    is_dlpack_capsule,
)
from headrace.tensors.pool import HOST_POOL
from headrace.tensors.tensor import TensorCPU, as_numbers, value_of
from headrace.types.dtypes import DALI_OF_NUMPY, SIDE_TYPES, storage_dtype
from headrace.types.enums import DALIDataType
from headrace.types.side_data import as_objects

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.tensors.gpu.tensor_list import TensorListGPU
    from headrace.tensors.rows import Rows


class TensorListCPU(TensorListBase[TensorCPU]):
    """A batch in host memory, with the layout of its samples.

    Samples lie in one piece of memory (a dense batch, if all shapes are equal) or each in its own.

    Parameters
    ----------
    data
        An array or anything a `TensorCPU` can be made of, whose outermost axis counts the samples,
        shared without a copy; another batch, shared likewise; or a list or tuple of samples, each
        anything a `TensorCPU` can be made of.
    layout
        Layout of a sample. If None or "", that of `data`.
    contiguous
        Copy a list of samples into one piece of memory; otherwise they are shared.
    is_pinned
        True if the memory of an array is page-locked; needs a GPU.

    Raises
    ------
    ArgumentTypeError
        If `data` or a sample has no memory to share, or numbers of axes or layouts differ.
    DataTypeError
        If elements are not numbers or truth values, or types differ.
    ShapeError
        If an array is not C-contiguous or has no axis to count the samples.
    LayoutError
        If `layout` does not have one letter for each axis of a sample.
    GpuNotAvailableError
        If `is_pinned` is set where there is no GPU.
    """

    __slots__ = ("_memory", "_pinned")
    _memory: BatchMemory
    _pinned: bool

    def __init__(
        self,
        data: Any,
        layout: str | None = None,
        contiguous: bool = True,
        *,
        is_pinned: bool = False,
    ) -> None:
        self._pinned = bool(is_pinned)
        if self._pinned:
            check_available()
        self._sources = None
        if isinstance(data, TensorListCPU):
            self._memory, self._dtype, self._ndim = data._memory, data._dtype, data._ndim
            self._sources = data._sources
            self._pinned = self._pinned or data._pinned
            own = data._layout
        elif isinstance(data, (list, tuple)):
            own = self._from_list(data, contiguous)
        else:
            own = self._from_array(data)
        layout = layout or own
        if self._dtype == DALIDataType.NO_TYPE:
            self._ndim = len(layout)  # nothing else is known about an empty list
        self._layout = check_layout(layout, self._ndim, "sample")

    def _from_array(self, data: Any) -> str:
        if isinstance(data, TensorCPU):
            array, self._dtype = data._array, data._dtype
        else:
            array = check_contiguous(as_host_array(data))
            self._dtype = dali_type(array.dtype)
        if array.ndim == 0:
            raise ShapeError("A batch cannot be made of a scalar: its outermost axis is samples.")
        self._memory = BatchMemory(array)
        self._ndim = array.ndim - 1
        return ""

    def _from_list(self, data: Sequence[Any], contiguous: bool) -> str:
        if not data:
            self._set_empty()
            return ""
        samples = [as_sample(TensorCPU, item, number) for number, item in enumerate(data)]
        layout = common_layout(samples)
        self._dtype = samples[0]._dtype
        self._ndim = samples[0].ndim()
        if any(sample._source for sample in samples):
            self._sources = [sample._source for sample in samples]
        arrays = [sample._array for sample in samples]
        self._memory = BatchMemory.copied(arrays) if contiguous else BatchMemory.of_rows(arrays)
        return layout

    def _set_empty(self) -> None:
        self._memory = BatchMemory.of_rows([])
        self._dtype = DALIDataType.NO_TYPE
        self._ndim = 0
        self._sources = None

    @classmethod
    def _make(
        cls,
        memory: BatchMemory,
        layout: str,
        dtype: DALIDataType,
        ndim: int,
        sources: Sequence[str] | None,
    ) -> TensorListCPU:
        self = cls.__new__(cls)
        self._memory = memory
        self._layout = layout
        self._dtype = dtype
        self._ndim = ndim
        self._sources = sources
        self._pinned = False
        return self

    @classmethod
    def _from_dense(
        cls,
        array: np.ndarray,
        layout: str = "",
        sources: Sequence[str] | None = None,
        dtype: DALIDataType | None = None,
    ) -> TensorListCPU:
        """For the engine: the batch over one C-contiguous array ``(samples, ...)``, unchecked.

        `layout` is that of a sample. `dtype` is needed only for enumerations, kept as int32.
        `sources` says where each sample came from, and is only looked at when a user asks.
        """
        if dtype is None:
            dtype = DALI_OF_NUMPY[array.dtype]
        return cls._make(BatchMemory(array), layout, dtype, array.ndim - 1, sources)

    @classmethod
    def _from_samples(
        cls,
        arrays: list[np.ndarray],
        layout: str = "",
        dtype: DALIDataType | None = None,
        sources: Sequence[str] | None = None,
        ndim: int | None = None,
    ) -> TensorListCPU:
        """For the engine: the batch over one array a sample, of one dtype and number of axes.

        Like `_from_dense`. The list is kept, and strided arrays in it are replaced by copies.
        `dtype` and `ndim` are needed to know the type of a batch without samples.
        """
        for number, array in enumerate(arrays):
            if not array.flags.c_contiguous:
                arrays[number] = HOST_POOL.copy_of(array)
        if arrays:
            ndim = arrays[0].ndim
            if dtype is None:
                dtype = DALI_OF_NUMPY[arrays[0].dtype]
        elif ndim is None:
            ndim = len(layout)
        if dtype is None:
            dtype = DALIDataType.NO_TYPE
        return cls._make(BatchMemory.of_rows(arrays), layout, dtype, ndim, sources)

    @classmethod
    def _from_packed(
        cls,
        packed: list[Rows],
        layout: str,
        dtype: DALIDataType,
        sources: Sequence[str] | None,
    ) -> TensorListCPU:
        """For the engine: the batch over two samples or more, of which no arrays are made yet."""
        ndim = packed[0].shapes.shape[1]
        return cls._make(BatchMemory.of_packed(packed), layout, dtype, ndim, sources)

    def __len__(self) -> int:
        return len(self._memory)

    def shape(self) -> list[tuple[int, ...]]:
        """Shape of each sample."""
        return self._memory.shapes()

    def _sample(self, number: int) -> TensorCPU:
        array = self._memory.rows[number]
        tensor = TensorCPU._wrap(array, self._layout, self._dtype, self._source(number))
        tensor._pinned = self._pinned
        return tensor

    def _part(self, numbers: range, sources: Sequence[str] | None) -> TensorListCPU:
        part = self._memory.part(numbers)
        batch = self._make(part, self._layout, self._dtype, self._ndim, sources)
        batch._pinned = self._pinned
        return batch

    def _set_dtype(self, dtype: DALIDataType) -> None:
        self._memory = self._memory.viewed_as(storage_dtype(dtype))

    def at(self, i: int) -> Any:
        """Sample `i` as an array that shares memory; `i` must not be negative.

        Of side data, the text or object.
        """
        return value_of(self._memory.rows[self._checked_position(i)], self._dtype)

    def tolist(self) -> list[Any]:
        """The samples as values of Python: texts, objects, numbers and nested lists of these."""
        values = [value_of(row, self._dtype) for row in self._memory.rows]
        return values if self._dtype in SIDE_TYPES else [value.tolist() for value in values]

    def as_array(self) -> np.ndarray:
        """The batch as one array ``(samples, ...)``; shared if the batch is dense, else a copy.

        Of side data, an array of objects ``(samples,)``.

        Raises
        ------
        ShapeError
            If the shapes of the samples differ.
        """
        if self._dtype in SIDE_TYPES:
            return as_objects(self.tolist())
        return as_numbers(self._stacked(), self._dtype)

    def _as_tensor(self, layout: str) -> TensorCPU:
        return TensorCPU._wrap(self._stacked(), layout, self._dtype)

    def _stacked(self) -> np.ndarray:
        if self._memory.dense is None and len(self) == 0:
            if self._dtype == DALIDataType.NO_TYPE:
                return np.empty(0)
            return np.empty((0,) * (self._ndim + 1), storage_dtype(self._dtype))
        return self._memory.stacked()

    def _volume(self) -> int:
        return self._memory.size

    def _as_reshaped(self, extents: tuple[int, ...], layout: str) -> TensorCPU:
        flat = self._memory.flat() if self._volume() else np.empty(0, storage_dtype(self._dtype))
        return TensorCPU._wrap(flat.reshape(extents), layout, self._dtype)

    def is_dense_tensor(self) -> bool:
        """Return True if all samples have one shape and lie in one piece of memory, in their
        order.
        """
        return self._memory.dense is not None or len(self) == 0

    def data_ptr(self) -> int:
        """Address of the first element of a batch in one piece of memory.

        Raises
        ------
        UsageError
            If the samples lie in separate pieces.
        """
        whole = self._memory.in_one_piece
        if whole is not None:
            return int(whole.ctypes.data)
        if len(self) == 0:
            return 0
        raise UsageError(
            "The samples of this batch lie in separate memory, so there is no one address. "
            "Use `batch[i].data_ptr()`, or `batch.as_tensor()` if the shapes are equal."
        )

    def copy_to_external(self, ptr: Any) -> None:
        """Copy all samples, one after the other, to other host memory.

        Parameters
        ----------
        ptr
            The address, as `ctypes.c_void_p`, ctypes pointer or integer; or a writable buffer of
            the same number of bytes.
        """
        whole = self._memory.in_one_piece
        copy_to_address(self._memory.rows if whole is None else [whole], ptr)

    def as_cpu(self) -> TensorListCPU:
        """Return this batch itself."""
        return self

    @staticmethod
    def broadcast(tensor: Any, count: int) -> TensorListCPU:
        """A batch of `count` samples, all of them `tensor`, shared."""
        check_count(count)
        sample = as_sample(TensorCPU, tensor, 0)
        sources = [sample._source] * count if sample._source else None
        return TensorListCPU._from_samples(
            [sample._array] * count, sample._layout, sample._dtype, sources, sample.ndim()
        )

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any], layout: str | None = None, contiguous: bool = False
    ) -> TensorListCPU:
        """A batch of objects that support DLPack, one a sample.

        Parameters
        ----------
        list_of_objects
            PyTorch tensors, NumPy or JAX arrays, ... or bare capsules.
        layout
            Layout of a sample.
        contiguous
            Copy the samples into one piece of memory; otherwise they are shared.
        """
        samples = []
        for number, item in enumerate(list_of_objects):
            check_supports_dlpack(item, number, is_dlpack_capsule(item))
            samples.append(TensorCPU(item))  # without a layout, which DLPack does not carry
        return TensorListCPU(samples, layout, contiguous)

    def _as_gpu(self, device_id: int | None = None) -> TensorListGPU:
        """A copy in the memory of a GPU, by default the current one."""
        from headrace.tensors.gpu.tensor_list import TensorListGPU

        return TensorListGPU._uploaded(self, device_id)

    def _make_copy(self) -> TensorListCPU:
        return self._make(self._memory.copy(), self._layout, self._dtype, self._ndim, self._sources)

    def _set_stream(self, stream: Any) -> None:
        """Host memory has no stream."""

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        shared = self._memory.dense is not None
        array = self.as_array()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            shared, array = False, array.astype(dtype)
        if copy is False and not shared:
            raise ValueError("This batch cannot be made such an array without a copy.")
        return array.copy() if copy and shared else array

    def __reduce__(self) -> tuple[Any, ...]:
        whole = self._memory.dense
        data = self._memory.rows if whole is None else whole
        sources = None if self._sources is None else list(self._sources)
        return _unpickle, (data, self._layout, self._dtype, self._ndim, sources)

    def __repr__(self) -> str:
        return _repr.describe_list("TensorListCPU", self.shape(), self._dtype, self._layout)

    def __str__(self) -> str:
        return _repr.with_values(
            repr(self), self.shape(), self._memory.rows.__getitem__, self._dtype
        )


def _unpickle(
    data: np.ndarray | list[np.ndarray],
    layout: str,
    dtype: DALIDataType,
    ndim: int,
    sources: list[str] | None,
) -> TensorListCPU:
    memory = BatchMemory(data) if isinstance(data, np.ndarray) else BatchMemory.of_rows(data)
    return TensorListCPU._make(memory, layout, dtype, ndim, sources)
