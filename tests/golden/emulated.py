"""The emulated GPU as GPU 0, outside of tests/gpu."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from headrace.tensors.gpu.runtime import install_runtime
from tests.support.gpu.runtime import EmulatedRuntime, current_emulated


@contextlib.contextmanager
def emulated_gpu() -> Iterator[None]:
    """Have all pipelines of a block use it."""
    devices: dict[int, EmulatedRuntime] = {}

    def make(device_id: int) -> EmulatedRuntime:
        return devices.setdefault(device_id, EmulatedRuntime(device_id))

    install_runtime(make, current_emulated)
    make(0).activate()
    try:
        yield
    finally:
        install_runtime(None)
