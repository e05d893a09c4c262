"""Links of the repository as links of the site."""

from __future__ import annotations

import functools
import os
import re
from pathlib import Path, PurePosixPath

import operator_pages

ROOT = Path(__file__).resolve().parents[2]
_RENAMED = {"CONTRIBUTING.md": "contributing.md", "design/README.md": "design/index.md"}


@functools.cache
def beside_docs() -> dict[str, str]:
    """Files of the repository outside of `docs/` that are pages, and their names on the site."""
    decisions = (f"design/{path.name}" for path in sorted((ROOT / "design").glob("*.md")))
    return {file: _RENAMED.get(file, file) for file in ("CONTRIBUTING.md", *decisions)}


def for_site(markdown: str, here: str, repository: str) -> str:
    """Text of page `here` with links that hold on the site, and operators linked to their pages.

    `repository` is the address of what is no page. Blocks of code keep what they say.
    """
    parts = re.split(r"(^```.*?^```$)", markdown, flags=re.DOTALL | re.MULTILINE)
    for number, part in enumerate(parts):
        if number % 2:
            # A word after the language tells tests which program it is.
            parts[number] = re.sub(r"\A(```\w+) \w+$", r"\1", part, flags=re.MULTILINE)
            continue
        text = part
        if not here.startswith(f"{operator_pages.FOLDER}/"):  # written for the site
            text = re.sub(
                r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)",
                lambda m: f"]({address(m[1], here, repository)}{m[2] or ''})",
                text,
            )
        parts[number] = "\n".join(_with_operators(line, here) for line in text.split("\n"))
    return "".join(parts)


def address(link: str, here: str, repository: str) -> str:
    """The address of `link` on page `here`, which names a file beside the file of that page."""
    source = next((file for file, name in beside_docs().items() if name == here), f"docs/{here}")
    target = os.path.normpath(PurePosixPath(source).parent / link)
    page = beside_docs().get(target, target.removeprefix("docs/"))
    page = re.sub(r"^(notebooks/[\w-]+)\.py$", r"\1.md", page)
    if page == target and not target.startswith("design/"):
        if not (ROOT / target).exists():
            return link
        kind = "tree" if (ROOT / target).is_dir() else "blob"
        return f"{repository}/{kind}/main/{target}"
    return os.path.relpath(page, PurePosixPath(here).parent)


def _with_operators(line: str, here: str) -> str:
    """`line` with each operator that it names as a link to its page, but for headings."""
    if line.startswith("#"):
        return line

    def linked(found: re.Match[str]) -> str:
        page = f"{operator_pages.FOLDER}/{operator_pages.page_name(found[1])}"
        if found[1] not in _names() or page == here:
            return found[0]
        return f"[{found[0]}]({os.path.relpath(page, PurePosixPath(here).parent)})"

    return re.sub(r"(?<![\[`])`fn\.([\w.]+)(?:\([^`]*\))?`(?![\]`])", linked, line)


@functools.cache
def _names() -> frozenset[str]:
    return frozenset(schema.name for schema in operator_pages.public_schemas())
