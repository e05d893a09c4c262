from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from headrace.config import DECODER, SWITCHES
from headrace.errors import ArgumentValueError, MissingDependencyError
from headrace.kernels.cpu.decode import backend, convert, nvimagecodec_library
from headrace.kernels.cpu.decode.quiet_import import import_quietly


@pytest.fixture
def fresh():
    backend.has_nvimagecodec.cache_clear()
    yield
    backend.has_nvimagecodec.cache_clear()


def test_the_switch(monkeypatch):
    assert DECODER in SWITCHES
    monkeypatch.delenv(DECODER.name, raising=False)
    assert DECODER.value() == "auto"
    monkeypatch.setenv(DECODER.name, " OpenCV ")
    assert DECODER.value() == "opencv"
    monkeypatch.setenv(DECODER.name, "magic")
    with pytest.raises(ArgumentValueError, match=r"HEADRACE_DECODER.*magic.*auto, nvimagecodec"):
        DECODER.value()


def test_without_nvimagecodec(monkeypatch, fresh):
    def missing():
        raise ModuleNotFoundError("No module named 'nvidia'")

    monkeypatch.setattr(nvimagecodec_library, "library", missing)
    monkeypatch.setenv(DECODER.name, "auto")
    assert not backend.has_nvimagecodec()
    backend.has_nvimagecodec.cache_clear()
    monkeypatch.setenv(DECODER.name, "nvimagecodec")
    with pytest.raises(MissingDependencyError, match="pip install"):
        backend.has_nvimagecodec()


def test_another_version_of_nvimagecodec_is_told_of(monkeypatch, fresh):
    monkeypatch.setattr(nvimagecodec_library, "_VERSION", 8)
    monkeypatch.setattr(nvimagecodec_library, "library", nvimagecodec_library.Library)
    monkeypatch.setenv(DECODER.name, "auto")
    with pytest.warns(RuntimeWarning, match=r"0\.8 is needed.*OpenCV decodes.*pip install '.*<0"):
        assert not backend.has_nvimagecodec()


def test_declaring_the_decoders_imports_no_codec():
    code = (
        "import sys, headrace.operators\n"
        "print([m for m in ('cv2', 'simplejpeg', 'nvidia.nvimgcodec') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
    assert done.stderr == ""


def test_a_quiet_import(tmp_path, monkeypatch, capfd):
    (tmp_path / "chatty_library.py").write_text(
        "import os\n"
        "os.write(2, b'Failed to load something\\nthis matters\\n')\n"
        "seen = os.environ['CHATTY_LEVEL'], os.environ['CHATTY_COLOR']\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("CHATTY_COLOR", "red")
    found = import_quietly(
        "chatty_library",
        ignore=("Failed to load",),
        environment={"CHATTY_LEVEL": "0", "CHATTY_COLOR": "blue"},
    )
    assert found.seen == ("0", "red")
    assert "CHATTY_LEVEL" not in os.environ
    assert os.environ["CHATTY_COLOR"] == "red"
    assert capfd.readouterr().err == "this matters\n"


def test_a_quiet_import_that_fails(capfd):
    with pytest.raises(ModuleNotFoundError):
        import_quietly("no_such_library_anywhere", ignore=(), environment={})
    os.write(2, b"still here\n")
    assert capfd.readouterr().err == "still here\n"


@pytest.mark.sweep
@pytest.mark.parametrize("source", ["uint8", "uint16"])
@pytest.mark.parametrize("target", ["uint8", "uint16", "uint32", "int8", "int16", "int32"])
def test_rescaling_is_exact_at_both_ends_and_monotonic(source, target):
    full = np.iinfo(source).max
    values = np.arange(full + 1).astype(source).reshape(-1, 16, 1)
    out = np.empty(values.shape, target)
    convert.rescale(values, out)
    assert out.reshape(-1)[0] == 0
    assert out.reshape(-1)[-1] == np.iinfo(target).max
    assert (np.diff(out.reshape(-1).astype(np.float64)) >= 0).all()


def test_rescaling_clips_fractions_that_leave_the_range():
    out = np.empty((1, 4, 1), np.uint8)
    convert.rescale(np.array([[[-0.5], [0.5], [1.0], [7.0]]], np.float32), out)
    assert out.reshape(-1).tolist() == [0, 128, 255, 255]
