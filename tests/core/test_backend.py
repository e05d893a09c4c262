"""Names that DALI programs look for in `backend`."""

from __future__ import annotations

import numpy as np

from penstock import backend, tensors
from penstock.tensors.pool import HOST_POOL


def test_names():
    assert backend.TensorCPU is tensors.TensorCPU
    assert backend.TensorListCPU is tensors.TensorListCPU
    for name in backend.__all__:
        assert hasattr(backend, name)


def test_unused_memory_is_released():
    HOST_POOL.empty(10_000, np.uint8)
    assert HOST_POOL.stats().bytes_idle > 0
    backend.ReleaseUnusedMemory()
    assert HOST_POOL.stats().bytes_idle == 0
