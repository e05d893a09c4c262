"""What the garbage collector runs calls no ufunc; see `tests.support.finalizers`."""

from __future__ import annotations

import ast
import gc
import importlib
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

from tests.e2e.support import run_python
from tests.support.finalizers import watched

_ROOT = Path(__file__).parents[2]
_SOURCES = sorted(
    path
    for folder in (*_ROOT.glob("packages/*/src"), _ROOT / "tests" / "support")
    for path in folder.rglob("*.py")
)


class _Adds:
    def __del__(self) -> None:
        np.zeros(3) + 1


class _LooksAway:
    def __del__(self) -> None:
        with np.errstate(all="ignore"):
            pass


def _look_away() -> None:
    with np.errstate(all="ignore"):
        pass


def _finalized() -> None:
    found = _Plain()
    weakref.finalize(found, _look_away)


class _Plain:
    pass


@pytest.mark.parametrize("make", [_Adds, _LooksAway, _finalized])
def test_ufuncs_in_finalizers_are_found(make, monkeypatch):
    heard = []
    monkeypatch.setattr(sys, "unraisablehook", lambda found: heard.append(str(found.exc_value)))
    monkeypatch.setattr(sys, "excepthook", lambda kind, error, trace: heard.append(str(error)))
    make()
    gc.collect()
    assert len(heard) == 1
    assert "PyCapsule" in heard[0], heard
    assert (np.zeros(3) + 1 == 1).all(), "all is as before behind it"


def _with_finalizers():
    for path in _SOURCES:
        if "tf-plugin" in path.parts or "__del__" not in (text := path.read_text()):
            continue
        module = ".".join(path.relative_to(_root_of(path)).with_suffix("").parts)
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and any(
                isinstance(part, ast.FunctionDef) and part.name == "__del__" for part in node.body
            ):
                yield module, node.name


def _root_of(path):
    return next((p for p in path.parents if p.name == "src"), _ROOT)


@pytest.mark.parametrize(("module", "name"), list(_with_finalizers()))
def test_every_finalizer_is_watched(module, name):
    """So every test that drops such an object looks for ufuncs."""
    try:
        cls = getattr(importlib.import_module(module), name)
    except ImportError as error:
        pytest.skip(str(error))
    assert cls.__del__.__code__ is watched(print).__code__


def test_no_generator_waits_within_an_error_state():
    """A generator that is dropped there would leave it in the garbage collector."""
    found = []
    for path in _SOURCES:
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.With):
                continue
            if not any("errstate" in ast.unparse(item) for item in node.items):
                continue
            if any(isinstance(inner, (ast.Yield, ast.YieldFrom)) for inner in ast.walk(node)):
                found.append(f"{path}:{node.lineno}")
    assert not found


PROGRAM = """
import contextvars
import gc

import numpy as np

from tests.support.gpu.memory import Memory

memory = Memory()
contextvars.ContextVar("another").set(1)  # else the table without the state needs no memory


class Garbage:
    def __init__(self):
        self.me = self
        self.address = memory.allocate(64, "device")

    def __del__(self):
        memory.free(self.address, "device")


class Tracked:
    __slots__ = ("a",)


gc.set_threshold(30, 10**6, 10**6)
for i in range(3_000):
    gc.collect(0)
    Garbage()
    state = np.errstate(invalid="ignore")
    state.__enter__()
    kept = [Tracked() for _ in range(5 + i % 40)]
    state.__exit__(None, None, None)  # which may run the finalizer
    np.ones(3) < 0
    del kept
print("survived")
"""


def test_emulated_memory_is_freed_while_an_error_state_is_left(monkeypatch):
    monkeypatch.setenv("PYTHONMALLOC", "debug")
    assert run_python("-c", PROGRAM).stdout == "survived\n"
