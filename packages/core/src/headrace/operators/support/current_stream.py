"""The stream that a function of the user's is to give its work on a GPU to."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager


class _Current(threading.local):
    stream = 0


_current = _Current()


def current_stream() -> int:
    """Address of the stream of the operator that calls the function this is called from.

    It is 0 on the CPU, and outside of such functions.
    """
    return _current.stream


@contextmanager
def working_on(stream: int) -> Iterator[None]:
    """Let `stream` be the current one, in the calling thread."""
    before, _current.stream = _current.stream, stream
    try:
        yield
    finally:
        _current.stream = before
