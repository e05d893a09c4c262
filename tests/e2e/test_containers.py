"""A program in a container: nothing can be written but the folder for temporary files."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tests.e2e.support import run_python

PROGRAM = """
import warnings
warnings.simplefilter("default")
import numpy as np
from headrace import compilation_notice, fn, pipeline_def

compilation_notice.compiling = compilation_notice.CompilationNotice(1e-3)

@pipeline_def(batch_size=2, num_threads=2, device_id=None)
def pipe():
    images = fn.external_source(source=lambda: [np.full((8, 9, 3), 7, np.uint8)] * 2)
    return fn.brightness(images, brightness=2.0)

(images,) = pipe().run()
assert (images.as_array() == 14).all()
"""


@pytest.fixture(autouse=True)
def closed(tmp_path, monkeypatch):
    """Every place for compiled code is below a file, which keeps root out as well."""
    (tmp_path / "file").touch()
    (tmp_path / "temporary").mkdir()
    for name in ("HEADRACE_CACHE_DIR", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "file" / "home"))
    # It stands for the folder of the sources, which a test cannot close.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "numba"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "temporary"))
    monkeypatch.setenv("HEADRACE_COMPILATION_NOTICE", "on")
    monkeypatch.setenv("HEADRACE_WORKERS", "threads")


def test_with_nothing_but_temporary_files(tmp_path):
    first = run_python("-c", PROGRAM).stderr
    kept = tmp_path / "temporary" / f"headrace-{os.getuid()}"
    assert first.count("RuntimeWarning") == 1
    for part in (tmp_path / "file" / "numba", tmp_path / "file" / "home", kept):
        assert str(part) in first
    # Kernels that came with the installation are quick to have; of others it is said, once.
    notices = first.count("Headrace is compiling kernels")
    assert notices <= 1
    assert not notices or first.index("Headrace is compiling") < first.index("RuntimeWarning")
    before = {file: file.stat().st_mtime_ns for file in kept.iterdir()}
    assert before
    assert run_python("-c", PROGRAM).stderr == ""
    assert {file: file.stat().st_mtime_ns for file in kept.iterdir()} == before


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")
def test_one_of_all_worker_processes_warns(monkeypatch):
    monkeypatch.setenv("HEADRACE_WORKERS", "processes")
    program = PROGRAM.replace("batch_size=2, num_threads=2", "batch_size=2, num_threads=4")
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=300, check=True
    )
    assert result.stderr.count("RuntimeWarning") == 1


def test_with_a_folder_for_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "cache"))
    assert "RuntimeWarning" not in run_python("-c", PROGRAM).stderr
    assert any((tmp_path / "cache" / "kernels").iterdir())
    assert run_python("-c", PROGRAM).stderr == ""
