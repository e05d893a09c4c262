"""The package where torchvision is missing, old, or made for another PyTorch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.torchvision_beside_cpu import import_torchvision

PROGRAM = """
import headrace, sys
import headrace.experimental.torchvision as package
assert "torch" not in sys.modules
assert "torchvision" not in sys.modules
from headrace.experimental.dynamic import as_tensor  # the rest of the module is there
from headrace.errors import MissingDependencyError
for use in ("package.Resize", "package.v2", "from headrace.experimental.torchvision import Compose",
            "import headrace.experimental.torchvision.v2.functional"):
    try:
        exec(use)
    except MissingDependencyError as error:
        assert isinstance(error, ImportError)
        print(error)
    else:
        raise AssertionError(use)
"""


def run(folder: Path, before: str = "") -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", before + PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) == 4
    return lines


def test_without_torchvision(tmp_path):
    hidden = (
        "import importlib.abc, sys\n"
        "class Hide(importlib.abc.MetaPathFinder):\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] == 'torchvision':\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name='torchvision')\n"
        "sys.meta_path.insert(0, Hide())\n"
    )
    for line in run(tmp_path, hidden):
        assert "Run `pip install 'headrace-torch[torchvision]'`" in line


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("raise RuntimeError('operator torchvision::nms does not exist')", "nms does not exist"),
        ("__version__ = '0.15.2'", "torchvision 0.21 or later, and 0.15.2 is installed"),
    ],
)
def test_with_a_torchvision_that_does_not_do(tmp_path, text, told):
    package = tmp_path / "torchvision"
    package.mkdir()
    (package / "__init__.py").write_text(text)
    (package / "tv_tensors.py").write_text("")
    for line in run(tmp_path, "import sys; sys.path.insert(0, '')\n"):
        assert told in line


def test_with_the_torchvision_of_this_environment():
    assert import_torchvision().__version__.startswith("0.28")
