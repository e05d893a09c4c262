"""`decoders.inflate` on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import ArgumentChoiceError
from tests.support.gpu.alike import check_alike, check_same_error
from tests.support.gpu.run_operator import run_gpu_operator
from tests.support.lz4_blocks import lz4_block

_rng = np.random.default_rng(0)
TEXTS = [b"", b"ab" * 900, bytes(3000), _rng.integers(0, 4, 5000, np.uint8).tobytes(), b"xyz"]


def test_blocks():
    rows = [lz4_block(text) for text in TEXTS]
    shapes = [np.int32([len(text)]) for text in TEXTS]
    for more in (0, 7):
        got = check_alike("decoders.inflate", rows, shape=[s + np.int32(more) for s in shapes])
        assert [row.tobytes() for row in got] == [text + bytes(more) for text in TEXTS]


def test_chunks():
    wanted = [_rng.integers(0, 3, (n, 5, 4), np.int16) for n in (3, 1, 4)]
    blocks = [[lz4_block(chunk.tobytes()) for chunk in chunks] for chunks in wanted]
    got = check_alike(
        "decoders.inflate",
        [np.concatenate(each) for each in blocks],
        shape=[5, 4],
        dtype=np.int16,
        chunk_sizes=[np.int32([len(b) for b in each]) for each in blocks],
    )
    for a, b in zip(got, wanted, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_cannot_be_inflated():
    rows = [lz4_block(text) for text in TEXTS[1:3]]
    for row, text in zip(rows, TEXTS[1:3], strict=True):
        wrong = row.copy()
        wrong[-3] ^= 255
        for block, room in ((row, len(text) - 1), (row[:-1], len(text)), (wrong[:5], len(text))):
            options = {"shape": room, "check_output_size": True}
            check_same_error("decoders.inflate", [lz4_block(b"q"), block], sample=1, **options)
            (got,) = run_gpu_operator("decoders.inflate", [block], shape=room)
            assert got.shape == (room,)
    with pytest.raises(ArgumentChoiceError, match="works on the CPU only"):
        run_gpu_operator("decoders.inflate", rows, shape=5000, algorithm="deflate")
