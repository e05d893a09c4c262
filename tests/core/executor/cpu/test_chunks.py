"""How many samples make a chunk."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headrace.executor.cpu.chunks import chunk_size


@pytest.mark.parametrize(
    ("depth", "is_sent", "is_fed", "expected"),
    [
        (2, True, True, 6),
        (2, True, False, 8),
        (2, False, True, 8),
        (3, True, True, 8),
        (6, True, True, 14),
    ],
)
def test_batches_that_are_fed_are_shared_out_more_finely_among_processes(
    depth, is_sent, is_fed, expected
):
    iteration = SimpleNamespace(size=128, next=0, fed={7: "a batch"} if is_fed else {})
    program = SimpleNamespace(
        processor_seconds=1e-3,
        own_seconds=1e-3,
        sample_seconds=1e-3,
        chunk_seconds=2e-4,
        is_pass_through=False,
        is_sent=is_sent,
    )
    assert chunk_size(iteration, program, 16, depth) == expected


@pytest.mark.parametrize(
    ("own", "threads", "expected"),
    [(1.3e-3, 16, 8), (0.65e-3, 16, 16), (4e-5, 16, 64), (4e-5, 2, 64), (0.0, 16, 64)],
)
def test_what_others_help_with_need_not_be_shared_out(own, threads, expected):
    iteration = SimpleNamespace(size=128, next=0, fed={})
    program = SimpleNamespace(
        processor_seconds=1.3e-3,
        own_seconds=own,
        sample_seconds=1.3e-3,
        chunk_seconds=1e-4,
        is_pass_through=False,
        is_sent=False,
    )
    assert chunk_size(iteration, program, threads, 2) == expected
