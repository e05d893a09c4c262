"""Check docstrings, class names and marks of merges: ``python tools/check_words.py``.

A docstring, of a module, class, function or attribute, begins with a verb or a noun, and not with a
question word. A public class of the core has a name of its own. No text has a merge's marks left.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]

_QUESTION = re.compile(
    r"\W*(what|whether|how|where|who|whom|whose|which|when|why|(what|where|who|when)ever)\b", re.I
)

_MERGE_MARK = re.compile(r"^(<{7}|>{7}|\|{7})( |$)", re.M)

TEXTS = {".cu", ".cuh", ".css", ".html", ".js", ".md", ".py", ".sh", ".toml", ".txt", ".yml"}
"""What files are called that people write."""

SHARED_NAMES = {
    "Clahe",
    "Constant",
    "Contrast",
    "ExternalSource",
    "Filter",
    "LookupTable",
    "Operator",
    "Reader",
    "Taps",
    "Warp",
}
"""Names that several classes of the core have. The list may only shrink."""


def docstrings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and text of each docstring, those below assignments included."""
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        for statement in body if isinstance(body, list) else ():
            match statement:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    yield statement.lineno, text


def questions(text: str) -> Iterator[tuple[int, str]]:
    """Yield line and beginning of each docstring, or ``#:`` comment, that asks a question."""
    found = list(docstrings(ast.parse(text)))
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#:"):
            found.append((number, line.lstrip()[2:]))
    for number, each in sorted(found):
        if _QUESTION.match(each):
            yield number, each.strip().splitlines()[0]


def shared_names(files: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names of public classes that several files define, with these files."""
    places: dict[str, list[str]] = defaultdict(list)
    for name, text in files:
        for node in ast.parse(text).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(name)
    return {name: files for name, files in places.items() if len(files) > 1}


def texts(root: Path) -> Iterator[Path]:
    """Yield the files below `root` that people write; not those in hidden or built folders."""
    for path in sorted(root.iterdir()):
        if path.name.startswith(".") or path.name in ("__pycache__", "dist", "site"):
            continue
        if path.is_dir():
            yield from texts(path)
        elif path.suffix in TEXTS:
            yield path


def merge_marks(text: str) -> Iterator[int]:
    """Yield the numbers of the lines on which a merge that was not finished left a mark."""
    for match in _MERGE_MARK.finditer(text):
        yield text.count("\n", 0, match.start()) + 1


def problems(root: Path) -> Iterator[str]:
    """Yield a line for each problem below `root`."""
    for path in texts(root):
        for line in merge_marks(path.read_text("utf-8", errors="replace")):
            yield f"{path.relative_to(root).as_posix()}:{line}: a mark of a merge is left"
    core = []
    for path in sorted(root.glob("packages/*/src/**/*.py")):
        name, text = path.relative_to(root).as_posix(), path.read_text("utf-8")
        for line, begin in questions(text):
            yield f"{name}:{line}: begin with a verb or a noun, not with a question word: {begin}"
        if name.startswith("packages/core/"):
            core.append((name, text))
    found = shared_names(core)
    for name in sorted(found.keys() - SHARED_NAMES):
        yield f"{name}: the name of several classes, in {', '.join(found[name])}"
    for name in sorted(SHARED_NAMES - found.keys()):
        yield f"{name}: has a name of its own now: take it off `SHARED_NAMES`"


if __name__ == "__main__":
    lines = list(problems(ROOT))
    print(*lines, sep="\n", end="\n" if lines else "")
    sys.exit(bool(lines))
