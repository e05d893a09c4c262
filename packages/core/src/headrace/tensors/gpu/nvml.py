"""Facts about a GPU from the driver's management library, NVML, that CUDA does not give."""

from __future__ import annotations

import ctypes
import os
from typing import Any

from headrace.tensors.gpu.runtime import get_runtime

_LIBRARY = "libnvidia-ml.so.1"
_WORD_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)


def processors_near(device_id: int) -> frozenset[int]:
    """The processors of the host that are near a GPU; none where NVML does not tell.

    DALI's environment variable ``DALI_DISABLE_NVML`` forbids to ask.
    """
    if os.environ.get("DALI_DISABLE_NVML", "0").strip() not in ("", "0"):
        return frozenset()
    try:
        library = ctypes.CDLL(_LIBRARY)
        address = get_runtime(device_id).xp.cuda.runtime.deviceGetPCIBusId(device_id)
    except (OSError, AttributeError):  # no driver; or what is no device of CUDA's
        return frozenset()
    if library.nvmlInit_v2():
        return frozenset()
    try:
        return _near(library, address)
    finally:
        library.nvmlShutdown()


def _near(library: Any, address: str) -> frozenset[int]:
    """The same for the GPU at an address of PCI, which is one in all processes."""
    handle = ctypes.c_void_p()
    found = library.nvmlDeviceGetHandleByPciBusId_v2(address.encode(), ctypes.byref(handle))
    words = (ctypes.c_ulong * -(-_count() // _WORD_BITS))()
    if found or library.nvmlDeviceGetCpuAffinity(handle, ctypes.c_uint(len(words)), words):
        return frozenset()
    return frozenset(
        _WORD_BITS * k + bit
        for k, word in enumerate(words)
        for bit in range(_WORD_BITS)
        if word >> bit & 1
    )


def _count() -> int:
    """A number that no processor's number reaches."""
    return max(os.cpu_count() or 1, os.sysconf("SC_NPROCESSORS_CONF"), 1024)
