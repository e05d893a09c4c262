"""Writes the stubs of generated modules into wheels and, in editable installs, to the sources."""

from __future__ import annotations

import os
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
        # In a process of its own: the package that is built is imported there, and no other.
        paths = [str(root / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
        subprocess.run(
            [sys.executable, str(root / "stubs"), str(folder)],
            check=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        )
        if version != "editable":
            build_data["force_include"][str(folder)] = "headrace"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove what was made for the wheel."""
        if version != "editable":
            self._folder.cleanup()
