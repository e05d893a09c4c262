"""One line on a terminal while something takes longer than two seconds.

It is drawn on the terminal of the standard error, and goes when the work is done: nothing is
written to a log file. Where rich is installed, rich draws it.
"""

from __future__ import annotations

import os
import shutil
import sys
import threading
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any, Self, TextIO, TypeVar

from headrace.config import PROGRESS

T = TypeVar("T")

_AFTER_SECONDS = 2.0
_REDRAWN_AFTER_SECONDS = 0.2
_drawing = threading.Lock()
"""Held by the one that is drawn: there is one line."""
_home = os.getpid()


def is_wanted(stream: TextIO | None = None) -> bool:
    """True if lines are drawn: in the program's own process, on a terminal, unless switched off."""
    stream = stream or sys.stderr
    return (
        os.getpid() == _home
        and stream is not None
        and stream.isatty()
        and os.environ.get("TERM") != "dumb"
        and PROGRESS.value() == "1"
    )


class Progress:
    """A piece of work, as a context manager; `step` may be called by any thread."""

    def __init__(
        self,
        text: str,
        total: int = 0,
        unit: str = "",
        *,
        patience_seconds: float = _AFTER_SECONDS,
        stream: TextIO | None = None,
    ) -> None:
        self.text = text
        """The work: it may change meanwhile."""
        self.done = 0
        """Units that are done."""
        self._total = total
        self._unit = unit
        self._patience = patience_seconds
        self._stream = stream
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None
        self._began = 0.0

    def __enter__(self) -> Self:
        self._began = monotonic()
        if is_wanted(self._stream):
            self._thread = threading.Thread(
                target=self._show, name="headrace-progress", daemon=True
            )
            self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def step(self, count: int = 1) -> None:
        """Say that more units are done."""
        self.done += count

    def line(self) -> str:
        """The text to show now."""
        seconds = monotonic() - self._began
        parts = [self.text]
        if self._total:
            parts.append(f"{self.done:,} of {self._total:,} {self._unit}".rstrip())
            if 0 < self.done < self._total:
                left = seconds / self.done * (self._total - self.done)
                parts.append(f"{left:.0f} s left")
        elif self.done:
            parts.append(f"{self.done:,} {self._unit}".rstrip())
        return ", ".join([*parts, f"{seconds:.0f} s"])

    def _show(self) -> None:
        if self._ended.wait(self._patience):
            return
        while not _drawing.acquire(timeout=_REDRAWN_AFTER_SECONDS):
            if self._ended.is_set():
                return
        try:
            self._draw()
        finally:
            _drawing.release()

    def _draw(self) -> None:
        stream = self._stream or sys.stderr
        live = _rich(stream)
        while True:
            if live is not None:
                live.update(self.line())
            else:
                width = shutil.get_terminal_size().columns - 1
                stream.write(f"\r\x1b[2K{self.line()[:width]}")
                stream.flush()
            if self._ended.wait(_REDRAWN_AFTER_SECONDS):
                break
        if live is not None:
            live.stop()
        else:
            stream.write("\r\x1b[2K")
            stream.flush()


def _rich(stream: TextIO) -> Any:
    """A line that rich draws, unless there is no rich, or the program has it draw something."""
    try:
        from rich.console import Console
        from rich.errors import LiveError
    except ImportError:
        return None
    try:
        status = Console(file=stream).status("")
        status.start()
    except LiveError:
        return None
    return status


def counted(items: Iterable[T], text: str, unit: str, total: int = 0) -> Iterator[T]:
    """The items, with a line that counts them."""
    with Progress(text, total, unit) as progress:
        for item in items:
            yield item
            progress.step()
