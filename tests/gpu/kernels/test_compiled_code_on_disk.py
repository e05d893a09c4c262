"""Where machine code for GPUs is kept: as that for CPUs. No compiler and no GPU is needed here."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from headrace import kernel_cache
from headrace.tensors.gpu import cuda, nvrtc


@pytest.fixture(autouse=True)
def gpu_runtime() -> None:
    """Nothing runs here."""


@pytest.fixture
def closed(tmp_path, monkeypatch):
    """A place where nobody can write; those for temporary files are the test's own."""
    (tmp_path / "file").touch()
    monkeypatch.setattr(kernel_cache.tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "_temporary", kernel_cache._Temporary())
    return tmp_path / "file" / "folder"


@pytest.fixture
def compilations(monkeypatch):
    """Names of the kernels that were compiled rather than found."""
    names = []

    def compile_program(source, name, arch):
        names.append(name)
        return b"\x7fELF\n\0" + source.encode(), f"_Z{name}"

    monkeypatch.setattr(nvrtc, "_compile", compile_program)
    monkeypatch.setattr(nvrtc, "_nvrtc", lambda: SimpleNamespace(getVersion=lambda: (13, 0)))
    return names


def test_kernels_are_found_again(tmp_path, monkeypatch, compilations):
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
    for source, name in (("a", "f"), ("a", "f"), ("b", "f"), ("a", "f")):
        found = nvrtc.compiled(source, name, "sm_90")
        assert found == (b"\x7fELF\n\0" + source.encode(), "_Zf")
    assert compilations == ["f", "f"]
    assert len(list((tmp_path / "kernels").glob("*.cubin"))) == 2


def test_kernels_where_nothing_can_be_written(monkeypatch, compilations, closed):
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(closed))
    with pytest.warns(RuntimeWarning, match="HEADRACE_CACHE_DIR"):
        nvrtc.compiled("a", "f", "sm_90")
    nvrtc.compiled("a", "g", "sm_90")  # no more warnings
    nvrtc.compiled("a", "f", "sm_90")
    assert compilations == ["f", "g"]


class TestCupy:
    """The folder of CuPy, with which users write operators."""

    @pytest.fixture(autouse=True)
    def _environment(self, tmp_path, monkeypatch):
        for name in ("CUPY_CACHE_DIR", "HEADRACE_CACHE_DIR"):
            monkeypatch.setenv(name, "")  # so that what a test sets is taken away again
            monkeypatch.delenv(name)
        monkeypatch.setenv("HOME", str(tmp_path / "home"))

    def test_its_own_stays(self):
        cuda._place_compiled_code()
        assert "CUPY_CACHE_DIR" not in os.environ

    def test_the_one_of_the_user_stays(self, tmp_path, monkeypatch):
        monkeypatch.setenv("CUPY_CACHE_DIR", "/mine")
        monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
        cuda._place_compiled_code()
        assert os.environ["CUPY_CACHE_DIR"] == "/mine"

    def test_with_ours(self, tmp_path, monkeypatch):
        monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "cache"))
        cuda._place_compiled_code()
        assert os.environ["CUPY_CACHE_DIR"] == str(tmp_path / "cache" / "cupy")

    def test_where_nothing_can_be_written(self, monkeypatch, closed):
        monkeypatch.setenv("HOME", str(closed))
        with pytest.warns(RuntimeWarning, match="HEADRACE_CACHE_DIR"):
            cuda._place_compiled_code()
        assert Path(os.environ["CUPY_CACHE_DIR"]).is_dir()
