"""A batch in the memory of a GPU: samples of one type and number of axes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from headrace.errors import ArgumentTypeError, ShapeError, UsageError
from headrace.tensors import _repr
from headrace.tensors.base import (
    TensorListBase,
    as_sample,
    check_count,
    check_supports_dlpack,
    common_layout,
)
from headrace.tensors.batch_memory import BatchMemory, not_one_shape
from headrace.tensors.gpu.access import Access, joined
from headrace.tensors.gpu.batch import DeviceBatch, in_one_piece
from headrace.tensors.gpu.copies import (
    address_of_all,
    downloaded,
    duplicated,
    packed,
    uploaded,
)
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.foreign import access_behind
from headrace.tensors.gpu.foreign_list import ForeignList, all_on_gpu
from headrace.tensors.gpu.libraries import described
from headrace.tensors.gpu.runtime import current_device, get_runtime
from headrace.tensors.gpu.tensor import OnGpu, TensorGPU
from headrace.tensors.interop import check_layout, is_dlpack_capsule
from headrace.tensors.tensor_list import TensorListCPU
from headrace.types.dtypes import DALI_OF_NUMPY, storage_dtype
from headrace.types.enums import DALIDataType

if TYPE_CHECKING:
    from headrace.tensors.gpu.runtime import Event


class TensorListGPU(OnGpu, TensorListBase[TensorGPU]):
    """A batch in the memory of a GPU, with the layout of its samples.

    Samples lie in one piece of memory (a dense batch, if all shapes are equal) or anywhere. As with
    `TensorGPU`, work that writes them may still be going on; readers wait on the GPU.

    Parameters
    ----------
    data
        An array or anything a `TensorGPU` can be made of, whose outermost axis counts the samples,
        shared without a copy; another batch, shared likewise; or a list or tuple of samples, each
        anything a `TensorGPU` can be made of. None for an empty batch.
    layout
        Layout of a sample. If None or "", that of `data`.
    contiguous
        Copy a list of samples into one piece of memory; otherwise they are shared.
    stream
        The stream that `data` is written on, where `data` does not say.
    device_id
        Number of the GPU, where `data` does not say; -1 to find it out.

    Raises
    ------
    ArgumentTypeError
        If `data` or a sample has no memory on a GPU to share, or numbers of axes or layouts differ.
    ArgumentValueError
        If samples are on different GPUs.
    DataTypeError
        If elements are not numbers or truth values, or types differ.
    ShapeError
        If an array is not C-contiguous or has no axis to count the samples.
    LayoutError
        If `layout` does not have one letter for each axis of a sample.
    GpuNotAvailableError
        If there is no GPU.
    """

    __slots__ = ("_access", "_batch", "_shape_of_none")
    _batch: DeviceBatch
    _shape_of_none: tuple[int, ...] | None
    """Shape that the samples would have, of a part without samples of a batch of one shape."""

    def __init__(
        self,
        data: Any = None,
        layout: str | None = None,
        contiguous: bool = True,
        *,
        stream: Any = None,
        device_id: int = -1,
    ) -> None:
        self._sources = None
        self._shape_of_none = None
        if isinstance(data, TensorListGPU):
            self._access, self._batch = data._access, data._batch
            self._dtype, self._ndim, self._sources = data._dtype, data._ndim, data._sources
            self._shape_of_none = data._shape_of_none
            own = data._layout
        elif data is None or (isinstance(data, (list, tuple)) and not data):
            self._set_empty(current_device() if device_id < 0 else device_id)
            own = ""
        elif isinstance(data, (list, tuple)):
            own = self._from_list(data, contiguous, stream, device_id)
        else:
            own = self._from_tensor(TensorGPU(data, None, stream, device_id))
        layout = layout or own
        if self._dtype == DALIDataType.NO_TYPE:
            self._ndim = len(layout)  # nothing else is known about an empty list
        self._layout = check_layout(layout, self._ndim, "sample")

    def _from_tensor(self, tensor: TensorGPU) -> str:
        if not tensor._shape:
            raise ShapeError("A batch cannot be made of a scalar: its outermost axis is samples.")
        access = self._access = tensor._access
        count, *shape = tensor._shape
        self._dtype, self._ndim = tensor._dtype, len(shape)
        self._batch = DeviceBatch.dense(
            access.runtime,
            access.owners,
            tensor._address,
            tuple(shape),
            storage_dtype(tensor._dtype),
            count,
        )
        return ""

    @classmethod
    def _from_array(cls, array: Any, stream: Any) -> TensorListGPU | None:
        """The batch that an array of CuPy or PyTorch is; None if it is neither, or is no batch."""
        known = described((array,))
        if known is None or not known.shapes[0]:
            return None
        count, *shape = known.shapes[0]
        access = access_behind(known, stream)
        batch = DeviceBatch.dense(
            access.runtime, access.owners, known.addresses[0], tuple(shape), known.dtype, count
        )
        return cls._make(access, batch, "", DALI_OF_NUMPY[known.dtype], None)

    def _from_list(self, data: Sequence[Any], contiguous: bool, stream: Any, device_id: int) -> str:
        found = all_on_gpu(data, stream, None if device_id < 0 else device_id)
        if found is not None:
            self._set_foreign(found)
            if contiguous:
                self._access, self._batch = duplicated(self._access, self._batch)
            return ""
        samples = [
            as_sample(TensorGPU, item, k, None, stream, device_id) for k, item in enumerate(data)
        ]
        return self._from_samples(samples, contiguous)

    def _set_foreign(self, found: ForeignList) -> None:
        access = self._access = found.access
        self._batch = DeviceBatch(
            access.runtime, access.owners, found.pointers, found.shapes, found.dtype
        )
        self._dtype = DALI_OF_NUMPY[found.dtype]
        self._ndim = self._batch.ndim

    def _from_samples(self, samples: list[TensorGPU], contiguous: bool) -> str:
        layout = common_layout(samples)
        first = samples[0]
        for number, sample in enumerate(samples):
            if sample.device_id() != first.device_id():
                raise ArgumentTypeError(
                    f"Samples of a batch are on one GPU: sample {number} is on GPU "
                    f"{sample.device_id()}, sample 0 on GPU {first.device_id()}."
                )
        self._dtype = first._dtype
        self._ndim = first.ndim()
        if any(sample._source for sample in samples):
            self._sources = [sample._source for sample in samples]
        self._access = joined(sample._access for sample in samples)
        self._batch = DeviceBatch(
            self._access.runtime,
            self._access.owners,
            np.array([sample._address for sample in samples], np.uint64),
            np.array([sample._shape for sample in samples], np.int64).reshape(len(samples), -1),
            storage_dtype(first._dtype),
        )
        if contiguous:
            self._access, self._batch = duplicated(self._access, self._batch)
        return layout

    def _set_empty(self, device_id: int | None = None) -> None:
        runtime = get_runtime(self.device_id() if device_id is None else device_id)
        self._access = Access(runtime, (), None, None)
        none = np.empty(0, np.uint64), np.empty((0, 0), np.int64), np.dtype(np.uint8)
        self._batch = DeviceBatch(runtime, (), *none)
        self._dtype = DALIDataType.NO_TYPE
        self._ndim = 0
        self._sources = None

    @classmethod
    def _make(
        cls,
        access: Access,
        batch: DeviceBatch,
        layout: str,
        dtype: DALIDataType,
        sources: Sequence[str] | None,
    ) -> TensorListGPU:
        self = cls.__new__(cls)
        self._access = access
        self._batch = batch
        self._layout = layout
        self._dtype = dtype
        self._ndim = batch.ndim
        self._sources = sources
        self._shape_of_none = None
        return self

    @classmethod
    def _from_foreign(cls, found: ForeignList) -> TensorListGPU:
        """The batch over arrays of another library."""
        self = cls.__new__(cls)
        self._layout = ""
        self._sources = self._shape_of_none = None
        self._set_foreign(found)
        return self

    @classmethod
    def _from_batch(
        cls,
        batch: DeviceBatch,
        layout: str,
        dtype: DALIDataType,
        sources: Sequence[str] | None = None,
        event: Event | None = None,
        stream: int | None = None,
    ) -> TensorListGPU:
        """For the engine: the batch over memory that `stream` writes, up to `event`, unchecked.

        `layout` is that of a sample. `sources` says where each sample came from, and is only looked
        at when a user asks.
        """
        access = Access(batch.runtime, batch.owners, stream, event)
        return cls._make(access, batch, layout, dtype, sources)

    @classmethod
    def _uploaded(cls, batch: TensorListCPU, device_id: int | None) -> TensorListGPU:
        """A copy of a batch in host memory."""
        device_id = current_device() if device_id is None else device_id
        if batch._dtype == DALIDataType.NO_TYPE:
            return cls(None, batch._layout, device_id=device_id)
        shapes = np.array(batch.shape(), np.int64).reshape(len(batch), batch._ndim)
        access, copy = uploaded(
            get_device(device_id), batch._memory.rows, shapes, storage_dtype(batch._dtype)
        )
        return cls._make(access, copy, batch._layout, batch._dtype, batch._sources)

    def _samples(self) -> DeviceBatch:
        return self._batch

    def __len__(self) -> int:
        return len(self._batch.shapes)

    def _sample(self, number: int) -> TensorGPU:
        batch = self._batch
        return TensorGPU._wrap(
            self._access,
            int(batch.pointers[number]),
            tuple(batch.shapes[number].tolist()),
            self._layout,
            self._dtype,
            self._source(number),
        )

    def _part(self, numbers: range, sources: Sequence[str] | None) -> TensorListGPU:
        batch = self._batch
        # As slices, which NumPy takes without a copy; those of nothing may run backwards.
        if numbers.step > 0:
            which: Any = slice(numbers.start, numbers.stop, numbers.step)
        else:
            which = list(numbers)
        made = self._make(self._access, batch.taken(which), self._layout, self._dtype, sources)
        made._shape_of_none = batch.uniform_shape if len(batch) else self._shape_of_none
        return made

    def _set_dtype(self, dtype: DALIDataType) -> None:
        self._batch = self._batch.reshaped(self._batch.shapes, storage_dtype(dtype))

    def shape(self) -> list[tuple[int, ...]]:
        """Shape of each sample."""
        return [tuple(shape) for shape in self._batch.shapes.tolist()]

    def at(self, i: int) -> TensorGPU:
        """Sample `i`, shared; `i` must not be negative."""
        return self._sample(self._checked_position(i))

    def is_dense_tensor(self) -> bool:
        """Return True if all samples have one shape and lie in one piece of memory, in their
        order.
        """
        return len(self) == 0 or self._batch.is_dense

    def _as_tensor(self, layout: str) -> TensorGPU:
        batch = self._batch
        if batch.is_dense and len(batch.shapes):
            extents = (len(batch.shapes), *(batch.uniform_shape or ()))
            address = int(batch.pointers[0])
            return TensorGPU._wrap(self._access, address, extents, layout, self._dtype)
        if not len(self):
            one = self._shape_of_none
            one = (0,) * self._ndim if one is None else one
            return TensorGPU._wrap(self._access, 0, (0, *one), layout, self._dtype)
        one = self._batch.uniform_shape
        if one is None:
            raise not_one_shape(self.shape())
        access, address = self._in_one_piece()
        return TensorGPU._wrap(access, address, (len(self), *one), layout, self._dtype)

    def _volume(self) -> int:
        return int(self._batch.sizes().sum())

    def _as_reshaped(self, extents: tuple[int, ...], layout: str) -> TensorGPU:
        access, address = self._in_one_piece()
        return TensorGPU._wrap(access, address, extents, layout, self._dtype)

    def _in_one_piece(self) -> tuple[Access, int]:
        """Address of all elements, one after the other; those of a copy if they lie apart."""
        address = address_of_all(self._batch)
        return packed(self._access, self._batch) if address is None else (self._access, address)

    def _whole_memory(self) -> TensorGPU | None:
        """The piece of memory that all samples are in, with the gaps, as a tensor of one axis."""
        batch = self._batch
        if not len(batch) or not in_one_piece(batch.owners, batch.pointers):
            return None
        begin = int(batch.pointers.min())
        ends = batch.pointers.astype(np.int64) + batch.sizes() * batch.dtype.itemsize
        size, rest = divmod(int(ends.max()) - begin, batch.dtype.itemsize)
        if rest:
            return None
        return TensorGPU._wrap(self._access, begin, (size,), "", self._dtype)

    def data_ptr(self) -> int:
        """Address of the first element of a batch in one piece of memory.

        The default stream may read there, once it comes to what it is given from now on. Others
        wait for `stream`.

        Raises
        ------
        UsageError
            If the samples lie in separate pieces.
        """
        address = address_of_all(self._batch)
        if address is None:
            raise UsageError(
                "The samples of this batch do not follow one another in memory, so there is no one "
                "address. Use `batch[i].data_ptr()`, or `batch.as_tensor()` if the shapes are "
                "equal."
            )
        self._access.grant_unknown()
        return address

    def as_cpu(self) -> TensorListCPU:
        """A copy in host memory."""
        found = downloaded(self._access, self._batch)
        memory = BatchMemory(found) if isinstance(found, np.ndarray) else BatchMemory.of_rows(found)
        return TensorListCPU._make(memory, self._layout, self._dtype, self._ndim, self._sources)

    @staticmethod
    def broadcast(tensor: Any, count: int) -> TensorListGPU:
        """A batch of `count` samples, all of them `tensor`, shared."""
        check_count(count)
        sample = as_sample(TensorGPU, tensor, 0)
        batch = sample._samples().taken(np.zeros(count, np.intp))
        sources = [sample._source] * count if sample._source else None
        return TensorListGPU._make(sample._access, batch, sample._layout, sample._dtype, sources)

    @staticmethod
    def from_dlpack_list(
        list_of_objects: Sequence[Any],
        layout: str | None = None,
        stream: Any = None,
        contiguous: bool = False,
    ) -> TensorListGPU:
        """A batch of objects that support DLPack, one a sample.

        Parameters
        ----------
        list_of_objects
            CuPy or JAX arrays, PyTorch tensors, ... or bare capsules.
        layout
            Layout of a sample.
        stream
            The stream that is made to wait for those who write the samples; one of our own if None.
        contiguous
            Copy the samples into one piece of memory; otherwise they are shared.
        """
        samples = []
        for number, item in enumerate(list_of_objects):
            check_supports_dlpack(item, number, is_dlpack_capsule(item))
            # Without a layout, which DLPack does not carry.
            samples.append(TensorGPU(item, None, stream))
        return TensorListGPU(samples, layout, contiguous)

    def _make_copy(self) -> TensorListGPU:
        access, batch = duplicated(self._access, self._batch)
        return self._make(access, batch, self._layout, self._dtype, self._sources)

    def __reduce__(self) -> NoReturn:
        raise ArgumentTypeError("A batch in GPU memory cannot be pickled; pickle `batch.as_cpu()`.")

    def __repr__(self) -> str:
        return _repr.describe_list("TensorListGPU", self.shape(), self._dtype, self._layout, "gpu")

    def __str__(self) -> str:
        return _repr.with_values(
            repr(self), self.shape(), lambda i: self[i].as_cpu()._array, self._dtype
        )
