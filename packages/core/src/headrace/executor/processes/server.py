"""The process that worker processes are forked from.

A fresh interpreter that imports nothing of the user's program. It imports the engine, libraries and
kernels once, so that workers start within milliseconds and share its memory. It has one thread, as
forking demands, and ends with the process that started it.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import os
import signal
import socket
import sys
from typing import Any

from headrace._lazy_module import _LazyModule
from headrace.compilation_notice import compiling
from headrace.executor.sources.channel import Channel
from headrace.kernels.loaded import load_kernels

_LIBRARIES = (
    "numpy",
    "cv2",
    "numba",
    "cloudpickle",
    "headrace.executor.processes.shared_pool",
    "headrace.executor.processes.worker",
)
_PR_SET_PDEATHSIG = 1


def main(file: int) -> None:
    """Load on demand what workers are to share, and fork them, until the other end of the socket
    `file` is closed.
    """
    # A Ctrl-C goes to all processes of the terminal; the parent decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # the kernel buries them
    control = Channel(socket.socket(fileno=file))
    for name in _LIBRARIES:
        importlib.import_module(name)
    _prepare_kernels()
    tells = True
    while True:
        try:
            (modules, kernels), end = control.receive()
        except (EOFError, OSError):
            os._exit(0)
        _import(modules)
        if kernels is not None:
            load_kernels(kernels)
        if end is None:
            continue
        # What is there now is shared with workers as long as it is not written to.
        gc.collect()
        gc.freeze()
        try:
            is_worker = os.fork() == 0
        except OSError:  # no more processes are allowed: the parent notices that no answer comes
            is_worker = False
        if is_worker:
            control.close()
            if not tells:  # the first worker tells the user, who is told once
                compiling.silence()
            _work(end)
        tells = False
        os.close(end)


def _prepare_kernels() -> None:
    """Have Numba learn its types, which takes it half a second before the first kernel."""
    from numba.core.registry import cpu_target

    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()


def _import(modules: list[str]) -> None:
    """Import modules of the library, and the kernels that these use."""
    for name in modules:
        importlib.import_module(name)
    for name, module in list(sys.modules.items()):
        if name.startswith("headrace.operators."):
            for value in list(vars(module).values()):
                if isinstance(value, _LazyModule) and ".gpu" not in value.__name__:
                    importlib.import_module(value.__name__)


def _work(end: int) -> None:
    import numpy as np

    from headrace.executor.processes.worker import serve

    status = 1
    channel = Channel(socket.socket(fileno=end))
    try:
        end_with_parent()
        np.random.seed()  # noqa: NPY002 - each worker draws something else, as Python's own random
        serve(channel)
        status = 0
    except (EOFError, OSError):
        status = 0  # the parent is gone, or does not want any more
    except BaseException:
        sys.excepthook(*sys.exc_info())
    finally:
        os._exit(status)


def end_with_parent() -> None:
    """Have the kernel kill this process when its parent, which has one thread, ends."""
    parent = os.getppid()
    libc: Any = ctypes.CDLL(None)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
