"""Stand-ins for tensors and batches on a GPU where a GPU program runs on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from headrace.tensors.tensor import TensorCPU
from headrace.tensors.tensor_list import TensorListCPU


class _Extents(tuple[int, ...]):
    """A shape, as an attribute and as a method."""

    __slots__ = ()

    def __call__(self) -> list[int]:
        return list(self)


class _Count(int):
    """A number of axes, as an attribute and as a method."""

    def __call__(self) -> int:
        return int(self)


class _StandIn:
    """Methods of data on a GPU, for data in host memory."""

    __slots__ = ()
    stream = None

    def device_id(self) -> int:
        """The number of the GPU that it stands for: the first one."""
        return 0

    def copy_to_external(
        self,
        ptr: Any,
        cuda_stream: Any = None,
        non_blocking: bool = False,
        use_copy_kernel: bool = False,
    ) -> None:
        """Copy the data to other host memory, before it returns; there is no stream to order."""
        super().copy_to_external(ptr)  # type: ignore[misc]


class TensorOnHost(_StandIn, TensorCPU, NDArrayOperatorsMixin):
    """A tensor in host memory with all methods of a `TensorGPU`.

    It may be used as the NumPy array that a sample of a batch in host memory is, too.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    @property
    def shape(self) -> _Extents:  # it can be called
        """Extents of the axes."""
        return _Extents(self._array.shape)

    @property
    def ndim(self) -> _Count:  # it can be called
        """Number of axes."""
        return _Count(self._array.ndim)

    def as_cpu(self) -> TensorCPU:
        """The same data, as a tensor that stands for none on a GPU."""
        return TensorCPU._wrap(self._array, self._layout, self._dtype, self._source)

    def __getattr__(self, name: str) -> Any:
        if name == "__cuda_array_interface__":
            raise AttributeError(
                "A tensor in host memory has no `__cuda_array_interface__`: there is no GPU."
            )
        if name.startswith("_"):
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        return getattr(np.asarray(self), name)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> Any:
        arrays = [np.asarray(each) if isinstance(each, TensorCPU) else each for each in inputs]
        return getattr(ufunc, method)(*arrays, **options)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]

    def __setitem__(self, key: Any, value: Any) -> None:
        self._array[key] = value

    def __len__(self) -> int:
        return len(self._array)

    def __iter__(self) -> Iterator[Any]:
        return iter(np.asarray(self))

    def __bool__(self) -> bool:
        return bool(np.asarray(self))

    def __int__(self) -> int:
        return int(self._array)

    def __float__(self) -> float:
        return float(self._array)


class TensorListOnHost(_StandIn, TensorListCPU):
    """A batch in host memory with all methods of a `TensorListGPU`."""

    __slots__ = ()

    @classmethod
    def of(cls, batch: TensorListCPU) -> TensorListOnHost:
        """The same samples."""
        made = cls._make(batch._memory, batch._layout, batch._dtype, batch._ndim, batch._sources)
        assert isinstance(made, cls)
        return made

    def _sample(self, number: int) -> TensorOnHost:
        return _on_host(super()._sample(number))

    def at(self, i: int) -> TensorOnHost:
        """Sample `i`, which must not be negative."""
        return self._sample(self._checked_position(i))

    def _as_tensor(self, layout: str) -> TensorOnHost:
        return _on_host(super()._as_tensor(layout))

    def _as_reshaped(self, extents: tuple[int, ...], layout: str) -> TensorOnHost:
        return _on_host(super()._as_reshaped(extents, layout))

    def as_cpu(self) -> TensorListCPU:
        """The same samples, as a batch that stands for none on a GPU."""
        return TensorListCPU._make(
            self._memory, self._layout, self._dtype, self._ndim, self._sources
        )


def _on_host(tensor: TensorCPU) -> TensorOnHost:
    made = TensorOnHost._wrap(tensor._array, tensor._layout, tensor._dtype, tensor._source)
    assert isinstance(made, TensorOnHost)
    return made
