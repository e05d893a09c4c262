"""Programs that are carried by one compiled loop, or are not."""

from __future__ import annotations

from itertools import chain

from headrace.executor.cpu.program import Program


def without(monkeypatch):
    """Have no program be compiled."""
    monkeypatch.setattr(Program, "compiled", None)


def assert_equal_bits(found, expected):
    for one, other in zip(chain(*found), chain(*expected), strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        assert one.tobytes() == other.tobytes()
