"""Settings of memory and statistics of it, as real DALI has them."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from penstock.tensors.buffer_sizes import BufferSettings

_HOST, _BOTH = "DALI_HOST_BUFFER_GROWTH_FACTOR", "DALI_BUFFER_GROWTH_FACTOR"
_SHRINK = "DALI_HOST_BUFFER_SHRINK_THRESHOLD"
_PRINTS = """
from nvidia.dali import backend
print(backend.GetHostBufferGrowthFactor(), backend.GetDeviceBufferGrowthFactor())
print(backend.GetHostBufferShrinkThreshold())
"""


@pytest.mark.filterwarnings("ignore:The environment variable")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {_BOTH: "2", _HOST: "3", _SHRINK: "0.25"},
        {_HOST: "0.5", _SHRINK: "-1"},
        {_BOTH: "9", _SHRINK: "2"},
    ],
    ids=str,
)
def test_environment(given, monkeypatch):
    for name in (_HOST, _BOTH, _SHRINK, "DALI_DEVICE_BUFFER_GROWTH_FACTOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = BufferSettings()
    ours = [settings.host_growth, settings.device_growth, settings.host_shrink]
    script = [sys.executable, "-W", "ignore", "-c", _PRINTS]
    printed = subprocess.run(script, env=os.environ, capture_output=True, text=True, timeout=100)
    assert ours == [float(text) for text in printed.stdout.split()]
