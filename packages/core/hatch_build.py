"""Writes what is made of the sources into wheels and, in editable installs, beside the sources:
stubs of generated modules, and kernels compiled ahead.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class MadeFilesHook(BuildHookInterface):
    """Runs `stubs` and `headrace.kernels.ahead` when a wheel is made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the files."""
        root = Path(self.root)
        folder = root / "src" / "headrace"
        if version != "editable":
            self._folder = tempfile.TemporaryDirectory()
            folder = Path(self._folder.name)
        # In processes of their own, which import the package that is built. Its path is set there:
        # pip drops folders of editable installs, this one's too, from the path of a build.
        code = (
            "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
            "runpy.run_{}(sys.argv.pop(1), run_name='__main__')"
        )
        source, compiled = str(root / "src"), str(folder / "kernels" / "compiled")
        stubs = [code.format("path"), source, str(root / "stubs"), str(folder)]
        subprocess.run([sys.executable, "-c", *stubs], check=True)
        kernels = [code.format("module"), source, "headrace.kernels.ahead", compiled]
        done = subprocess.run([sys.executable, "-c", *kernels], check=False)
        if done.returncode:  # kernels are compiled when they are used, as on any other Python
            self.app.display_warning("No kernels were compiled ahead: see above.")
        if version != "editable":
            build_data["force_include"][str(folder)] = "headrace"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the wheel."""
        if version != "editable":
            self._folder.cleanup()
