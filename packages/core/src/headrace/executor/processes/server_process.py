"""The server of worker processes, as the process that needs them sees it."""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import weakref

from headrace._forking import no_fork
from headrace._interpreter import start_interpreter
from headrace.executor.processes.foreign import allow_reading
from headrace.executor.sources.channel import Channel
from headrace.kernels.loaded import LoadedKernels, loaded_kernels

_ends: weakref.WeakSet[Channel] = weakref.WeakSet()


class ServerProcess:
    """Starts the server when it is first needed, and again if it was killed."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Held while the server is started, asked for a process, or ended."""
        self._control: Channel | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._is_closed = False
        """True if the program ends."""

    def start(self) -> None:
        """Start the server, if it does not run yet; do not wait for it."""
        with no_fork, self._lock:
            self._start()

    def _start(self) -> Channel:
        if self._is_closed:
            raise OSError("the program ends")
        if self._control is not None:
            return self._control
        ours, theirs = Channel.pair()
        with theirs:
            self._process = start_interpreter("headrace.executor.processes.server", theirs.fileno())
        allow_reading(self._process.pid)
        self._control = keep_from_forks(Channel(ours))
        return self._control

    def prepare(self, modules: list[str]) -> None:
        """Have the workers that are forked from now on share what this program has compiled, and
        `modules`. Does not wait for it.
        """
        kernels = loaded_kernels()
        with no_fork, self._lock:
            self._ask(modules, kernels)

    def fork(self, modules: list[str]) -> Channel:
        """A new worker, at the other end of the channel. Does not wait for it."""
        ours, theirs = Channel.pair()
        try:
            with theirs, no_fork, self._lock:
                self._ask(modules, None, theirs.fileno())
        except BaseException:
            ours.close()
            raise
        return keep_from_forks(Channel(ours))

    def _ask(self, modules: list[str], kernels: LoadedKernels | None, *end: int) -> None:
        for _ in range(2):
            control = self._start()
            try:
                control.send((modules, kernels), *end)
                return
            except OSError:  # it was killed
                self._end()

    def pid(self) -> int:
        """Number of the process; 0 if there is none."""
        process = self._process
        return 0 if process is None else process.pid

    def kill(self, pid: int) -> None:
        """Kill the server `pid`, which does not answer, and with it all workers, if that is still
        the one in use.
        """
        with self._lock:
            if self._process is not None and self._process.pid == pid:
                self._process.kill()
                self._end()

    def close(self) -> None:
        """End the server, and with it all workers, for good."""
        with self._lock:
            self._is_closed = True
            self._end()

    def _end(self) -> None:
        control, process = self._control, self._process
        self._control = self._process = None
        if control is None or process is None:
            return
        control.close()
        process.kill()  # it may be importing, and notice late that it is unused
        process.wait()

    def forget(self) -> None:
        """Leave the server to the process of which this one is a fork."""
        self._lock = threading.Lock()
        self._control = None
        if self._process is not None:
            self._process.returncode = 0  # not ours to wait for
            self._process = None


def keep_from_forks(channel: Channel) -> Channel:
    """Have forks of this process close `channel`, so that its other end notices our end."""
    _ends.add(channel)
    return channel


SERVER = ServerProcess()
"""The server of this process."""


def _after_fork() -> None:
    for channel in list(_ends):
        with contextlib.suppress(OSError):
            channel.close()
    _ends.clear()
    SERVER.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
