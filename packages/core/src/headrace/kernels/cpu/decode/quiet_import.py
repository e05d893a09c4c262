"""Import a library that prints complaints of no consequence straight to the standard error."""

from __future__ import annotations

import importlib
import os
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import ModuleType

from headrace._forking import no_fork

_lock = threading.Lock()


def import_quietly(
    module: str, *, ignore: tuple[str, ...], environment: Mapping[str, str]
) -> ModuleType:
    """Import `module` without the lines on the standard error that contain a text of `ignore`.

    C++ code that runs while a shared library is loaded writes to the file descriptor, not to
    `sys.stderr`. It is redirected for that moment; every other line that arrives, from whichever
    thread, is passed on afterwards.
    """
    with no_fork, added_environment(environment):
        return _import_filtered(module, ignore)


@contextmanager
def added_environment(environment: Mapping[str, str]) -> Iterator[None]:
    """Set variables meanwhile, unless the user has set them; for one thread at a time."""
    with _lock:
        added = {name: value for name, value in environment.items() if name not in os.environ}
        os.environ.update(added)
        try:
            yield
        finally:
            for name in added:
                os.environ.pop(name, None)


def _import_filtered(module: str, ignore: tuple[str, ...]) -> ModuleType:
    try:
        saved = os.dup(2)
    except OSError:  # a process without a standard error
        return importlib.import_module(module)
    _flush()
    with tempfile.TemporaryFile() as captured:
        os.dup2(captured.fileno(), 2)
        try:
            return importlib.import_module(module)
        finally:
            _flush()
            os.dup2(saved, 2)
            os.close(saved)
            captured.seek(0)
            for line in captured:
                if not any(text in line.decode(errors="replace") for text in ignore):
                    os.write(2, line)


def _flush() -> None:
    if sys.stderr is not None:
        sys.stderr.flush()
