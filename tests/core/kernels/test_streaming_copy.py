"""Copies past the caches are copies, whatever the addresses, and however many threads take part."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from headrace.kernels.cpu import streaming_copy


@pytest.mark.sweep
@pytest.mark.parametrize("size", [0, 1, 63, 64, 255, 256, 1000, 4096 + 77])
@pytest.mark.parametrize("shift", [(0, 0), (1, 0), (0, 3), (63, 17)])
def test_every_byte_is_copied_and_no_other(size, shift):
    source = np.random.default_rng(size).integers(0, 256, size + 64, np.uint8)
    target = np.zeros(size + 192, np.uint8)
    begin = 64 + shift[1]
    streaming_copy.copy_streaming(target.ctypes.data + begin, source.ctypes.data + shift[0], size)
    np.testing.assert_array_equal(target[begin : begin + size], source[shift[0] :][:size])
    assert not target[:begin].any()
    assert not target[begin + size :].any()


@pytest.mark.parametrize("helpers", [0, 1, 3])
def test_threads_share_copies_one_after_the_other(helpers):
    """More copies than a late thread could miss, of more and fewer pieces in turn."""
    job = streaming_copy.new_job()
    for _ in range(helpers):
        threading.Thread(target=streaming_copy.serve, args=(job,), daemon=True).start()
    rng = np.random.default_rng(helpers)
    source = rng.integers(0, 256, 50_000, np.uint8)
    for _ in range(300):
        size, piece = (int(rng.integers(1, high)) for high in (len(source), 20_000))
        target = np.zeros(len(source), np.uint8)
        streaming_copy.copy_shared(job, target.ctypes.data, source.ctypes.data, size, piece)
        np.testing.assert_array_equal(target[:size], source[:size])
        assert not target[size:].any()
