"""Writes the stubs of generated modules into wheels and, in editable installs, to the sources."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class StubsHook(BuildHookInterface):
    """Runs `stubs` when a wheel is made."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Make the stubs."""
        root = Path(self.root)
        folder = root / "src" / "headrace"
        if version != "editable":
            self._folder = tempfile.TemporaryDirectory()
            folder = Path(self._folder.name)
        # In a process of its own, which imports the package that is built. Its path is set there:
        # pip drops folders of editable installs, this one's too, from the path of a build.
        code = (
            "import runpy, sys; sys.path.insert(0, sys.argv.pop(1)); "
            "runpy.run_path(sys.argv.pop(1), run_name='__main__')"
        )
        paths = [root / "src", root / "stubs", folder]
        subprocess.run([sys.executable, "-c", code, *map(str, paths)], check=True)
        if version != "editable":
            build_data["force_include"][str(folder)] = "headrace"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the wheel."""
        if version != "editable":
            self._folder.cleanup()
