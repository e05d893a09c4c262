"""Errors of sources, as the consumer gets them."""

from __future__ import annotations

from penstock.errors import SourceWorkerError


def raised_in(error: BaseException, place: str) -> BaseException:
    """The error to raise for `error` of a source that a worker has called; `place` is added."""
    # Taken for what it is, a SystemExit or a StopIteration would end more than this batch.
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        found = SourceWorkerError(f"{type(error).__name__} in {place}")
        found.__cause__ = error
        return found
    error.add_note(f"raised in {place}")
    return error
