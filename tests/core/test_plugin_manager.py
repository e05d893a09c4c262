"""Files with operators, loaded by their paths."""

from __future__ import annotations

import os
import sys

import pytest

from headrace import fn, ops, pipeline_def, plugin_manager
from headrace.operators.support import registry
from headrace.to_come import DOCUMENTS

OPERATOR = """
from __future__ import annotations
from dataclasses import dataclass
from headrace.operators import Input, SampleOperator, operator

@dataclass
class Factor:
    value: float

FACTOR = Factor({factor})

@operator("_loaded.{name}", inputs=(Input(),))
class Times(SampleOperator):
    \"\"\"Multiply.\"\"\"

    def cpu(self, c, data):
        return data * data.dtype.type(FACTOR.value)
"""


@pytest.fixture(autouse=True)
def clean():
    yield
    for name in [n for n in registry._schemas if n.startswith("_loaded.")]:
        del registry._schemas[name]
    for name in [n for n in sys.modules if n.startswith("headrace_library_")]:
        del sys.modules[name]


def numbers(name, **keywords):
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        return getattr(fn._loaded, name)(fn.constant(fdata=[2.0, 3.0]))

    return p(**keywords).run()[0].as_array()[0].tolist()


def test_a_file_is_loaded_and_loaded_again(tmp_path):
    file = tmp_path / "mine.py"
    file.write_text(OPERATOR.format(name="times", factor=2))
    plugin_manager.load_library(str(file))
    assert numbers("times") == [4.0, 6.0]
    assert ops._loaded.Times().schema.name == "_loaded.times"
    file.write_text(OPERATOR.format(name="times", factor=10.5))
    os.utime(file, (1, 1))
    plugin_manager.load_library(file, True)
    assert numbers("times") == [21.0, 31.5]


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")
def test_worker_processes_have_the_operators(tmp_path):
    (tmp_path / "mine.py").write_text(OPERATOR.format(name="travels", factor=3))
    plugin_manager.load_library(tmp_path / "mine.py")
    assert numbers("travels", workers="processes") == [6.0, 9.0]


def test_folders(tmp_path):
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("from . import inner")
    (package / "inner.py").write_text(OPERATOR.format(name="inner", factor=4))
    plugin_manager.load_library(package)
    assert numbers("inner") == [8.0, 12.0]
    below = tmp_path / "plugins" / "first"
    below.mkdir(parents=True)
    (below / "libheadrace_one.py").write_text(OPERATOR.format(name="one", factor=1))
    (below / "other.py").write_text("raise AssertionError")
    plugin_manager.load_directory(str(tmp_path / "plugins"))
    assert numbers("one") == [2.0, 3.0]
    plugin_manager.load_directory(tmp_path / "nowhere")
    (below / "libdali_two.so").write_bytes(b"\\x7fELF")
    with pytest.raises(RuntimeError, match=r"libdali_two\.so: it is compiled"):
        plugin_manager.load_directory(tmp_path / "plugins")


def test_mistakes(tmp_path):
    (tmp_path / "wrong.py").write_text("1 / 0")
    (tmp_path / "text.txt").write_text("")
    for path, words in (
        (tmp_path / "none.py", "there is no such file"),
        (tmp_path, "there is no such file"),
        (tmp_path / "text.txt", "no Python file"),
        (tmp_path / "wrong.py", "ZeroDivisionError: division by zero"),
        ("/nowhere/libcustom.so", f"declared in Python: see {DOCUMENTS}/operators.md"),
    ):
        with pytest.raises(RuntimeError, match="Failed to load library") as caught:
            plugin_manager.load_library(path)
        assert words in str(caught.value)
    with pytest.raises(TypeError, match="Expected the path of a library, got 3"):
        plugin_manager.load_library(3)
    assert not [n for n in sys.modules if n.startswith("headrace_library_wrong")]
