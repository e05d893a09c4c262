"""Shared code of tensors and batches on every device: type, axes, origin, numbering."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar, overload

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DataTypeError,
    OutOfRangeError,
    SampleIndexError,
    ShapeError,
    UsageError,
)
from headrace.tensors import _html
from headrace.tensors.interop import check_layout
from headrace.types.dtypes import (
    ENUM_TYPES,
    SIDE_TYPES,
    DataTypeLike,
    as_data_type,
    is_stored,
    storage_dtype,
)
from headrace.types.enums import DALIDataType

if TYPE_CHECKING:
    from headrace.tensors.tensor import TensorCPU

Shape = tuple[int, ...]


class TypedData:
    """Elements of one type, which may be taken for those of another."""

    __slots__ = ("_dtype",)
    _dtype: DALIDataType

    @property
    def dtype(self) -> DALIDataType:
        """Element type."""
        return self._dtype

    def _set_dtype(self, dtype: DALIDataType) -> None:
        """Take the bytes for elements of another type of the same size."""
        raise NotImplementedError

    def reinterpret(self, new_type: DataTypeLike) -> None:
        """Take the same bytes for elements of another type of the same size.

        Parameters
        ----------
        new_type
            The type, as `headrace.types.as_data_type` takes it.

        Raises
        ------
        DataTypeError
            If the sizes differ.
        """
        wanted = as_data_type(new_type)
        check_same_size(self._dtype, wanted)
        self._set_dtype(wanted)
        self._dtype = wanted

    if not TYPE_CHECKING:

        def __getattr__(self, name):
            way = " `np.asarray` makes a NumPy array of what is on the CPU."
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(
                text if name.startswith("_") else f"{text}.{way}", name=name, obj=self
            )


class TensorBase(TypedData):
    """A tensor somewhere, with a layout. Sub-classes know the memory and its shape."""

    __slots__ = ("__weakref__", "_layout", "_source")
    _layout: str
    _source: str

    def __init__(self, data: Any, *options: Any) -> None:
        raise NotImplementedError

    def _extents(self) -> Shape:
        raise NotImplementedError

    def _set_extents(self, shape: Shape) -> None:
        """Take the elements for a tensor of another shape."""
        raise NotImplementedError

    def as_cpu(self) -> TensorCPU:
        """The tensor in host memory."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return _html.of_tensor(repr(self), self)

    def shape(self) -> list[int]:
        """Extents of the axes."""
        return list(self._extents())

    def ndim(self) -> int:
        """Number of axes."""
        return len(self._extents())

    def layout(self) -> str:
        """One letter for each axis, or "" if nothing is known about them."""
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        """Name the axes: `layout` has a letter for each; None or "" takes the names away."""
        self._layout = check_layout(layout, self.ndim(), "tensor")

    def source_info(self) -> str:
        """Return the origin of the data, such as a file name; "" if unknown."""
        return self._source

    def get_property(self, key: str) -> str | None:
        """The property `key`: ``"layout"`` or ``"source_info"``; None if unset, or another key."""
        if key == "layout":
            return self._layout or None
        if key == "source_info":
            return self._source or None
        return None

    def squeeze(self, dim: int | None = None) -> bool:
        """Remove axes of extent 1 from this tensor, and their letters from its layout.

        Parameters
        ----------
        dim
            The only axis to remove, counted from the end if negative; None for all.

        Returns
        -------
        bool
            True if there was anything to remove.

        Raises
        ------
        ShapeError
            If there is no axis `dim`.
        """
        shape = self._extents()
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
        self._set_extents(tuple(n for i, n in enumerate(shape) if i not in gone))
        self._layout = "".join(c for i, c in enumerate(self._layout) if i not in gone)
        return True


TensorT = TypeVar("TensorT", bound=TensorBase)


class TensorListBase(TypedData, Generic[TensorT]):
    """A batch somewhere, with the layout of its samples. Sub-classes know the memory."""

    __slots__ = ("__weakref__", "_layout", "_ndim", "_sources")
    _ndim: int
    _layout: str
    _sources: Sequence[str] | None

    def __len__(self) -> int:
        raise NotImplementedError

    def shape(self) -> list[tuple[int, ...]]:
        """The shape of each sample."""
        raise NotImplementedError

    def _sample(self, number: int) -> TensorT:
        """Sample `number`, which is there."""
        raise NotImplementedError

    def _part(self, numbers: range, sources: Sequence[str] | None) -> Self:
        """The batch of the samples `numbers`."""
        raise NotImplementedError

    def _volume(self) -> int:
        """Number of elements of all samples."""
        raise NotImplementedError

    def _as_tensor(self, layout: str) -> TensorT:
        raise NotImplementedError

    def _as_reshaped(self, extents: Shape, layout: str) -> TensorT:
        raise NotImplementedError

    def _set_empty(self) -> None:
        raise NotImplementedError

    def _repr_html_(self) -> str:
        return _html.of_batch(repr(self), self)

    def ndim(self) -> int:
        """Number of axes of a sample."""
        return self._ndim

    def layout(self) -> str:
        """Layout of a sample, or "" if nothing is known about the axes."""
        return self._layout

    def set_layout(self, layout: str | None) -> None:
        """Name the axes of the samples: a letter of `layout` for each; None or "" for no names."""
        self._layout = check_layout(layout, self._ndim, "sample")

    def source_info(self) -> list[str]:
        """Return the origin of each sample, such as a file name; "" where unknown."""
        return [self._source(i) for i in range(len(self))]

    def _source(self, number: int) -> str:
        return self._sources[number] if self._sources is not None else ""

    @overload
    def __getitem__(self, i: int) -> TensorT: ...
    @overload
    def __getitem__(self, i: slice) -> Self: ...
    def __getitem__(self, i: int | slice) -> TensorT | Self:
        """Sample `i`, counted from the end if negative, or the batch of a slice; shared."""
        count = len(self)
        if isinstance(i, slice):
            numbers = range(count)[i]
            sources = None if self._sources is None else [self._sources[n] for n in numbers]
            return self._part(numbers, sources)
        if isinstance(i, (bool, np.bool_)) or not hasattr(i, "__index__"):
            raise ArgumentTypeError(
                f"A batch is indexed by an integer or a slice, not by {type(i).__name__}."
            )
        number = i.__index__()
        if not -count <= number < count:
            raise OutOfRangeError(
                f"Sample out of range: there is no sample {number} in a batch of {count}."
            )
        return self._sample(number % count)

    def __iter__(self) -> Iterator[TensorT]:
        return (self[i] for i in range(len(self)))

    def _checked_position(self, i: int) -> int:
        """Return `i` if `at` takes it."""
        if not 0 <= i < len(self):
            raise SampleIndexError(
                f"There is no sample {i} in a batch of {len(self)}; `at` counts from 0."
            )
        return i

    def _check_type_known(self) -> None:
        check_not_side_data(self._dtype)
        if self._dtype == DALIDataType.NO_TYPE:
            raise UsageError("An empty batch without a type cannot be made a tensor.")

    def as_tensor(self) -> TensorT:
        """The batch as one tensor, axis N first; shared if the batch is dense, else a copy.

        Raises
        ------
        ShapeError
            If the shapes of the samples differ.
        """
        self._check_type_known()
        return self._as_tensor(f"N{self._layout}" if self._layout or self._ndim == 0 else "")

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule over the batch as one tensor; see `as_tensor`."""
        tensor: Any = self.as_tensor()
        return tensor.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        tensor: Any = self.as_tensor()
        return tensor.__dlpack_device__()  # type: ignore[no-any-return]

    def as_reshaped_tensor(self, shape: Sequence[int]) -> TensorT:
        """All elements of the batch, sample after sample, as one tensor.

        Shared if the batch is in one piece of memory, else a copy. Shapes of samples may differ.
        The layout is N and that of a sample where `shape` has as many axes, otherwise none.

        Raises
        ------
        ShapeError
            If `shape` does not hold as many elements as the batch.
        """
        self._check_type_known()
        volume = self._volume()
        extents = tuple(extent.__index__() for extent in shape)
        if math.prod(extents) != volume or any(extent < 0 for extent in extents):
            raise ShapeError(
                f"The shape {extents} does not hold the {volume} elements of the batch: they need "
                f"to have the same volume."
            )
        layout = f"N{self._layout}"
        return self._as_reshaped(extents, layout if len(layout) == len(extents) else "")

    def reset(self) -> None:
        """Let go of all samples: the batch is then empty and has no type."""
        self._set_empty()
        self._layout = ""


def check_count(count: int) -> None:
    """Check a number of samples."""
    if count < 0:
        raise ArgumentValueError(f"A batch cannot have {count} samples.")


def check_supports_dlpack(item: Any, number: int, is_capsule: bool) -> None:
    """Check that sample `number` can be imported by way of DLPack."""
    if not is_capsule and not hasattr(item, "__dlpack__"):
        raise ArgumentTypeError(
            f"Sample {number}, of type {type(item).__name__}, does not support the DLPack protocol."
        )


def as_sample(kind: type[TensorT], item: Any, number: int, *options: Any) -> TensorT:
    """The tensor over the memory of `item`, which is to be sample `number`."""
    if isinstance(item, kind):
        return item
    try:
        return kind(item, *options)
    except DataTypeError:
        raise
    except ArgumentTypeError as error:
        raise ArgumentTypeError(
            f"Object at position {number} cannot be converted to {kind.__name__}: {error}"
        ) from None


def check_same_size(dtype: DALIDataType, new_type: DALIDataType) -> None:
    """Check that elements of `dtype` can be taken for elements of `new_type`."""
    sizes = [storage_dtype(t).itemsize if is_stored(t) else 0 for t in (dtype, new_type)]
    if sizes[0] != sizes[1] or not sizes[0]:
        raise DataTypeError(
            f"Elements of type {dtype.name} cannot be reinterpreted as {new_type.name}: "
            f"they are of different sizes, {sizes[0]} and {sizes[1]} bytes."
        )


def check_not_side_data(dtype: DALIDataType) -> None:
    """Check that elements of `dtype` are numbers, truth values or members of enumerations."""
    if dtype in SIDE_TYPES:
        raise DataTypeError(
            f"Side data ({dtype.name}) is no tensor: `batch.tolist()` and `batch.at(k)` give the "
            "texts or objects."
        )


def check_numbers(dtype: DALIDataType) -> None:
    """Check that elements of `dtype` can be handed to other libraries."""
    check_not_side_data(dtype)
    if dtype in ENUM_TYPES:
        raise DataTypeError(
            "DALI enum types cannot be used with buffer protocol, which has no members of "
            f"{dtype.name}. In the pipeline, use `headrace.fn.cast` to convert them to integers: "
            "`fn.cast(x, dtype=types.INT32)`."
        )


def common_layout(samples: Sequence[TensorBase]) -> str:
    """The layout of the samples that have one, once types and numbers of axes are found equal."""
    first = samples[0]
    layout = ""
    for number, sample in enumerate(samples):
        if sample._dtype != first._dtype:
            raise DataTypeError(
                "Tensors cannot have different data types. Tensor at position "
                f"{number} has type '{sample._dtype.name}' expected to have type "
                f"'{first._dtype.name}'."
            )
        if sample.ndim() != first.ndim():
            raise ArgumentTypeError(
                f"Samples of a batch have the same number of axes: sample {number} has "
                f"{sample.ndim()}, sample 0 has {first.ndim()}."
            )
        if sample._layout and layout and sample._layout != layout:
            raise ArgumentTypeError(
                f"Samples of a batch have the same layout: that of sample {number} is "
                f'"{sample._layout}", before it came "{layout}".'
            )
        layout = layout or sample._layout
    return layout
