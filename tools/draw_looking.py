"""Draw docs/images/looking.png: the picture that the first program of docs/looking.md makes."""

from __future__ import annotations

import contextlib
import os
import re
import tempfile
from pathlib import Path

import cv2
from skimage import data

ROOT = Path(__file__).parents[1]


def main() -> None:
    """Run the program in a folder with some photographs."""
    page = (ROOT / "docs" / "looking.md").read_text()
    program = re.findall(r"```python\n(.*?)```", page, re.DOTALL)[0]
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        for name in ("astronaut", "chelsea", "coffee", "rocket"):
            path = Path("photos") / name / "0.jpg"
            path.parent.mkdir(parents=True)
            cv2.imwrite(str(path), getattr(data, name)()[..., ::-1])
        names: dict[str, object] = {}
        exec(compile(program, "docs/looking.md", "exec"), names)
        picture = cv2.imread("batch.png")
        print(names["pipe"])
        os.chdir(ROOT)
        cv2.imwrite(str(ROOT / "docs" / "images" / "looking.png"), picture)


if __name__ == "__main__":
    main()
