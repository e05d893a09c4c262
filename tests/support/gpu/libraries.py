"""CuPy and PyTorch, as far as their arrays tell of themselves: for machines without a GPU."""

from __future__ import annotations

import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from headrace.tensors.gpu.runtime import Runtime
from tests.support.gpu.foreign import DLPackArray


class LibraryArray(DLPackArray):
    """An array whose values are on their way, on its library's current stream.

    `transposed`: whether it sees its memory with the axes in the opposite order.
    """

    library: Any
    """The module it belongs to, installed by `fake_libraries`."""

    def __init__(self, runtime: Runtime, values: np.ndarray, *, transposed: bool = False) -> None:
        super().__init__(runtime, values)
        self.packed = not transposed or values.ndim < 2
        self.shape = values.shape[::-1] if transposed else values.shape
        current = self.library.current.ptr if runtime.device_id == 0 else 0
        with runtime.active():
            runtime.wait(current, runtime.record(self.stream))

    def _array(self) -> Any:
        array = super()._array()
        return array if self.packed else array.T


class CupyArray(LibraryArray):
    """``cupy.ndarray``."""

    def __init__(self, runtime: Runtime, values: np.ndarray, **options: Any) -> None:
        super().__init__(runtime, values, **options)
        self.dtype = self.values.dtype
        self.data = SimpleNamespace(ptr=self.address, device_id=runtime.device_id, mem=self)

    @property
    def _c_contiguous(self) -> bool:
        return self.packed


class PyTorchTensor(LibraryArray):
    """``torch.Tensor``."""

    is_cuda = True
    requires_grad = False

    @property
    def layout(self) -> Any:
        return self.library.strided

    @property
    def dtype(self) -> Any:
        return self.library.dtypes.setdefault(self.values.dtype.name, _Dtype(self.values.dtype))

    def get_device(self) -> int:
        return self.runtime.device_id

    def is_contiguous(self) -> bool:
        return self.packed

    def data_ptr(self) -> int:
        return self.address

    def untyped_storage(self) -> Any:
        return SimpleNamespace(owner=self)

    def __dlpack__(self, **how: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        return super().__dlpack__(**how)


class _Dtype:
    def __init__(self, dtype: np.dtype) -> None:
        self._name = dtype.name

    def __str__(self) -> str:
        return f"torch.{self._name}"


CupyArray.__module__, CupyArray.__qualname__ = "cupy", "ndarray"
PyTorchTensor.__module__, PyTorchTensor.__qualname__ = "torch", "Tensor"


class _Stream(SimpleNamespace):
    @property
    def cuda_stream(self) -> int:
        return self.ptr  # type: ignore[no-any-return]


_DEFAULT = _Stream(ptr=0)


def fake_libraries(runtime: Runtime, patch: pytest.MonkeyPatch) -> list[int]:
    """Install modules ``cupy`` and ``torch``, each with a current stream of its own on `runtime`.

    On other GPUs their current stream is the default one.

    Returns
    -------
    The streams, in this order; release them at the end.
    """
    streams = [_Stream(ptr=runtime.acquire_stream()) for _ in range(2)]
    cupy = SimpleNamespace(
        __name__="cupy",
        ndarray=CupyArray,
        current=streams[0],
        cuda=SimpleNamespace(
            get_current_stream=lambda device_id=-1: _DEFAULT if device_id > 0 else streams[0],
            runtime=SimpleNamespace(CUDARuntimeError=RuntimeError),
        ),
    )
    torch = SimpleNamespace(
        __name__="torch",
        Tensor=PyTorchTensor,
        current=streams[1],
        strided=object(),
        dtypes={},
        cuda=SimpleNamespace(
            current_stream=lambda device: _DEFAULT if device > 0 else streams[1],
            is_initialized=lambda: True,
        ),
    )
    patch.setitem(sys.modules, "cupy", cupy)
    patch.setitem(sys.modules, "torch", torch)
    patch.setattr(CupyArray, "library", cupy, raising=False)
    patch.setattr(PyTorchTensor, "library", torch, raising=False)
    return [stream.ptr for stream in streams]
