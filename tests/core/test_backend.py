"""Names that DALI programs look for in `backend`."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import backend, fn, pipeline_def, tensors
from headrace.config import (
    NUMBER_SWITCHES,
    WITHOUT_EFFECT,
    warn_of_variables_without_effect,
)
from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.tensors.buffer_sizes import BufferSettings
from headrace.tensors.pool import HOST_POOL
from tests.e2e.support import REPOSITORY


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


@pytest.fixture
def settings():
    yield
    backend.SetBufferGrowthFactor(1.1)
    backend.SetHostBufferShrinkThreshold(0.5)


@pytest.mark.usefixtures("settings")
def test_growth_factor_is_that_of_the_pool():
    sizes = {}
    for factor in (1, 4):
        backend.SetHostBufferGrowthFactor(factor)
        before = HOST_POOL.stats()
        assert before.bytes_idle == 0, "buffers of the sizes before are freed"
        array = HOST_POOL.empty(100_000, np.uint8)
        sizes[factor] = HOST_POOL.stats().bytes_in_use - before.bytes_in_use
        del array
    assert sizes == {1: 100_032, 4: 64 * 4**6}
    assert backend.GetDeviceBufferGrowthFactor() == 1.1


@pytest.mark.usefixtures("settings")
@pytest.mark.parametrize("value", [0.99, 4.01, float("nan"), "2", None])
def test_factors_and_thresholds_out_of_range(value):
    wrong = ArgumentValueError if isinstance(value, float) else ArgumentTypeError
    for set_factor in (backend.SetBufferGrowthFactor, backend.SetDeviceBufferGrowthFactor):
        with pytest.raises(wrong, match="Growth factor"):
            set_factor(value)
    with pytest.raises(wrong, match="Shrink threshold"):
        backend.SetHostBufferShrinkThreshold(-1.0 if value == 0.99 else value)
    assert backend.GetHostBufferGrowthFactor() == 1.1
    assert backend.GetHostBufferShrinkThreshold() == 0.5


@pytest.mark.parametrize("size", [-1, 1.5, "10"])
def test_sizes_of_preallocated_memory(size):
    with pytest.raises(ArgumentTypeError, match="`bytes`"):
        backend.PreallocatePinnedMemory(size)
    with pytest.raises(ArgumentTypeError, match="`bytes`"):
        backend.PreallocateDeviceMemory(size, 0)


def test_wrong_numbers_in_the_environment_are_told(monkeypatch):
    monkeypatch.setenv("DALI_HOST_BUFFER_GROWTH_FACTOR", "nonsense")
    settings = BufferSettings()
    with pytest.warns(UserWarning, match="FACTOR is 'nonsense'; allowed are numbers from 1 to 4"):
        assert settings.host_growth == 1.1
    assert settings.host_growth == 1.1  # without a second warning


@pipeline_def(batch_size=1, num_threads=1, device_id=None)
def anything():
    return fn.random.uniform()


def test_variables_without_effect_are_told_once(monkeypatch):
    monkeypatch.setenv("DALI_USE_VMM", "0")
    monkeypatch.setenv("DALI_RESTRICT_PINNED_MEM", "1")
    warn_of_variables_without_effect.cache_clear()
    with pytest.warns(UserWarning, match="DALI_RESTRICT_PINNED_MEM, DALI_USE_VMM .* no effect"):
        anything().build()
    anything().build()
    warn_of_variables_without_effect.cache_clear()


def test_variables_of_the_environment_are_documented():
    page = "".join(
        (REPOSITORY / "docs" / f"{name}.md").read_text() for name in ("memory", "remote")
    )
    for name in WITHOUT_EFFECT:
        assert f"`{name}`" in page
    for switch in NUMBER_SWITCHES:
        assert f"`{switch.name}`" in page
        assert not switch.general or f"`{switch.general}`" in page
