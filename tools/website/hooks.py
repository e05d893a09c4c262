"""Adds what is made from code to the documentation while MkDocs builds it.

`docs/` has what people write. Reference pages, pictures and outputs of notebooks exist only in the
site; links between files of the repository become links between pages, or to the repository.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE)]

import api_pages  # noqa: E402
import gallery  # noqa: E402
import links  # noqa: E402
import notebooks  # noqa: E402
import operator_pages  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402

from headrace.to_come import REPOSITORY  # noqa: E402

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

_REFERENCE = operator_pages.FOLDER


_FOUND_FIRST = "---\nsearch:\n  boost: 4\n---\n\n"
"""Has the search show an operator's own page before others that name it."""


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Lists the generated pages in the navigation."""
    everything_else = [{page.title: f"{_REFERENCE}/{page.file}.md"} for page in api_pages.PAGES]
    modules = [
        {
            module: [
                {operator_pages.last(s): f"{_REFERENCE}/{operator_pages.page_name(s.name)}"}
                for s in schemas
            ]
        }
        for module, schemas in operator_pages.by_module().items()
    ]
    assert config.nav is not None
    for section in config.nav:
        if "Reference" in section:
            section["Reference"] += [*modules, {"Everything else": everything_else}]
        if "Project" in section:
            decisions = [name for name in links.beside_docs().values() if "/" in name]
            section["Project"].append({"Decisions": sorted(decisions)})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds pages that are not below `docs/`."""
    pages = {name: (links.ROOT / file).read_text() for file, name in links.beside_docs().items()}
    pages[f"{_REFERENCE}/index.md"] = operator_pages.index_page(api_pages.index_rows())
    for name, text in api_pages.api_pages().items():
        pages[f"{_REFERENCE}/{name}"] = text
    for schema in operator_pages.public_schemas():
        name = f"{_REFERENCE}/{operator_pages.page_name(schema.name)}"
        page = operator_pages.operator_page(schema, gallery.section(schema.name))
        pages[name] = _FOUND_FIRST + page
    pages[f"{gallery.FOLDER}/index.md"] = gallery.page()
    for name, content in (pages | gallery.pictures() | notebooks.files()).items():
        known = files.get_file_from_path(name)
        if known is not None:
            files.remove(known)
        files.append(File.generated(config, name, content=content))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turns links of the repository into links of the site."""
    return links.for_site(markdown, page.file.src_uri, REPOSITORY)
