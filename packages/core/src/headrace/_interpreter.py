"""Start of fresh interpreters that know the library, and nothing of the user's program."""

from __future__ import annotations

import multiprocessing.spawn
import os
import signal
import subprocess
import sys

_ONE_THREAD = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")
"""Libraries that would start threads when they are imported; a process with threads must not fork,
and the processes of a program share out the processors among themselves."""


def start_interpreter(module: str, file: int) -> subprocess.Popen[bytes]:
    """Start one that calls `main(file)` of a module, `file` being an open file that it inherits.

    The caller is inside `no_fork`.
    """
    path = [os.path.abspath(entry) for entry in sys.path]
    code = f"import sys; sys.path[:] = {path!r}; from {module} import main; main({file})"
    executable = multiprocessing.spawn.get_executable()
    if isinstance(executable, bytes):
        executable = os.fsdecode(executable)
    flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]
    # A Ctrl-C waits until the new process takes no notice of it.
    blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return subprocess.Popen(
            [executable, *flags, "-P", "-c", code],
            stdin=subprocess.DEVNULL,
            pass_fds=[file],
            env={**os.environ, **dict.fromkeys(_ONE_THREAD, "1")},
        )
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, blocked)
