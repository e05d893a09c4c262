from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from headrace.tensors.gpu import foreign_memory
from headrace.tensors.gpu.runtime import Runtime


@pytest.fixture(autouse=True)
def _nothing_is_kept(gpu_runtime: Runtime) -> Iterator[None]:
    """Every test lets go of other libraries' memory, some time after the last reader is through."""
    yield
    gc.collect(1)
    for _ in range(10):
        foreign_memory.release_finished()
    assert not foreign_memory._waiting
    gc.collect(1)  # while the GPU is there
