"""The line on a terminal while something takes long."""

from __future__ import annotations

import io
import json
import os
import pty
import select
import subprocess
import sys
import threading

import pytest

from headrace import progress
from headrace.compilation_notice import CompilationNotice
from headrace.progress import Progress, counted

LONG = 1000.0


class Terminal(io.StringIO):
    """A terminal that tells when a text was written."""

    def __init__(self, awaited="", tty=True):
        super().__init__()
        self.awaited, self.tty = awaited, tty
        self.came = threading.Event()

    def isatty(self):
        return self.tty

    def write(self, text):
        super().write(text)
        if self.awaited in self.getvalue():
            self.came.set()
        return len(text)


def threads():
    return [t for t in threading.enumerate() if t.name == "headrace-progress"]


@pytest.fixture(autouse=True)
def terminal(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "60")


@pytest.fixture(params=["rich", "plain"])
def drawn_by(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setattr(progress, "_rich", lambda stream: None)
    else:
        pytest.importorskip("rich")


@pytest.mark.usefixtures("drawn_by")
def test_a_line_counts_and_goes():
    stream = Terminal("2 of 4 files")
    with Progress("listing photos", 4, "files", patience_seconds=0, stream=stream) as work:
        work.step(2)
        assert stream.came.wait(60)
    said = stream.getvalue()
    assert "listing photos" in said
    assert "\n" not in said.rstrip().rpartition("2 of 4")[0]
    assert not threads()


@pytest.mark.parametrize("case", ["a log", "switched off", "no time", "a dumb terminal", "a fork"])
def test_nothing_is_written(case, monkeypatch):
    stream = Terminal(tty=case != "a log")
    if case == "switched off":
        monkeypatch.setenv("HEADRACE_PROGRESS", "0")
    if case == "a dumb terminal":
        monkeypatch.setenv("TERM", "dumb")
    if case == "a fork":
        monkeypatch.setattr(progress, "_home", -1)
    patience = LONG if case == "no time" else 0.0
    with Progress("listing", 3, patience_seconds=patience, stream=stream) as work:
        work.step()
        assert bool(threads()) == (case == "no time")
    assert stream.getvalue() == ""
    assert not threads()


def test_lines_are_as_wide_as_the_terminal(monkeypatch):
    monkeypatch.setattr(progress, "_rich", lambda stream: None)
    stream = Terminal("xx")
    with Progress("x" * 500, patience_seconds=0, stream=stream):
        assert stream.came.wait(60)
    assert max(map(len, stream.getvalue().split("\x1b[2K"))) <= 60


def test_what_is_counted_comes_through():
    items = counted(iter("abc"), "reading", "letters")
    assert next(items) == "a"
    assert list(items) == ["b", "c"]
    with pytest.raises(ZeroDivisionError):
        list(counted((1 / k for k in (1, 0)), "reading", "letters"))
    assert not threads()


def test_compiling_says_which_kernel(monkeypatch, caplog):
    monkeypatch.setattr(progress, "_rich", lambda stream: None)
    monkeypatch.setenv("HEADRACE_COMPILATION_NOTICE", "on")
    stream = Terminal("kernel 2: resample")
    monkeypatch.setattr(sys, "stderr", stream)
    notice = CompilationNotice(LONG)
    notice.begin("decode")
    notice.__exit__()
    notice._left = 0.0
    notice.begin("resample")
    assert stream.came.wait(60)
    notice.__exit__()
    assert not threads()
    assert not caplog.records


PROGRAM = """
import sys, threading
from headrace import progress
from headrace.operators.readers.coco_annotations import read_annotations

progress.Progress.__init__.__kwdefaults__["patience_seconds"] = 0.0
waited = threading.Event()
whole = progress.Progress.line
def line(self):
    waited.set()
    return whole(self)
progress.Progress.line = line
def steps(self, count=1, step=progress.Progress.step):
    step(self, count)
    waited.wait(60)
progress.Progress.step = steps if sys.stderr.isatty() else progress.Progress.step
print(len(read_annotations(sys.argv[1])[0]))
"""


@pytest.mark.parametrize("on_terminal", [True, False])
def test_a_real_terminal_and_a_file(tmp_path, on_terminal):
    path = tmp_path / "instances.json"
    images = [{"id": k, "file_name": f"{k}.jpg", "width": 1, "height": 1} for k in range(3)]
    path.write_text(json.dumps({"images": images, "annotations": [], "categories": []}))
    outer, inner = pty.openpty()
    with open(tmp_path / "log", "wb") as log:
        done = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, str(path)],
            stdout=subprocess.PIPE,
            stderr=inner if on_terminal else log,
        )
        assert done.communicate(timeout=120)[0] == b"3\n"
    os.close(inner)
    said = (tmp_path / "log").read_bytes()
    while on_terminal and select.select([outer], [], [], 0)[0]:
        try:
            said += os.read(outer, 4096)
        except OSError:  # the end
            break
    os.close(outer)
    assert (b"instances.json" in said) == on_terminal
    assert on_terminal or said == b""
