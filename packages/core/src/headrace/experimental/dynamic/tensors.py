"""`Tensor`: one array of dynamic mode, whose elements may still be on their way."""

from __future__ import annotations

import importlib
import math
import weakref
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, NoTorchError
from headrace.experimental.dynamic import arithmetic, calling, indexing
from headrace.experimental.dynamic.construction import tensor_reference
from headrace.experimental.dynamic.devices import Device, DeviceLike
from headrace.experimental.dynamic.devices import device as as_device
from headrace.experimental.dynamic.dtypes import BY_TYPE_ID, DType
from headrace.experimental.dynamic.values import HostValue, ValueReference, on_host
from headrace.operators.support.registry import find
from headrace.operators.support.schema import OpSchema, Spec
from headrace.tensors.tensor import TensorCPU
from headrace.tracebacks import public, public_methods
from headrace.types.dtypes import SIDE_TYPES

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.experimental.dynamic.batches import Batch
    from headrace.tensors.gpu.tensor import TensorGPU
    from headrace.types import DataTypeLike

_CPU = Device.CPU
_SMALL_BYTES = 1 << 16
"""Arrays up to this size are copied when operators are given them."""


@public_methods
class Tensor(calling.TensorHandle):
    """An array on the CPU or a GPU.

    What operators return is a `Tensor` at once, and the elements are there when they are asked
    for. `tensor` and `as_tensor` make one of other data.

    Parameters
    ----------
    data
        A number, nested lists of numbers, an array of NumPy or any library that speaks DLPack,
        another `Tensor`.
    dtype
        Element type, to which array data are converted with rounding and saturation. That of
        `data` when not given: Python's integers are `int32`, real numbers `float32`.
    device
        Where the data is wanted; where it is when not given.
    layout
        One letter for each axis.
    batch, index_in_batch
        Instead of `data`: a sample of a batch.
    invocation_result
        DALI's own way to make results, which is refused.
    copy
        Whether memory is copied where it could be shared.

    Raises
    ------
    ArgumentValueError
        If there is neither `data` nor `batch`, or both.
    """

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __init__(
        self,
        data: Any = None,
        dtype: DataTypeLike | None = None,
        device: DeviceLike | None = None,
        layout: str | None = None,
        batch: Batch | None = None,
        index_in_batch: int | None = None,
        invocation_result: Any = None,
        copy: bool = False,
    ) -> None:
        if invocation_result is not None:
            raise ArgumentTypeError(
                "`invocation_result` is DALI's own way to make results; give `data`."
            )
        if (data is None) == (batch is None):
            raise ArgumentValueError(
                "A Tensor is made either of `data` or of a sample of `batch`; one must be given."
            )
        if batch is not None:
            if index_in_batch is None:
                raise ArgumentValueError("With `batch`, `index_in_batch` must be given.")
            data = batch.tensors[index_in_batch]
        self._reference = tensor_reference(data, dtype, device, layout, copy=copy)
        self._hold()

    @classmethod
    def _of(cls, reference: ValueReference) -> Tensor:
        """The tensor that a call will put into `reference`."""
        self = cls.__new__(cls)
        self._reference = reference
        reference.handle = weakref.ref(self)
        return self

    # -- what is known of it -------------------------------------------------------------------

    @property
    def dtype(self) -> DType:
        """Element type."""
        return BY_TYPE_ID[self._reference.spec.dtype]

    @property
    def device(self) -> Device:
        """Device of the elements."""
        device = self._reference.device
        return _CPU if device == "cpu" else Device("gpu", device)  # type: ignore[arg-type]

    @property
    def layout(self) -> str | None:
        """One letter for each axis; `None` if nothing is known about them."""
        reference = self._reference
        value = reference.value
        return (reference.spec.layout if value is None else value.spec.layout) or None

    @property
    def ndim(self) -> int:
        """Number of axes."""
        found = self._reference.spec.ndim
        return len(self.shape) if found is None else found

    @property
    def shape(self) -> tuple[int, ...]:
        """Extents of the axes; waits until they are known."""
        value = self._reference.get()
        batch = value.batch
        if batch is not None:
            return tuple(batch.shapes[0].tolist())
        return value.rows[0].shape  # type: ignore[no-any-return]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes of an element."""
        return self.dtype.bytes

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.itemsize

    # -- getting at the elements -----------------------------------------------------------------

    def evaluate(self) -> Tensor:
        """Wait until the elements are there; return this tensor.

        Raises
        ------
        Exception
            What went wrong in making them.
        """
        self._reference.get()
        return self

    def item(self) -> Any:
        """The only element, as a Python number; of side data, the text or object.

        Raises
        ------
        ArgumentValueError
            If there is not exactly one.
        """
        is_side_data = self.dtype.type_id in SIDE_TYPES
        if self.size != 1 and not is_side_data:
            raise ArgumentValueError(f"Tensor has {self.size} elements, expected 1.")
        return np.asarray(self.cpu()).item()

    def cpu(self) -> Tensor:
        """The tensor on the CPU: this one, or a copy."""
        return self.to_device(_CPU)

    def gpu(self, index: int | None = None) -> Tensor:
        """The tensor on a GPU: this one, or a copy.

        Parameters
        ----------
        index
            Number of the GPU; the current one when not given.
        """
        return self.to_device(Device("gpu", index))

    def to_device(self, device: DeviceLike, force_copy: bool = False) -> Tensor:
        """The tensor on `device`: this one if it is there, unless `force_copy` asks for a copy."""
        return _to_device(self, device, force_copy)  # type: ignore[no-any-return]

    def torch(self, copy: bool | None = False) -> Any:
        """The tensor as one of PyTorch.

        Parameters
        ----------
        copy
            Whether the elements are copied; `None` if either will do. Shared ones must not be
            changed.

        Raises
        ------
        NoTorchError
            If PyTorch is not installed; it is a `RuntimeError`, too.
        """
        found = torch_module().from_dlpack(self)
        return found.clone() if copy else found

    def _backend(self) -> TensorCPU | TensorGPU:
        value = self._reference.get()
        if value.batch is not None:
            return value.tensor_list()[0]  # type: ignore[no-any-return]
        value = on_host(value)
        spec = value.spec
        source = "" if value.sources is None else value.sources[0]
        return TensorCPU._wrap(value.rows[0], spec.layout, spec.dtype, source)

    @property
    def _storage(self) -> TensorCPU | TensorGPU | None:
        """The tensor of `headrace.tensors` behind this one, which DALI programs reach for.

        `None` as long as the elements are not there; `evaluate` waits for them.
        """
        return None if self._reference.value is None else self._backend()

    def _is_same_tensor(self, other: Tensor) -> bool:
        """True if both are views of the same elements; DALI's name for it."""
        mine, theirs = self._backend(), other._backend()
        return (
            mine.data_ptr() == theirs.data_ptr()
            and mine.shape() == theirs.shape()
            and mine.dtype == theirs.dtype
        )

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> np.ndarray:
        if self._reference.device != "cpu":
            raise ArgumentTypeError(
                "NumPy cannot read a tensor on a GPU; `.cpu()` copies it to the CPU."
            )
        return self._backend().__array__(dtype, copy)  # type: ignore[union-attr]

    def __dlpack__(self, **options: Any) -> Any:
        return self._backend().__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[Any, int]:
        return self._backend().__dlpack_device__()

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        if self._reference.device == "cpu":
            raise AttributeError("A tensor on the CPU has no CUDA array interface.")
        return self._backend().__cuda_array_interface__  # type: ignore[union-attr]

    # -- Python's protocols ----------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Tensor:
        return indexing.subscript(self, index)  # type: ignore[no-any-return]

    def __iter__(self) -> Iterator[Tensor]:
        shape = self.shape
        if not shape:
            raise ArgumentTypeError("A tensor without axes cannot be iterated over.")
        return (self[k] for k in range(shape[0]))

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ArgumentValueError(
                f"The truth value of a tensor with {self.size} elements is ambiguous. "
                "`np.asarray(tensor).any()` tells if one is true, `.all()` if all are."
            )
        return bool(self.item())

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        value = self.item()
        if not isinstance(value, int):
            raise ArgumentTypeError(f"A tensor of {self.dtype} is no index.")
        return value

    def __len__(self) -> NoReturn:
        raise ArgumentTypeError("A Tensor has no len(); `shape` has its extents.")

    def __reduce__(self) -> Any:
        return _restored, (self._backend(),)

    def __repr__(self) -> str:
        from headrace.experimental.dynamic.printing import tensor_text

        return tensor_text(self)

    def _repr_html_(self) -> str:
        from headrace.experimental.dynamic.printing import tensor_html

        return tensor_html(self)


def _restored(found: TensorCPU) -> Tensor:
    """Tensor that owns its memory alone."""
    array = found._array
    spec = Spec(found._dtype, array.ndim, found._layout)
    sources = [found._source] if found._source else None
    return Tensor._of(ValueReference(spec, None, HostValue([array], spec, sources)))


def torch_module() -> Any:
    """PyTorch."""
    try:
        return importlib.import_module("torch")
    except ImportError as error:
        raise NoTorchError(
            "PyTorch is not installed; `pip install headrace-torch` brings it."
        ) from error


def _to_device(handle: Any, device: DeviceLike, force_copy: bool) -> Any:
    """A tensor or batch on `device`."""
    wanted = as_device(device)
    if wanted is None:
        raise ArgumentTypeError('`device` is a Device or a name such as "cpu", got None.')
    reference: ValueReference = handle._reference
    same = reference.device == ("cpu" if wanted.device_type == "cpu" else wanted.device_id)
    if same and not force_copy:
        return handle
    if same:
        return calling.call(find("copy"), (handle,), None, None, {})
    found = calling.copied(reference, wanted.device_type, wanted.device_id)
    return type(handle)._of(found)


@public
def tensor(
    data: Any,
    dtype: DataTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
    pad: bool = False,
) -> Tensor:
    """A tensor of a copy of `data`.

    Parameters
    ----------
    data
        A number, nested lists of numbers, an array of NumPy or any library that speaks DLPack, a
        `Tensor`; or a `Batch`, whose samples become the outermost axis, N.
    dtype
        Element type, to which array data are converted with rounding and saturation. That of
        `data` when not given: Python's integers are `int32` (`uint32` from 2**31 on), real
        numbers `float32`.
    device
        Where the tensor is wanted; where `data` is when not given.
    layout
        One letter for each axis.
    pad
        Whether samples of a batch that are smaller than others are filled up with zeros.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If no tensor can be made of `data`.
    LayoutError
        If `layout` does not have one letter for each axis.
    """
    return tensor_of(tensor_reference(data, dtype, device, layout, copy=True, pad=pad))


@public
def as_tensor(
    data: Any,
    dtype: DataTypeLike | None = None,
    device: DeviceLike | None = None,
    layout: str | None = None,
    pad: bool = False,
) -> Tensor:
    """A tensor of `data`, which shares its memory where that is possible.

    Parameters are those of `tensor`. Memory that is shared must not be written to while work on
    it is under way; results of operators do not depend on what happens to it later.
    """
    return tensor_of(tensor_reference(data, dtype, device, layout, copy=False, pad=pad))


def tensor_of(reference: ValueReference) -> Tensor:
    """A tensor of data that others may refer to as well."""
    self = Tensor.__new__(Tensor)
    self._reference = reference
    self._hold()
    return self


def as_input(value: Any, schema: OpSchema | None) -> Any:
    """The tensor that stands for `value`, which was given to an operator as an input."""
    if isinstance(value, np.ndarray) and value.nbytes <= _SMALL_BYTES:
        return tensor(value)
    return as_tensor(value)


arithmetic.install_operators(Tensor)
