"""How many samples make a chunk."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from penstock.executor.cpu.chunks import chunk_size


@pytest.mark.parametrize(
    ("depth", "is_sent", "is_fed", "expected"),
    [(2, True, True, 6), (2, True, False, 8), (2, False, True, 8), (3, True, True, 10)],
)
def test_batches_that_are_fed_are_shared_out_more_finely_among_processes(
    depth, is_sent, is_fed, expected
):
    iteration = SimpleNamespace(size=128, next=0, fed={7: "a batch"} if is_fed else {})
    program = SimpleNamespace(
        processor_seconds=1e-3,
        sample_seconds=1e-3,
        chunk_seconds=2e-4,
        is_light=False,
        is_sent=is_sent,
    )
    assert chunk_size(iteration, program, 16, depth) == expected
