"""A batch in host memory: samples of one type and number of axes, whose shapes may differ."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from penstock.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DataTypeError,
    OutOfRangeError,
    SampleIndexError,
    ShapeError,
    UsageError,
)
from penstock.tensors import _repr
from penstock.tensors.assemble import (
    as_sample,
    check_uniform,
    common_layout,
    concatenated,
    split,
    stacked,
    uniform,
)
from penstock.tensors.device import no_gpu
from penstock.tensors.interop import (
    as_host_array,
    check_contiguous,
    check_layout,
    copy_to_address,
    dali_type,
    is_dlpack_capsule,
)
from penstock.tensors.pool import HOST_POOL
from penstock.tensors.tensor import TensorCPU, enum_message, reinterpreted
from penstock.types.dtypes import DALI_OF_NUMPY, ENUM_TYPES, storage_dtype
from penstock.types.enums import DALIDataType

if TYPE_CHECKING:
    from numpy.typing import DTypeLike


class TensorListCPU:
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
        Whether a list of samples is copied into one piece of memory; otherwise they are shared.
    is_pinned
        Whether the memory of an array is page-locked, which needs the GPU backend.

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
    """

    __slots__ = (
        "__weakref__",
        "_dense",
        "_dtype",
        "_flat",
        "_layout",
        "_ndim",
        "_sample_arrays",
        "_sources",
    )
    _dense: np.ndarray | None
    """The whole batch as one array, outermost axis samples."""
    _flat: np.ndarray | None
    """All samples one after the other, 1-D: a batch of different shapes in one piece of memory."""
    _sample_arrays: list[np.ndarray] | None
    """The samples; None until somebody asks for those of a dense batch."""
    _dtype: DALIDataType
    _ndim: int
    _layout: str
    _sources: Sequence[str] | None

    def __init__(
        self,
        data: Any,
        layout: str | None = None,
        contiguous: bool = True,
        *,
        is_pinned: bool = False,
    ) -> None:
        if is_pinned:
            no_gpu("Page-locked (pinned) memory")
        if isinstance(data, TensorListCPU):
            for slot in ("_dense", "_flat", "_sample_arrays", "_dtype", "_ndim", "_sources"):
                setattr(self, slot, getattr(data, slot))
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
            self._dtype = dali_type(array)
        if array.ndim == 0:
            raise ShapeError("A batch cannot be made of a scalar: its outermost axis is samples.")
        self._set_dense(array)
        self._sources = None
        return ""

    def _from_list(self, data: Sequence[Any], contiguous: bool) -> str:
        self._sources = None
        if not data:
            self._set_empty()
            return ""
        samples = [as_sample(item, number) for number, item in enumerate(data)]
        layout = common_layout(samples)
        self._dtype = samples[0]._dtype
        if any(sample._source for sample in samples):
            self._sources = [sample._source for sample in samples]
        arrays = [sample._array for sample in samples]
        if contiguous:
            self._set_copy(arrays)
        else:
            self._set_samples(arrays)
        return layout

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
        self = cls.__new__(cls)
        self._dtype = DALI_OF_NUMPY[array.dtype] if dtype is None else dtype
        self._set_dense(array)
        self._layout = layout
        self._sources = sources
        return self

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

        Like `_from_dense`. Strided arrays are copied, the others shared; the list is kept. `dtype`
        and `ndim` are needed to know the type of a batch without samples.
        """
        self = cls.__new__(cls)
        self._layout = layout
        self._sources = sources
        if arrays:
            self._dtype = DALI_OF_NUMPY[arrays[0].dtype] if dtype is None else dtype
            for number, array in enumerate(arrays):
                if not array.flags.c_contiguous:
                    arrays[number] = HOST_POOL.copy_of(array)
            self._set_samples(arrays)
        else:
            self._set_empty()
            if dtype is not None:
                self._dtype = dtype
            self._ndim = len(layout) if ndim is None else ndim
        return self

    def _set_dense(self, array: np.ndarray) -> None:
        self._dense = array
        self._flat = None
        self._sample_arrays = None
        self._ndim = array.ndim - 1

    def _set_samples(self, arrays: list[np.ndarray]) -> None:
        if len(arrays) == 1:
            self._set_dense(arrays[0][np.newaxis])
            return
        self._dense = self._flat = None
        self._sample_arrays = arrays
        self._ndim = arrays[0].ndim

    def _set_copy(self, arrays: list[np.ndarray]) -> None:
        """Copy the samples into one piece of memory."""
        if uniform(arrays):
            self._set_dense(stacked(arrays))
        else:
            self._set_flat(concatenated(arrays), [array.shape for array in arrays])

    def _set_flat(self, flat: np.ndarray, shapes: Sequence[tuple[int, ...]]) -> None:
        self._dense = None
        self._flat = flat
        self._sample_arrays = split(flat, shapes)
        self._ndim = len(shapes[0])

    def _set_empty(self) -> None:
        self._dense = self._flat = None
        self._sample_arrays = []
        self._dtype = DALIDataType.NO_TYPE
        self._ndim = 0

    @property
    def _samples(self) -> list[np.ndarray]:
        """One array a sample, views of the batch. Not to be changed."""
        if self._sample_arrays is None:
            dense = self._dense
            assert dense is not None
            if dense.ndim == 1:  # iterating would give NumPy scalars, which are copies
                self._sample_arrays = [dense[i, ...] for i in range(len(dense))]
            else:
                self._sample_arrays = list(dense)
        return self._sample_arrays

    def __len__(self) -> int:
        return len(self._dense) if self._dense is not None else len(self._samples)

    def shape(self) -> list[tuple[int, ...]]:
        """Shape of each sample."""
        if self._dense is not None:
            return [self._dense.shape[1:]] * len(self._dense)
        return [array.shape for array in self._samples]

    def ndim(self) -> int:
        """Number of axes of a sample."""
        return self._ndim

    @property
    def dtype(self) -> DALIDataType:
        """Element type."""
        return self._dtype

    def layout(self) -> str:
        """Layout of a sample, or ""."""
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        """Name the axes of the samples; None or "" takes the names away."""
        self._layout = check_layout(layout, self._ndim, "sample")

    def source_info(self) -> list[str]:
        """Where each sample came from, such as a file name; "" where unknown."""
        return [self._source(i) for i in range(len(self))]

    def _source(self, number: int) -> str:
        return self._sources[number] if self._sources is not None else ""

    @overload
    def __getitem__(self, i: int) -> TensorCPU: ...
    @overload
    def __getitem__(self, i: slice) -> TensorListCPU: ...
    def __getitem__(self, i: int | slice) -> TensorCPU | TensorListCPU:
        """Sample `i`, counted from the end if negative, or the batch of a slice; shared."""
        if isinstance(i, slice):
            return self._subset(i)
        if isinstance(i, (bool, np.bool_)) or not hasattr(i, "__index__"):
            raise ArgumentTypeError(
                f"A batch is indexed by an integer or a slice, not by {type(i).__name__}."
            )
        number = i.__index__()
        count = len(self)
        if not -count <= number < count:
            raise OutOfRangeError(f"There is no sample {number} in a batch of {count}.")
        number %= count
        return TensorCPU._wrap(
            self._samples[number], self._layout, self._dtype, self._source(number)
        )

    def _subset(self, part: slice) -> TensorListCPU:
        numbers = range(len(self))[part]
        sources = None if self._sources is None else [self._sources[n] for n in numbers]
        if self._dense is not None and numbers.step == 1:
            return self._from_dense(self._dense[part], self._layout, sources, self._dtype)
        samples = [self._samples[n] for n in numbers]
        result = self._from_samples(samples, self._layout, self._dtype, sources, self._ndim)
        if self._flat is not None and numbers.step == 1 and len(samples) > 1:
            start = sum(array.size for array in self._samples[: numbers.start])
            flat = self._flat[start : start + sum(array.size for array in samples)]
            if uniform(samples):
                result._set_dense(flat.reshape(len(samples), *samples[0].shape))
            else:
                result._flat = flat
        return result

    def __iter__(self) -> Iterator[TensorCPU]:
        return (self[i] for i in range(len(self)))

    def at(self, i: int) -> np.ndarray:
        """Sample `i` as an array that shares memory; `i` must not be negative."""
        if not 0 <= i < len(self):
            raise SampleIndexError(
                f"There is no sample {i} in a batch of {len(self)}; `at` counts from 0."
            )
        return self._numbers(self._samples[i])

    def as_array(self) -> np.ndarray:
        """The batch as one array ``(samples, ...)``; shared if the batch is dense, else a copy.

        Raises
        ------
        ShapeError
            If the shapes of the samples differ.
        """
        return self._numbers(self._as_dense())

    def as_tensor(self) -> TensorCPU:
        """The batch as one tensor, axis N first; shared if the batch is dense, else a copy.

        Raises
        ------
        ShapeError
            If the shapes of the samples differ.
        """
        layout = f"N{self._layout}" if self._layout or self._ndim == 0 else ""
        return TensorCPU._wrap(self._as_dense(), layout, self._dtype)

    def as_reshaped_tensor(self, shape: Sequence[int]) -> TensorCPU:
        """All elements of the batch, sample after sample, as one tensor without a layout.

        Shared if the batch is in one piece of memory, else a copy. Shapes may differ.

        Raises
        ------
        ShapeError
            If `shape` does not hold as many elements as the batch.
        """
        if self._dtype == DALIDataType.NO_TYPE:
            raise UsageError("An empty batch without a type cannot be made a tensor.")
        extents = tuple(int(extent) for extent in shape)
        volume = (
            sum(array.size for array in self._samples) if self._dense is None else self._dense.size
        )
        if math.prod(extents) != volume or any(extent < 0 for extent in extents):
            raise ShapeError(
                f"The shape {extents} has {math.prod(extents)} elements, the batch has {volume}: "
                f"they need to have the same volume."
            )
        memory = self._memory
        if memory is None:
            memory = concatenated(self._samples)
        return TensorCPU._wrap(memory.reshape(extents), "", self._dtype)

    def is_dense_tensor(self) -> bool:
        """Whether all samples have one shape and lie in one piece of memory, in their order."""
        return self._dense is not None or not self._samples

    @property
    def _memory(self) -> np.ndarray | None:
        """All elements in one piece; None if there is none."""
        return self._dense if self._dense is not None else self._flat

    def data_ptr(self) -> int:
        """Address of the first element of a batch in one piece of memory.

        Raises
        ------
        UsageError
            If the samples lie in separate pieces.
        """
        memory = self._memory
        if memory is not None:
            return int(memory.ctypes.data)
        if not self._samples:
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
        copy_to_address([self._dense] if self._dense is not None else self._samples, ptr)

    def reinterpret(self, new_type: DALIDataType) -> None:
        """Take the same bytes for elements of another type of the same size.

        Raises
        ------
        DataTypeError
            If the sizes differ.
        """
        if self._dense is not None:
            self._set_dense(reinterpreted(self._dense, new_type))
        elif self._flat is not None:
            self._set_flat(reinterpreted(self._flat, new_type), self.shape())
        elif self._samples:
            self._sample_arrays = [reinterpreted(array, new_type) for array in self._samples]
        else:
            raise DataTypeError("An empty batch has no data to reinterpret.")
        self._dtype = new_type

    def reset(self) -> None:
        """Let go of all samples: the batch is then empty and has no type."""
        self._set_empty()
        self._layout = ""
        self._sources = None

    def as_cpu(self) -> TensorListCPU:
        """Return this batch itself."""
        return self

    @staticmethod
    def broadcast(tensor: Any, count: int) -> TensorListCPU:
        """A batch of `count` samples, all of them `tensor`, shared."""
        if count < 0:
            raise ArgumentValueError(f"A batch cannot have {count} samples.")
        sample = as_sample(tensor, 0)
        return TensorListCPU._from_samples(
            [sample._array] * count,
            sample._layout,
            sample._dtype,
            [sample._source] * count if sample._source else None,
            sample._array.ndim,
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
            Whether to copy the samples into one piece of memory; otherwise they are shared.
        """
        # A tensor of a tensor has no layout: DLPack does not carry one.
        samples = [
            TensorCPU(item) if hasattr(item, "__dlpack__") or is_dlpack_capsule(item) else None
            for item in list_of_objects
        ]
        if None in samples:
            number = samples.index(None)
            raise ArgumentTypeError(
                f"Sample {number}, of type {type(list_of_objects[number]).__name__}, "
                f"does not support the DLPack protocol."
            )
        return TensorListCPU(samples, layout, contiguous)

    def _as_gpu(self) -> Any:
        no_gpu("A copy in GPU memory")

    def _make_copy(self) -> TensorListCPU:
        copy = TensorListCPU(self)
        if self._dense is not None:
            copy._set_dense(HOST_POOL.copy_of(self._dense))
        elif self._samples:
            copy._set_copy(self._samples)
        return copy

    def _set_stream(self, stream: Any) -> None:
        """Host memory has no stream."""

    def _as_dense(self) -> np.ndarray:
        if self._dense is not None:
            return self._dense
        samples = self._samples
        if not samples:
            if self._dtype == DALIDataType.NO_TYPE:
                return np.empty(0, np.float64)
            return np.empty((0,) * (self._ndim + 1), storage_dtype(self._dtype))
        check_uniform(samples)
        return stacked(samples)

    def _numbers(self, array: np.ndarray) -> np.ndarray:
        if self._dtype in ENUM_TYPES:
            raise DataTypeError(enum_message(self._dtype))
        return array

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if copy is False and self._dense is None:
            raise ValueError("The samples of this batch are not one array without a copy.")
        array = self.as_array()
        if dtype is not None and np.dtype(dtype) != array.dtype:
            return array.astype(dtype)
        return array.copy() if copy and self._dense is not None else array

    def __reduce__(self) -> tuple[Any, ...]:
        data = self._dense if self._dense is not None else self._samples
        sources = None if self._sources is None else list(self._sources)
        return _unpickle, (data, self._layout, self._dtype, sources, self._ndim)

    def __repr__(self) -> str:
        return _repr.describe_list("TensorListCPU", self.shape(), self._dtype, self._layout)

    def __str__(self) -> str:
        return _repr.with_values(repr(self), self._samples, self._dtype)


def _unpickle(
    data: np.ndarray | list[np.ndarray],
    layout: str,
    dtype: DALIDataType,
    sources: list[str] | None,
    ndim: int,
) -> TensorListCPU:
    if isinstance(data, np.ndarray):
        return TensorListCPU._from_dense(data, layout, sources, dtype)
    return TensorListCPU._from_samples(data, layout, dtype, sources, ndim)
