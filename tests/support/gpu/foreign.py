"""Arrays on the GPU of another library, which frees their memory the moment they are gone."""

from __future__ import annotations

import ctypes
import weakref
from typing import Any

import numpy as np

from headrace.tensors.gpu.runtime import Runtime

_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", ctypes.pythonapi)
)


def _free(runtime: Runtime, address: int, pinned: int, stream: int) -> None:
    with runtime.active():  # on whatever thread the array is dropped
        runtime.synchronize(stream)
        runtime.release_stream(stream)
        runtime.free(address)
        runtime.free_pinned(pinned)


class ForeignArray:
    """An array whose values are on their way, on a stream of its own.

    `runtime`: the GPU. `values`: what it will hold. `interface_version`: of the CUDA array
    interface.

    `asked`: the streams that `__dlpack__` was called with.
    """

    def __init__(self, runtime: Runtime, values: np.ndarray, *, interface_version: int = 3) -> None:
        self.runtime = runtime
        self.values = np.ascontiguousarray(values).reshape(values.shape)
        self.stream = runtime.acquire_stream()
        self.asked: list[int | None] = []
        self._interface_version = interface_version
        size = max(self.values.nbytes, 1)
        self.address = runtime.allocate(size)
        pinned = runtime.allocate_pinned(size)
        ctypes.memmove(pinned, self.values.ctypes.data, self.values.nbytes)
        if self.values.nbytes:
            runtime.copy(self.address, pinned, self.values.nbytes, self.stream)
        # Unlike `__del__`, this keeps the runtime, whatever the order in which garbage is found.
        weakref.finalize(self, _free, runtime, self.address, pinned, self.stream)

    def _array(self) -> Any:
        values = self.values
        return self.runtime.array(
            self.address, values.shape, values.dtype, None, self, values.nbytes
        )

    def capsule(self, **version: Any) -> Any:
        """A DLPack capsule, for readers on the array's stream."""
        array = self._array()
        if not isinstance(array, np.ndarray):
            return array.__dlpack__(stream=-1, **version)
        capsule = array.__dlpack__(**version)
        if version:
            address = _pointer(capsule, b"dltensor_versioned") + 32
        else:
            address = _pointer(capsule, b"dltensor")
        device = (ctypes.c_int32 * 2).from_address(address + 8)
        device[0], device[1] = 2, self.runtime.device_id
        return capsule


class DLPackArray(ForeignArray):
    """One that speaks DLPack."""

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.runtime.device_id

    def __dlpack__(self, *, stream: int | None = None, max_version: Any = None) -> Any:
        self.asked.append(stream)
        assert stream is not None
        self.runtime.wait(stream, self.runtime.record(self.stream))
        return self.capsule(**({} if max_version is None else {"max_version": max_version}))


class OldDLPackArray(DLPackArray):
    """One from before DLPack had versions."""

    def __dlpack__(self, *, stream: int | None = None) -> Any:
        return super().__dlpack__(stream=stream)


class InterfaceArray(ForeignArray):
    """One with the CUDA array interface."""

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        interface: dict[str, Any] = {
            "version": self._interface_version,
            "shape": self.values.shape,
            "typestr": self.values.dtype.str,
            "data": (self.address, False),
        }
        if self._interface_version >= 3:
            interface["stream"] = self.stream
        else:  # who cannot tell the stream has to be on the default one
            self.runtime.wait(1, self.runtime.record(self.stream))
        return interface
