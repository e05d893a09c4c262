"""Who is woken where several threads wait for something to do."""

from __future__ import annotations

import threading

from headrace.executor.monitor import Monitor
from tests.support.processes import wait_until


def waiting(monitor, names, woken):
    """Threads that begin to wait in this order."""
    threads = []

    def wait(name):
        with monitor.lock:
            monitor.work.wait()
            woken.append(name)

    for count, name in enumerate(names, 1):
        threads.append(threading.Thread(target=wait, args=(name,), daemon=True))
        threads[-1].start()

        def is_waiting(count=count):
            with monitor.lock:
                return len(monitor.work._waiting) == count

        wait_until(is_waiting)
    return threads


def test_the_thread_that_has_begun_to_wait_last_is_woken():
    monitor, woken = Monitor(), []
    threads = waiting(monitor, "abc", woken)
    for count in (1, 2):
        with monitor.lock:
            monitor.work.notify()
        wait_until(lambda count=count: len(woken) == count)
    assert woken == ["c", "b"]
    with monitor.lock:
        monitor.work.notify_all()
        monitor.work.notify()  # nobody is left
    for thread in threads:
        thread.join(60)
    assert woken == ["c", "b", "a"]


def test_whoever_an_exception_has_woken_is_not_woken_again(monkeypatch):
    monitor, woken = Monitor(), []
    (thread,) = waiting(monitor, "a", woken)

    class Interrupted:
        """A lock that is free, and whose second holder gets a Ctrl-C while it waits."""

        is_held = False

        def acquire(self):
            if self.is_held:
                raise KeyboardInterrupt
            self.is_held = True

    with monitor.lock:
        with monkeypatch.context() as patch:
            patch.setattr(threading, "Lock", Interrupted)
            try:
                monitor.work.wait()
            except KeyboardInterrupt:
                woken.append("interrupted")
        monitor.work.notify()
    thread.join(60)
    assert woken == ["interrupted", "a"]
