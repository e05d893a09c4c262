"""Who may read memory on a GPU, and when."""

from __future__ import annotations

import numpy as np

from tests.support.gpu.late import late_batch, read_on


def test_the_stream_for_unknown_readers_waits_for_the_writer(emulated_gpu):
    data = np.arange(12, dtype=np.float32)
    tensor = late_batch(emulated_gpu, [data])[0]
    # Else it might be given out again, and whatever is done on it is in order.
    writers = emulated_gpu.acquire_stream()
    assert writers == tensor._access.stream
    stream = tensor._access.grant_unknown()
    assert stream not in (None, writers)
    assert any("copy" in what for what in emulated_gpu.pending()), "the host has waited"
    np.testing.assert_array_equal(read_on(emulated_gpu, tensor._address, data, stream), data)
    emulated_gpu.release_stream(writers)
