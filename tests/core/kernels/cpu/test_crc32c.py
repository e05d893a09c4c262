"""The checksum CRC-32C."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu import crc32c
from tests.support import tf_records


def test_known_values():
    """Those of RFC 3720, appendix B.4, and of the catalogue of checksums."""
    for data, want in (
        (b"", 0),
        (b"123456789", 0xE3069283),
        (bytes(32), 0x8A9136AA),
        (b"\xff" * 32, 0x62A8AB43),
        (bytes(range(32)), 0x46DD794E),
        (bytes(range(31, -1, -1)), 0x113FDB5C),
    ):
        array = np.frombuffer(b"." + data + b".", np.uint8)
        assert crc32c.crc32c(array, 1, 1 + len(data)) == want
        assert tf_records.crc32c(data) == want


def test_table_and_instruction():
    """Processors without the instruction get the same by a table."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        data = rng.integers(0, 256, 8, np.uint8)
        rest = rng.integers(0, 2**32, dtype=np.uint64)
        tail = ~crc32c.with_eight_by_table(~rest & np.uint64(0xFFFFFFFF), data.view(np.uint64)[0])
        want = tf_records.crc32c(data.tobytes())
        got = crc32c.with_eight_by_table(np.uint64(0xFFFFFFFF), data.view(np.uint64)[0])
        assert int(got) ^ 0xFFFFFFFF == want
        assert tail != rest
