"""A cluster of two nodes on this machine, and a folder of images."""

from __future__ import annotations

import gc
import os

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

import numpy as np
import pytest

ray = pytest.importorskip("ray", reason="needs Ray: hatch run ray:run")

from ray.cluster_utils import Cluster  # noqa: E402

from headrace.kernels.cpu import opencv  # noqa: E402
from headrace.pipeline.engine import RUNNING  # noqa: E402

STORE_BYTES = 120 << 20


@pytest.fixture(scope="session")
def cluster():
    """Node of the trainer with two processors, and another one with two."""
    made = Cluster(
        initialize_head=True,
        head_node_args={
            "num_cpus": 2,
            "object_store_memory": STORE_BYTES,
            "include_dashboard": False,
        },
    )
    made.add_node(num_cpus=2, object_store_memory=STORE_BYTES, resources={"far": 2})
    ray.init(address=made.address, log_to_driver=False)
    yield made
    gc.collect()
    for engine in list(RUNNING):  # of tests that failed: their tracebacks keep it
        engine.executor.shutdown()
    ray.shutdown()
    made.shutdown()


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    """Folder with 22 images of different sizes in two classes."""
    folder = tmp_path_factory.mktemp("images")
    rng = np.random.default_rng(5)
    cv2 = opencv.cv2()
    for k in range(22):
        (folder / "ab"[k % 2]).mkdir(exist_ok=True)
        small = rng.integers(0, 255, (6, 8, 3), np.uint8)
        image = cv2.resize(small, (60 + 3 * k, 50 + k), interpolation=cv2.INTER_CUBIC)
        cv2.imwrite(str(folder / "ab"[k % 2] / f"{k:02d}.jpg"), image)
    return folder
