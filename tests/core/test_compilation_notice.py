"""The line that is logged when compiling takes long."""

from __future__ import annotations

import logging
import threading

import pytest

from headrace.compilation_notice import CompilationNotice

SHORT, LONG = 1e-3, 1000.0


class Lines(logging.Handler):
    """Collects what is logged, and can be waited for."""

    def __init__(self):
        super().__init__()
        self.lines = []
        self.came = threading.Event()

    def emit(self, record):
        self.lines.append(record.getMessage())
        self.came.set()


@pytest.fixture
def logged(monkeypatch):
    monkeypatch.setenv("HEADRACE_COMPILATION_NOTICE", "on")
    handler, logger = Lines(), logging.getLogger("headrace")
    logger.addHandler(handler)
    logger.propagate = False
    yield handler
    logger.removeHandler(handler)
    logger.propagate = True


def timers():
    return [t for t in threading.enumerate() if t.name == "headrace-compilation-notice"]


def test_one_line_while_it_lasts(logged):
    notice = CompilationNotice(SHORT)
    with notice, notice:
        assert logged.came.wait(60)
    for _ in range(3):
        with notice:
            assert not timers()
    (line,) = logged.lines
    assert "compiling kernels" in line


def test_nothing_when_it_is_short(logged):
    notice = CompilationNotice(LONG)
    with notice:
        with notice:
            assert len(timers()) == 1
        assert len(timers()) == 1  # the outer one goes on
    assert not timers()
    assert logged.lines == []


def test_a_silenced_one_waits_for_nothing(logged):
    notice = CompilationNotice(0.0)
    notice.silence()
    with notice:
        assert not timers()
    assert logged.lines == []


def test_short_ones_add_up(logged):
    notice = CompilationNotice(SHORT)
    while notice.seconds < SHORT:
        assert logged.lines == []
        with notice:
            pass
    with notice:
        pass
    assert len(logged.lines) == 1


def test_errors_pass_and_end_it(logged):
    notice = CompilationNotice(LONG)
    with pytest.raises(ZeroDivisionError), notice:
        raise ZeroDivisionError
    assert not timers()


def test_switched_off(logged, monkeypatch):
    monkeypatch.setenv("HEADRACE_COMPILATION_NOTICE", "off")
    notice = CompilationNotice(SHORT)
    with notice:
        timer = notice._timer
        timer.join(60)
    assert not timer.is_alive()
    assert logged.lines == []
