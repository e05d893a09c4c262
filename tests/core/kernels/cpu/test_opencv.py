"""OpenCV that is broken, old, or beside another one: distributions overwrite each other's files."""

from __future__ import annotations

import importlib.metadata
import os
import sys
import types
from types import SimpleNamespace

import numpy as np
import pytest

from headrace.cli import doctor
from headrace.errors import MissingDependencyError
from headrace.kernels.cpu import opencv
from tests.e2e.support import run_python

REAL = opencv.cv2()


@pytest.fixture(autouse=True)
def anew():
    opencv.cv2.cache_clear()
    yield
    opencv.cv2.cache_clear()


@pytest.fixture
def beside(monkeypatch):
    """Says that opencv-python is installed, too."""
    there = importlib.metadata.version
    monkeypatch.setattr(
        importlib.metadata, "version", lambda n: "4.11.0" if n == "opencv-python" else there(n)
    )


def old():
    names = ("setNumThreads", "ocl", "imdecode", "warpAffine")
    return SimpleNamespace(__version__="4.11.0", **{name: getattr(REAL, name) for name in names})


def test_what_is_left_of_an_uninstalled_one(monkeypatch, beside):
    monkeypatch.setitem(sys.modules, "cv2", types.ModuleType("cv2"))
    with pytest.raises(MissingDependencyError, match="`cv2` has no `setNumThreads`") as found:
        opencv.cv2()
    assert "opencv-python 4.11.0 is installed, too" in str(found.value)
    assert "`pip uninstall opencv-python`" in str(found.value)
    lines, to_do = {}, []
    for line in doctor._libraries(to_do):
        lines[line.name] = line
    assert lines[opencv.OWN].is_good is False
    assert "broken" in lines[opencv.OWN].value
    assert any("pip install --force-reinstall" in text for text in to_do)


def test_none_at_all(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    monkeypatch.setattr(opencv, "others", dict)
    with pytest.raises(MissingDependencyError, match="pip install --force-reinstall") as found:
        opencv.cv2()
    assert "uninstall" not in str(found.value)


def test_one_that_does_not_load(monkeypatch):
    def broken(name):
        raise ImportError("libGL.so.1: cannot open shared object file")

    monkeypatch.setattr(opencv.importlib, "import_module", broken)
    with pytest.raises(MissingDependencyError, match=r"libGL\.so\.1"):
        opencv.cv2()


def test_an_old_one(monkeypatch, beside):
    monkeypatch.setitem(sys.modules, "cv2", old())
    with pytest.warns(UserWarning, match=r"version 4\.11\.0, and Headrace needs 5.*uninstall"):
        opencv.cv2()
    to_do = []
    line = next(line for line in doctor._libraries(to_do) if line.name == opencv.OWN)
    assert line.is_good is False
    assert any("4.11.0" in text for text in to_do)


def test_two_that_work(beside):
    assert opencv.cv2().__version__.startswith("5")
    to_do = []
    line = next(line for line in doctor._libraries(to_do) if line.name == opencv.OWN)
    assert "beside opencv-python 4.11.0" in line.value
    assert line.is_good is False
    assert any("pip uninstall opencv-python" in text for text in to_do)


def test_all_is_well(monkeypatch):
    monkeypatch.setattr(opencv, "others", dict)
    to_do = []
    line = next(line for line in doctor._libraries(to_do) if line.name == opencv.OWN)
    assert line.is_good
    assert not any("opencv" in text for text in to_do)


PROGRAM = """
import numpy as np
from headrace import fn, pipeline_def

@pipeline_def(batch_size=1, num_threads=1, device_id=None, on_bad_sample={policy!r})
def decoded():
    png = np.frombuffer(bytes.fromhex("{png}"), np.uint8)
    return fn.decoders.image(fn.external_source(lambda: [png]))

try:
    decoded().run()
except ImportError as error:
    print("IMPORT", error)
except Exception as error:
    print(type(error).__name__, error)
"""


@pytest.mark.parametrize("policy", ["raise", "skip"])
def test_a_program_is_told(tmp_path, policy, monkeypatch):
    (tmp_path / "cv2").mkdir()
    (tmp_path / "cv2" / "__init__.py").write_text("")
    path = [str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(path))
    monkeypatch.setenv("HEADRACE_DECODER", "opencv")
    png = REAL.imencode(".png", np.zeros((4, 4, 3), np.uint8))[1].tobytes().hex()
    shown = run_python("-c", PROGRAM.format(policy=policy, png=png)).stdout
    assert "OpenCV, which works on images, cannot be used" in shown
    assert "pip install --force-reinstall" in shown
