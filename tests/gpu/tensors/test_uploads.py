"""Small things on their way to the device, many of them at a time."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.tensors.gpu.pool import StagingPool
from headrace.tensors.gpu.uploads import Uploads
from tests.support.gpu.session import gpu_session


@pytest.mark.parametrize("sizes", [(5,), (65536,), (65537, 3), (100_000, 90_000, 1), (300_000, 7)])
def test_everything_arrives(sizes):
    rng = np.random.default_rng(0)
    contents = [rng.integers(0, 256, size, np.uint8) for size in sizes]
    with gpu_session() as session:
        staging = StagingPool(session.runtime)
        uploads = Uploads(session.runtime, session.stream, session.pool, staging, together=True)
        for _ in range(2):
            addresses = [uploads.add(content) for content in contents]
            uploads.send()
            found = []
            for address, content in zip(addresses, contents, strict=True):
                found.append(session.queue.pinned.empty(content.shape, content.dtype))
                target = found[-1].ctypes.data
                session.runtime.copy(target, address, content.nbytes, session.stream)
            session.synchronize()
            uploads.finish()
            for got, content in zip(found, contents, strict=True):
                np.testing.assert_array_equal(got, content)
