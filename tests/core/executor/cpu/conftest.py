"""Fixtures of tests of the CPU's executor."""

from __future__ import annotations

import pytest

from headrace.executor.cpu import compiled_chunk
from headrace.executor.cpu.compiled_chunk import CompiledChunks


@pytest.fixture
def carried(monkeypatch):
    """Chunks that were carried by the compiled loop, or were left: a list of answers."""
    found = []
    monkeypatch.setattr(compiled_chunk, "_FEWEST_OF_ONE_STEP", 1)
    carry = CompiledChunks.carry

    def noted(self, *args):
        found.append(carry(self, *args))
        return found[-1]

    monkeypatch.setattr(CompiledChunks, "carry", noted)
    monkeypatch.setenv("HEADRACE_WORKERS", "threads")
    return found
