"""Loops that are compiled once, and found again by later processes."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
import threading

import numba
import pytest

from headrace import kernel_cache, kernel_claims
from headrace.kernels import ahead, compilation
from tests.e2e.support import REPOSITORY

LOOPS = """
from headrace.kernels.compilation import cfunc, njit

@njit(nogil=True)
def twice(x):
    return 2 * x

def added_to(constant):
    @njit()
    def add(x):
        return x + constant
    return add

add_one, add_ten = added_to(1), added_to(10)
"""


def forget():
    for known in (compilation._stamp, compilation._text, compilation._imported):
        known.cache_clear()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(folder))
    yield folder / "kernels"
    forget()


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Import the module anew, as another process would."""

    def load(text=LOOPS):
        forget()
        path = tmp_path / "loops.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location("loops", path)
        module = importlib.util.module_from_spec(spec)
        monkeypatch.setitem(sys.modules, "loops", module)
        exec(compile(text, str(path), "exec"), module.__dict__)
        return module

    return load


def hits(dispatcher):
    return sum(dispatcher.stats.cache_hits.values())


def test_compiled_code_is_found_again(load, cache):
    first = load()
    assert (first.twice(4), first.twice(1.5)) == (8, 3.0)
    assert hits(first.twice) == 0
    assert sorted(p.name.partition("-")[0] for p in cache.iterdir()) == ["loops.twice"] * 2
    again = load()
    assert (again.twice(4), again.twice(1.5)) == (8, 3.0)
    assert hits(again.twice) == 2


def test_closures_are_told_apart(load):
    for expected in (0, 1):
        module = load()
        assert (module.add_one(1), module.add_ten(1)) == (2, 11)
        assert hits(module.add_one) == hits(module.add_ten) == expected


def test_another_text_is_compiled_anew(load, cache):
    assert load().twice(4) == 8
    changed = load(LOOPS.replace("2 * x", "3 * x"))
    assert changed.twice(4) == 12
    assert hits(changed.twice) == 0
    assert len(list(cache.iterdir())) == 1  # the old one is written over
    again = load(LOOPS.replace("2 * x", "3 * x"))
    assert again.twice(4) == 12
    assert hits(again.twice) == 1


@pytest.mark.parametrize("changed", ["", "cpu/loops", "cpu/words", "plan/__init__", "plan/sizes"])
def test_texts_of_imported_kernels_count(changed, tmp_path, monkeypatch):
    """What a function takes in may be in another file, which that one imports, or a third one."""
    texts = {
        "cpu/loops": "from headrace.kernels.cpu.words import (\n    one,\n    two,\n)\n",
        "cpu/words": "def f():\n    from headrace.kernels.plan import (sizes, more)\n",
        "plan/__init__": "",
        "plan/sizes": "from headrace.kernels.cpu import loops\n",  # and round again
        "cpu/others": "from headrace.kernels.cpu import loops\n",
    }
    kernels = tmp_path / "headrace" / "kernels"
    monkeypatch.setattr(compilation, "_ROOT", tmp_path)

    def stamp():
        for name, text in texts.items():
            path = kernels / f"{name}.py"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        forget()
        return compilation._stamp(str(kernels / "cpu" / "loops.py"))

    before = stamp()
    texts[changed or "cpu/others"] += "# changed\n"
    assert (stamp() != before) is bool(changed)


def test_other_options_are_compiled_anew(load):
    assert load().twice(4) == 8
    module = load(LOOPS.replace("nogil=True", 'error_model="numpy"'))
    assert module.twice(4) == 8
    assert hits(module.twice) == 0


def test_another_version_of_the_library_compiles_anew(load, monkeypatch):
    assert load().twice(4) == 8
    monkeypatch.setattr(compilation, "__version__", "999")
    module = load()
    assert module.twice(4) == 8
    assert hits(module.twice) == 0


@pytest.mark.parametrize("damage", [b"", b"x" * 20, b"x" * 500, None])
def test_damaged_files_are_compiled_anew(load, cache, damage):
    assert load().twice(4) == 8
    (file,) = cache.iterdir()
    file.write_bytes(file.read_bytes()[:-1] if damage is None else damage)
    for expected in (0, 1):
        module = load()
        assert module.twice(4) == 8
        assert hits(module.twice) == expected


def test_a_signature_is_compiled_at_once_and_alone(load, cache):
    text = LOOPS.replace("@njit(nogil=True)", '@njit(signature="float32(float32)", nogil=True)')
    for expected in (0, 1):
        module = load(text)
        assert list(cache.iterdir())
        assert hits(module.twice) == expected
        assert len(module.twice.signatures) == 1
        with pytest.raises(TypeError):
            module.twice("a")


def test_functions_that_c_calls(load, cache):
    text = LOOPS + '\nhalf = cfunc("float64(float64)", lambda x: x / 2)\n'
    for expected in (0, 1):
        module = load(text)
        assert module.half.cache_hits == expected
        assert module.half.ctypes(3.0) == 1.5
    assert len(list(cache.iterdir())) == 1


def test_only_our_own_kernels_are_announced(load, monkeypatch):
    import numba

    entered = []
    monkeypatch.setattr(
        type(compilation.compiling), "__enter__", lambda self: entered.append("begin")
    )
    monkeypatch.setattr(
        type(compilation.compiling), "__exit__", lambda self, *_: entered.append("end")
    )
    assert numba.njit(lambda x: x + 1)(1) == 2
    assert entered == []
    assert load().twice(4) == 8
    assert entered == ["begin", "end"]
    assert load().twice(4) == 8  # found
    assert entered == ["begin", "end"]


def test_where_nothing_can_be_written(load, tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setattr(kernel_cache.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "_temporary", kernel_cache._Temporary())
    module = load()
    with pytest.warns(RuntimeWarning, match="HEADRACE_CACHE_DIR"):
        assert module.twice(4) == 8
    assert (module.twice(1.5), module.add_one(1)) == (3.0, 2)  # no more warnings
    again = load()
    assert again.twice(4) == 8
    assert hits(again.twice) == 1


def test_no_kernel_is_kept_in_another_way():
    sources = REPOSITORY.glob("packages/*/src/**/*.py")
    assert [p for p in sources if re.search(r"cache=True", p.read_text())] == []


def test_a_lock_that_was_taken_before_anybody_listened():
    listener = compilation._LockListener()
    listener.on_end(None)  # raised a `KeyError`
    listener.on_start(None)
    assert threading.get_ident() in compilation.no_fork._inside
    listener.on_end(None)
    listener.on_end(None)
    assert threading.get_ident() not in compilation.no_fork._inside


def test_processes_that_need_a_kernel_at_once_compile_it_once(tmp_path, cache):
    (tmp_path / "loops.py").write_text(LOOPS)
    program = (
        "import sys; sys.path.insert(0, sys.argv[1]); import loops; print('ready', flush=True); "
        "input(); loops.twice(3); print(sum(loops.twice.stats.cache_hits.values()))"
    )
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for _ in range(3)
    ]
    for process in processes:
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        process.stdin.write("\n")
        process.stdin.flush()
    assert sorted(int(process.communicate()[0]) for process in processes) == [0, 1, 1]
    assert not list(cache.glob("*.lock"))


def test_a_failure_to_compile_leaves_no_claim(load, cache):
    with pytest.raises(numba.TypingError):
        load().twice(object())
    assert not list(cache.glob("*.lock"))


def test_a_claim_that_is_held_for_too_long_is_not_waited_for(tmp_path, monkeypatch):
    monkeypatch.setattr(kernel_claims, "_LONGEST_SECONDS", 0.05)
    held, had_to_wait = kernel_claims.claim("x", [tmp_path])
    assert (held is not None, had_to_wait) == (True, False)
    assert kernel_claims.claim("x", [tmp_path]) == (None, True)
    held.release()
    again, had_to_wait = kernel_claims.claim("x", [tmp_path])
    assert (again is not None, had_to_wait) == (True, False)
    again.release()
    (tmp_path / "file").touch()
    assert kernel_claims.claim("x", [tmp_path / "file" / "folder"]) == (None, False)


CALLERS = """
from headrace.kernels.compilation import njit

@njit(nogil=True)
def power(x, n):
    return x**n

@njit(nogil=True)
def checked(x):
    if x < 0:
        raise ValueError("a negative number", x)
    return (x, (x, 0.5))

@njit(nogil=True)
def callers(x, scale=2):
    a, (b, c) = checked(x)
    return power(a, 3) + b * scale + c
"""


def test_functions_within_functions_are_compiled_once_and_found_in_both_ways(load, cache):
    """Called from compiled code, they are taken in; called from Python, they have files."""
    for expected in (0, 1):
        module = load(CALLERS)
        assert module.callers(3) == 33.5
        with pytest.raises(ValueError, match="a negative number"):
            module.callers(-1)
        names = {path.name.partition("-")[0] for path in cache.glob("*.kernel")}
        assert names == ({"loops.callers"} if not expected else {"loops.callers", "loops.power"})
        assert hits(module.callers) == expected
        assert module.power(2, 5) == 32
        assert module.callers(3, scale=4) == 39.5


def test_kernels_that_an_installation_brings(load, cache, tmp_path, monkeypatch):
    """They are not compiled, but kept; where a source, the code or the types differ, they are."""
    from numba import int64, types

    monkeypatch.setattr(ahead, "FOLDER", tmp_path / "brought")
    arguments = (int64, types.Omitted(2))
    monkeypatch.setattr(ahead, "listed", lambda: [(load(CALLERS).callers, arguments)])
    compiled = []
    monkeypatch.setattr(
        type(compilation.compiling), "__enter__", lambda self: compiled.append("begin")
    )
    monkeypatch.setattr(type(compilation.compiling), "__exit__", lambda self, *_: None)

    def compiles(call):
        for file in cache.glob("*.kernel"):
            file.unlink()
        compiled.clear()
        assert call() == 33.5
        return bool(compiled)

    assert compiles(lambda: load(CALLERS).callers(3))
    ahead.compile_to(ahead.FOLDER)
    assert not compiles(lambda: load(CALLERS).callers(3))
    assert [p.name.partition("-")[0] for p in cache.glob("*.kernel")] == ["loops.callers"]
    again = load(CALLERS)
    assert again.callers(3) == 33.5
    assert hits(again.callers) == 1
    with pytest.raises(ValueError, match="a negative number"):
        load(CALLERS).callers(-1)
    assert compiles(lambda: load(CALLERS).callers(3.0))
    (brought,) = ahead.FOLDER.iterdir()
    content, number = brought.read_bytes(), brought.stat().st_ino
    ahead.FOLDER.joinpath("gone.kernel").touch()
    ahead.compile_to(ahead.FOLDER)  # it is there
    assert [p.stat().st_ino for p in ahead.FOLDER.iterdir()] == [number]
    brought.write_bytes(content[:-1])
    assert compiles(lambda: load(CALLERS).callers(3))
    ahead.compile_to(ahead.FOLDER)
    assert not compiles(lambda: load(CALLERS).callers(3))
    monkeypatch.setattr(ahead, "_stamp", lambda: b"x" * 32)
    assert compiles(lambda: load(CALLERS).callers(3))
