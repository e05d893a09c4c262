"""Notebooks of the site: `docs/notebooks/*.py`, run while it is built, as pages and to download.

A file is a program whose cells begin with ``# %%``, or with ``# %% [markdown]``.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import os
import re
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import jupytext
import nbformat
from example_files import is_here
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[2]
FOLDER = "notebooks"
_RUN = ROOT / "build" / FOLDER
"""Keeps notebooks that were run, by a hash of their text, for a site that is built again."""
_ENVIRONMENT = {"HEADRACE_COMPILATION_NOTICE": "off", "HEADRACE_PROGRESS": "0"}
_TIMEOUT_SECONDS = 300
_TORCHVISION = (
    "from tests.support.torchvision_beside_cpu import import_torchvision\nimport_torchvision()"
)
"""Lets torchvision, whose wheel is for CUDA, be imported beside PyTorch for the CPU; not shown."""


def sources() -> list[Path]:
    """The files of all notebooks."""
    return sorted((ROOT / "docs" / FOLDER).glob("*.py"))


@functools.cache
def files() -> dict[str, str | bytes]:
    """Pages, pictures and notebooks to download by their names on the site."""
    # A kernel inherits the environment of the process; two keep two cores busy.
    os.environ.update(_ENVIRONMENT)
    with ThreadPoolExecutor(2) as threads:
        pages = list(threads.map(_page, sources()))
    return {name: content for page in pages for name, content in page.items()}


def run(path: Path) -> tuple[Any, str]:
    """The notebook of a file, run, and the library that it would need to be."""
    text = path.read_text()
    needed = re.match(r"# requires: (\w+)", text)
    notebook = jupytext.reads(text, fmt="py:percent")
    notebook.metadata["kernelspec"] = {
        "display_name": "Python 3",
        "language": "python",
        "name": "python3",
    }
    if needed and not is_here(needed[1]):
        return notebook, needed[1]
    if "torchvision" in text:
        notebook.cells.insert(0, nbformat.v4.new_code_cell(_TORCHVISION))
    kept = _RUN / f"{path.stem}-{hashlib.sha256(text.encode()).hexdigest()[:12]}.ipynb"
    if kept.exists():
        return nbformat.read(kept, as_version=4), ""
    with tempfile.TemporaryDirectory(prefix="headrace-notebook-") as folder:
        client = NotebookClient(
            notebook,
            timeout=_TIMEOUT_SECONDS,
            extra_arguments=["--log-level=ERROR"],
            resources={"metadata": {"path": folder}},
        )
        client.execute()
    notebook.cells = [cell for cell in notebook.cells if cell.source != _TORCHVISION]
    kept.parent.mkdir(parents=True, exist_ok=True)
    nbformat.write(notebook, kept)
    return notebook, ""


def _page(path: Path) -> dict[str, str | bytes]:
    try:
        notebook, missing = run(path)
    except Exception as error:
        error.add_note(f"in docs/{FOLDER}/{path.name}")
        raise
    found: dict[str, str | bytes] = {}
    lines: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            lines += [cell.source, ""]
            continue
        if cell.source.startswith("# requires:"):
            continue
        lines += ["```python", cell.source.rstrip(";"), "```", ""]
        for output in cell.outputs:
            lines += _shown(output, path.stem, found)
    title, _, rest = "\n".join(lines).partition("\n")
    ran = (
        f"Shown without what it prints: the site was built without {missing}."
        if missing
        else "Run while this site was built."
    )
    about = f'[:material-download: Notebook]({path.stem}.ipynb){{ download="" }} {ran}'
    found[f"{FOLDER}/{path.stem}.md"] = f"{title}\n\n{about}\n{rest}\n"
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    found[f"{FOLDER}/{path.stem}.ipynb"] = nbformat.writes(_for_readers(notebook))
    return found


def _for_readers(notebook: Any) -> Any:
    """The notebook with addresses of the site in place of files beside it."""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = re.sub(
                r"\]\((?:\.\./)?([\w/-]+)\.(?:py|md)\)",
                lambda m: f"](https://headrace.github.io/headrace/latest/{m[1]}/)",
                cell.source,
            )
    return notebook


def _shown(output: Any, stem: str, found: dict[str, str | bytes]) -> list[str]:
    """Markdown of one output of a cell; pictures are added to `found`."""
    if output.output_type == "stream":
        return _text(output.text) if output.name == "stdout" else []
    data = output.get("data", {})
    if "image/png" in data:
        name = f"{stem}-{len(found)}.png"
        found[f"{FOLDER}/{name}"] = base64.b64decode(data["image/png"])
        return [f"![Output of the cell above]({name}){{ loading=lazy }}", ""]
    return _text(data.get("text/plain", ""))


def _text(text: str) -> list[str]:
    text = re.sub(r"\x1b\[[0-9;]*m", "", text).rstrip()
    return ['```text title="Output"', text, "```", ""] if text else []
