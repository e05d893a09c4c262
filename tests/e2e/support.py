"""What the end-to-end tests share: folders of images, and programs in processes of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from tests.support.images import encoded

REPOSITORY = Path(__file__).parents[2]


def one_file_a_class(root: Path, count: int, *, height: int = 60, width: int = 80) -> Path:
    """A class folder for each of `count` JPEGs, so that a label tells the file; returns `root`."""
    for number in range(count):
        folder = root / f"{number:03}"
        folder.mkdir(parents=True)
        data = encoded(height + number % 7, width - number % 5, seed=number)
        (folder / "image.jpg").write_bytes(data.tobytes())
    return root


def run_python(
    *arguments: str, cwd: Path = REPOSITORY, timeout: float = 300, check: bool = True
) -> subprocess.CompletedProcess[str]:
    """Run an interpreter like this one, in which warnings are errors.

    `tests` and `examples` can be imported from anywhere.
    """
    path = [str(REPOSITORY), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path)}
    result = subprocess.run(
        [sys.executable, "-W", "error", *arguments],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    if check:
        assert result.returncode == 0, result.stdout + result.stderr
    return result
