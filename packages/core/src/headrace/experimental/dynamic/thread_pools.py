"""The threads that share out the samples of a batch."""

from __future__ import annotations

import os
from typing import Any

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.executor.cpu.worker_threads import WorkerThreads
from headrace.experimental.dynamic import lifetime
from headrace.tracebacks import public, public_methods

_MOST_PER_CPU = 100
_setting: int | None = None


@public
def set_num_threads(num_threads: int | None) -> None:
    """Set how many threads contexts use that say nothing else and have not worked yet.

    Parameters
    ----------
    num_threads
        A positive number, or `None` for the default of `get_num_threads`.

    Raises
    ------
    ArgumentTypeError
        If it is not an integer.
    ArgumentValueError
        If it is not positive, or more than 100 for each CPU.
    """
    global _setting
    _setting = None if num_threads is None else _checked(num_threads, "num_threads")


@public
def get_num_threads() -> int:
    """Number of threads of contexts that set no other.

    What `set_num_threads` was told; otherwise the environment variable ``DALI_NUM_THREADS``;
    otherwise the number of CPUs that the process may use.

    Raises
    ------
    ArgumentValueError
        If the environment variable is not a positive integer.
    """
    if _setting is not None:
        return _setting
    text = os.environ.get("DALI_NUM_THREADS")
    if text is None:
        return _cpus()
    try:
        number = int(text)
    except ValueError:
        raise ArgumentValueError(
            f"The environment variable DALI_NUM_THREADS={text!r} is not an integer."
        ) from None
    return _checked(number, "the environment variable DALI_NUM_THREADS")


def _cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _checked(number: Any, name: str) -> int:
    if not hasattr(number, "__index__"):
        raise ArgumentTypeError(f"`{name}` is an integer, got {number!r}.")
    count = int(number.__index__())
    most = _MOST_PER_CPU * _cpus()
    if not 0 < count <= most:
        raise ArgumentValueError(f"`{name}` is {count}; it must be from 1 to {most}.")
    return count


@public_methods
class ThreadPool:
    """Threads that contexts share.

    A thread that evaluates takes part in the work itself, so that one thread less is started, and
    only when there is work for it.

    Parameters
    ----------
    num_threads
        How many threads work on one batch at most; `get_num_threads()` when not given.
    device_id
        Number of the GPU that the contexts work with, or `None` for none; the current device's when
        not given.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `num_threads` is not an integer, or is negative.
    """

    def __init__(self, num_threads: int | None = None, *, device_id: Any = ...) -> None:
        from headrace.experimental.dynamic.devices import Device

        if num_threads is None:
            num_threads = get_num_threads()
        elif num_threads != 0 or isinstance(num_threads, bool):
            num_threads = _checked(num_threads, "num_threads")
        self._device_id = Device.current().device_id if device_id is ... else device_id
        self._threads = WorkerThreads(num_threads)
        lifetime.track(self._threads)

    @property
    def num_threads(self) -> int:
        """Largest number of threads that work on one batch."""
        return self._threads.threads

    @property
    def device_id(self) -> int | None:
        """Number of the GPU; `None` for none."""
        return self._device_id
