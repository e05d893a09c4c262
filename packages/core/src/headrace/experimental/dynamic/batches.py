"""`Batch`: samples of one type, each an array of its own shape, that may still be on their way."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    OutOfRangeError,
)
from headrace.experimental.dynamic import arithmetic, calling, indexing
from headrace.experimental.dynamic.construction import batch_reference, stacked, tensor_reference
from headrace.experimental.dynamic.devices import Device, DeviceLike
from headrace.experimental.dynamic.dtypes import BY_TYPE_ID, DType
from headrace.experimental.dynamic.invariants import plain
from headrace.experimental.dynamic.sizes import checked_size
from headrace.experimental.dynamic.tensors import Tensor, _to_device, tensor_of, torch_module
from headrace.experimental.dynamic.values import (
    HostValue,
    ValueReference,
    derived,
    on_host,
    part_of,
    repeated,
)
from headrace.tensors.tensor_list import TensorListCPU
from headrace.tracebacks import public, public_methods
from headrace.types import DataTypeLike

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_CPU = Device.CPU


@public_methods
class Batch(calling.TensorHandle):
    """Samples that operators work on together.

    What operators return is a `Batch` at once, and the samples are there when they are asked for.
    `batch` and `as_batch` make one of other data.

    Parameters
    ----------
    tensors
        The samples: a list, a tuple or a generator of what a `Tensor` can be made of; or an array
        or a tensor, whose outermost axis counts samples; or a batch of `headrace.tensors`.
    dtype
        Element type; that of the first sample when not given, to which others are converted.
    device
        Where the samples are wanted; where the first one is when not given.
    layout
        One letter for each axis of a sample; that of the first sample when not given.
    invocation_result
        DALI's own way to make results, which is refused.
    copy
        Whether memory is copied where it could be shared.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If no batch can be made of `tensors`: it is a scalar, or has no samples and no `dtype`.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]
    __array_priority__ = 1000
    __array_ufunc__ = None

    def __init__(
        self,
        tensors: Any = None,
        dtype: DataTypeLike | None = None,
        device: DeviceLike | None = None,
        layout: str | None = None,
        invocation_result: Any = None,
        copy: bool = False,
    ) -> None:
        if invocation_result is not None:
            raise ArgumentTypeError(
                "`invocation_result` is DALI's own way to make results; give `tensors`."
            )
        if tensors is None:
            raise ArgumentValueError("A Batch is made of `tensors`, which must be given.")
        self._reference = batch_reference(tensors, dtype, device, layout, copy=copy)
        self._hold()

    @classmethod
    def _of(cls, reference: ValueReference) -> Batch:
        """The batch that a call will put into `reference`."""
        self = cls.__new__(cls)
        self._reference = reference
        reference.handle = weakref.ref(self)
        return self

    @staticmethod
    def broadcast(
        sample: Any,
        batch_size: int,
        device: DeviceLike | None = None,
        dtype: DataTypeLike | None = None,
    ) -> Batch:
        """A batch whose samples are all `sample`, shared.

        Parameters
        ----------
        sample
            What a `Tensor` can be made of.
        batch_size
            How many samples.
        device, dtype
            As for `tensor`.

        Raises
        ------
        ArgumentValueError
            If `sample` is a batch.
        ArgumentTypeError, MisusedArgumentError
            If `batch_size` is no integer, or negative.
        """
        if isinstance(sample, Batch) or (
            hasattr(sample, "as_tensor") and hasattr(sample, "is_dense_tensor")
        ):
            raise ArgumentValueError("A batch cannot be broadcast; give a single sample.")
        batch_size = checked_size(batch_size, least=0)
        reference = tensor_reference(sample, dtype, device, None, copy=False)
        return Batch._of(
            derived(
                [reference],
                lambda value: repeated(value, batch_size),
                reference.spec,
                batch_size,
                reference.device,
            )
        )

    # -- what is known of it -------------------------------------------------------------------

    @property
    def batch_size(self) -> int:
        """Number of samples."""
        size = self._reference.size
        assert size is not None
        return size

    @property
    def dtype(self) -> DType:
        """Element type."""
        return BY_TYPE_ID[self._reference.spec.dtype]

    @property
    def device(self) -> Device:
        """Device of the samples."""
        device = self._reference.device
        return _CPU if device == "cpu" else Device("gpu", device)  # type: ignore[arg-type]

    @property
    def layout(self) -> str | None:
        """One letter for each axis of a sample; `None` if nothing is known about them."""
        reference = self._reference
        value = reference.value
        return (reference.spec.layout if value is None else value.spec.layout) or None

    @property
    def ndim(self) -> int:
        """Number of axes of a sample."""
        found = self._reference.spec.ndim
        if found is None:
            found = self._reference.get().spec.ndim
            if found is None:
                shapes = self.shape
                found = len(shapes[0]) if shapes else 0
        return found

    @property
    def shape(self) -> list[tuple[int, ...]]:
        """Extents of each sample; waits until they are known."""
        value = self._reference.get()
        batch = value.batch
        if batch is not None:
            return [tuple(shape) for shape in batch.shapes.tolist()]
        return [row.shape for row in value.rows]

    # -- parts ------------------------------------------------------------------------------------

    @property
    def tensors(self) -> TensorList:
        """The samples, as a sequence of `Tensor`."""
        return TensorList(self, range(self.batch_size))

    @property
    def slice(self) -> Any:
        """Indexing of each sample: ``batch.slice[0, 1:n]``.

        Indices may be batches themselves, with a value for each sample.
        """
        return indexing.SampleIndexing(self)

    def select(self, sample_range: Any) -> Any:
        """Some of the samples.

        Parameters
        ----------
        sample_range
            A number, for a `Tensor`; a slice, a list of numbers or ``...``, for a `Batch`.
        """
        if sample_range is Ellipsis:
            return self
        found = self.tensors[sample_range]
        return found if isinstance(found, Tensor) else found.as_batch()

    def __iter__(self) -> Iterator[Tensor]:
        return iter(self.tensors)

    # -- getting at the elements -----------------------------------------------------------------

    def evaluate(self) -> Batch:
        """Wait until the samples are there; return this batch.

        Raises
        ------
        Exception
            What went wrong in making them.
        """
        self._reference.get()
        return self

    def cpu(self) -> Batch:
        """The batch on the CPU: this one, or a copy."""
        return self.to_device(_CPU)

    def gpu(self, index: int | None = None) -> Batch:
        """The batch on a GPU: this one, or a copy.

        Parameters
        ----------
        index
            Number of the GPU; the current one when not given.
        """
        return self.to_device(Device("gpu", index))

    def to_device(self, device: DeviceLike, force_copy: bool = False) -> Batch:
        """The batch on `device`: this one if it is there, unless `force_copy` asks for a copy."""
        return _to_device(self, device, force_copy)  # type: ignore[no-any-return]

    def torch(self, copy: bool | None = None, pad: bool = False) -> Any:
        """The batch as one tensor of PyTorch, samples along its outermost axis.

        Parameters
        ----------
        copy
            Whether the elements are copied; `None` if either will do, and `False` raises where
            samples do not lie in one piece. Shared elements must not be changed.
        pad
            Whether smaller samples are filled up with zeros; otherwise all must have one shape.

        Raises
        ------
        ArgumentValueError
            If samples have different shapes, or cannot be shared as they should.
        """
        torch = torch_module()
        found, shared = stacked(self._reference, pad=pad)
        if copy is False and not shared:
            raise ArgumentValueError(
                "The samples do not lie in one piece of memory, so that `copy=False` is impossible."
            )
        result = torch.from_dlpack(tensor_of(found))
        return result.clone() if copy and shared else result

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        found, shared = stacked(self._reference, pad=False)
        if copy is False and not shared:
            raise ArgumentValueError(
                "The samples do not lie in one piece of memory, so that `copy=False` is impossible."
            )
        return tensor_of(found).__array__(dtype, copy)

    def __dlpack__(self, **options: Any) -> Any:
        """A DLPack capsule over the batch as one tensor, if its samples are alike."""
        return self._backend().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._backend().__dlpack_device__()  # type: ignore[no-any-return]

    def _backend(self) -> Any:
        value = self._reference.get()
        if value.batch is not None:
            return value.tensor_list()
        found: TensorListCPU = on_host(value).tensor_list()
        return found

    @property
    def _storage(self) -> Any:
        """The batch of `headrace.tensors` behind this one, which DALI programs reach for.

        `None` as long as the samples are not there; `evaluate` waits for them.
        """
        return None if self._reference.value is None else self._backend()

    # -- Python's protocols ----------------------------------------------------------------------

    def __getitem__(self, index: Any) -> NoReturn:
        raise ArgumentTypeError(
            "A Batch is not indexed itself: `batch.tensors[i]` is a sample, and `batch.slice[...]` "
            "indexes each sample."
        )

    def __len__(self) -> NoReturn:
        raise ArgumentTypeError("A Batch has no len(); `batch_size` is the number of samples.")

    def __bool__(self) -> bool:
        """True for every batch, as of an object that is there: it has no length to ask for."""
        return True

    def __reduce__(self) -> Any:
        return _restored, (self._backend(),)

    def __repr__(self) -> str:
        from headrace.experimental.dynamic.printing import batch_text

        return batch_text(self)

    def _repr_html_(self) -> str:
        from headrace.experimental.dynamic.printing import batch_html

        return batch_html(self)


def _restored(found: TensorListCPU) -> Batch:
    """Batch that owns its memory alone."""
    value = HostValue.of_list(found)
    return Batch._of(ValueReference(value.spec, len(value), value))


@public_methods
class TensorList:
    """Some samples of a batch, in some order, as a sequence."""

    __slots__ = ("_batch", "_numbers")

    def __init__(self, batch: Batch, numbers: Sequence[int]) -> None:
        self._batch = batch
        self._numbers = numbers

    def __len__(self) -> int:
        return len(self._numbers)

    def __getitem__(self, index: Any) -> Any:
        """A `Tensor` for a number; a list like this one for a slice or a list of numbers."""
        numbers = self._numbers
        if isinstance(index, slice):
            return TensorList(self._batch, numbers[index])
        if isinstance(index, (list, tuple)):
            return TensorList(self._batch, [self._number(k) for k in index])
        return self._tensor(self._number(index))

    def _number(self, index: Any) -> Any:
        if isinstance(index, (bool, np.bool_)) or not hasattr(index, "__index__"):
            raise ArgumentTypeError(
                f"Samples are numbered: {index!r} is neither an integer, nor a slice or a list of "
                "integers."
            )
        number, count = index.__index__(), len(self._numbers)
        if not -count <= number < count:
            raise OutOfRangeError(f"There is no sample {number} among {count}.")
        return self._numbers[number]

    def _tensor(self, number: int) -> Tensor:
        reference = self._batch._reference
        return Tensor._of(
            derived(
                [reference],
                lambda value: part_of(value, (number,)),
                reference.spec,
                None,
                reference.device,
            )
        )

    def __iter__(self) -> Iterator[Tensor]:
        return (self._tensor(number) for number in self._numbers)

    def tolist(self) -> list[Tensor]:
        """The samples as a list."""
        return list(self)

    def as_batch(self, copy: bool = False) -> Batch:
        """The batch of these samples."""
        numbers, reference = list(self._numbers), self._batch._reference
        if numbers == list(range(self._batch.batch_size)):
            found = self._batch
        else:
            found = Batch._of(
                derived(
                    [reference],
                    lambda value: part_of(value, numbers),
                    reference.spec,
                    len(numbers),
                    reference.device,
                )
            )
        return found.to_device(found.device, force_copy=True) if copy else found

    def __repr__(self) -> str:
        from headrace.experimental.dynamic.printing import tensors_text

        return tensors_text(self)


@public
def batch(
    tensors: Any,
    dtype: DataTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
) -> Batch:
    """A batch of copies of `tensors`; parameters are those of `Batch`."""
    return Batch(tensors, dtype, device, layout, copy=True)


@public
def as_batch(
    tensors: Any,
    dtype: DataTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
) -> Batch:
    """A batch of `tensors`, which shares their memory where that is possible.

    Parameters are those of `Batch`. A `Batch` that is as it is wanted is returned itself.
    """
    tensors = plain(tensors)
    if isinstance(tensors, Batch) and dtype is None and device is None and layout is None:
        return tensors
    return Batch(tensors, dtype, device, layout)


arithmetic.install_operators(Batch)
