"""Devices, files and pipelines for the tests of the JAX plugin."""

from __future__ import annotations

import numpy as np
import pytest

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402 - where there is JAX

FILES = 21


@pytest.fixture(scope="session")
def devices():
    """Eight virtual devices on the CPU; the root conftest asks for them."""
    found = jax.devices("cpu")
    assert len(found) == 8, "JAX made its devices before it was told how many"
    return found


@pytest.fixture(scope="session")
def over(devices):
    """Makes shardings of the batch over so many devices."""

    def make(count, *spec):
        mesh = Mesh(np.array(devices[:count]), ("batch",))
        return NamedSharding(mesh, PartitionSpec(*(spec or ("batch",))))

    return make


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
