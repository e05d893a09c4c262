"""One line for the user when kernels are being compiled and that takes longer than a second: on a
terminal, which and how many; elsewhere a line in the log.
"""

from __future__ import annotations

import logging
import threading
from time import monotonic

from headrace.config import COMPILATION_NOTICE
from headrace.progress import Progress, is_wanted

_LOG = logging.getLogger("headrace")
_NOTICE_AFTER_SECONDS = 1.0


class CompilationNotice:
    """Logs a line while kernels are compiled, once, when that has taken a second altogether.

    Used as a context manager around each compilation, by any thread; compilations may nest. A
    process that finds its kernels in the cache never gets here.
    """

    def __init__(self, patience_seconds: float = _NOTICE_AFTER_SECONDS) -> None:
        self._left = patience_seconds
        self.seconds = 0.0
        """Total time spent in finished compilations of kernels."""
        self._lock = threading.Lock()
        # Guarded by the lock.
        self._told = False
        self._running = 0
        self._since = 0.0
        self._timer: threading.Timer | None = None
        self._progress: Progress | None = None
        self._compiled = 0

    def begin(self, name: str) -> None:
        """Enter, to compile the kernel with this name."""
        self.__enter__()
        with self._lock:
            if self._progress is not None:
                self._progress.text = f"compiling kernel {self._compiled + 1}: {name}"

    def __enter__(self) -> None:
        with self._lock:
            self._running += 1
            if self._running == 1:
                self._since = monotonic()
            if self._running == 1 and not self._told and is_wanted():
                if COMPILATION_NOTICE.value() == "on":
                    self._progress = Progress("compiling", patience_seconds=max(self._left, 0.0))
                    self._progress.__enter__()
            elif self._running == 1 and not self._told:
                self._timer = threading.Timer(max(self._left, 0.0), self._tell)
                self._timer.daemon = True
                self._timer.name = "headrace-compilation-notice"
                self._timer.start()

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._running -= 1
            self._compiled += 1
            timer = progress = None
            is_long = False
            if not self._running:
                timer, self._timer = self._timer, None
                progress, self._progress = self._progress, None
                passed = monotonic() - self._since
                self._left -= passed
                self.seconds += passed
                is_long = self._left <= 0
        if timer is not None:
            timer.cancel()
            timer.join()
            if is_long:  # and the timer's thread may not have got as far
                self._tell()
        if progress is not None:
            progress.__exit__()

    def silence(self) -> None:
        """Tell nothing: another process tells the user."""
        self._told = True

    def _tell(self) -> None:
        with self._lock:
            if self._told:
                return
            self._told = True
        if COMPILATION_NOTICE.value() == "on":
            # A warning is shown where the program did not set up logging.
            _LOG.warning(
                "Headrace is compiling kernels for this machine. This takes some seconds, once: "
                "later runs find them in the cache."
            )


compiling = CompilationNotice()
"""The process's own."""
