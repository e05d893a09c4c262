"""Files for the tests of the TensorFlow plugin, which run where there is TensorFlow."""

from __future__ import annotations

import os

import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

tf = pytest.importorskip("tensorflow")

# Two devices, for the tests of strategies.
tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)

FILES = 21


@pytest.fixture(scope="session")
def files(tmp_path_factory):
    """Files that hold nothing but their numbers, which are their labels, too."""
    folder = tmp_path_factory.mktemp("files")
    names = []
    for k in range(FILES):
        path = folder / f"{k:02}.bin"
        path.write_bytes(bytes([k]) * 64)
        names.append(str(path))
    return names
