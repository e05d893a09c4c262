from __future__ import annotations

import pytest

from headrace.errors import GpuNotAvailableError
from headrace.tensors.gpu import cuda, runtime


@pytest.fixture
def without_gpu(monkeypatch):
    """A machine without a GPU, wherever this runs."""

    def none():
        raise GpuNotAvailableError("There is no GPU.")

    monkeypatch.setattr(cuda, "check_cuda", none)
    monkeypatch.setattr(runtime, "_runtimes", {})
