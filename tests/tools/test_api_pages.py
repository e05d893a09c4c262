"""The reference of classes and functions: nothing is left out, everything is explained."""

from __future__ import annotations

import enum
import inspect
import re
import sys
from pathlib import Path

import pytest

ELSEWHERE = "See `|[Pp]arameters are those of|^To come:"
"""What a docstring says whose parameters are explained in another one."""
TOOLS = Path(__file__).parents[2] / "tools/website"

pytest.importorskip("jax")
pytest.importorskip("torch")


@pytest.fixture(scope="module")
def api_pages():
    sys.path.insert(0, str(TOOLS))
    import api_pages

    yield api_pages
    sys.path.remove(str(TOOLS))
    del sys.modules["api_pages"]


def functions(api_pages):
    """Everything on the pages that is called, with the docstrings that explain it."""
    for name, found in api_pages.documented():
        doc = inspect.getdoc(found) or ""
        assert doc, f"{name} has no docstring"
        if not inspect.isclass(found):
            yield name, found, doc
            continue
        if issubclass(found, (enum.Enum, BaseException)):
            continue
        doc = " ".join([doc, *api_pages._fields(found)])
        yield name, found.__init__, f"{doc} {inspect.getdoc(found.__init__) or ''}"
        for member in api_pages._members(found, []):
            value = inspect.getattr_static(found, member)
            if not api_pages._is_value(value):
                method = getattr(found, member)
                yield f"{name}.{member}", method, inspect.getdoc(method) or ""


def test_every_parameter_is_explained(api_pages):
    missing = []
    for name, function, doc in functions(api_pages):
        try:
            parameters = inspect.signature(function).parameters
        except (TypeError, ValueError):
            continue
        if function is object.__init__ or re.search(ELSEWHERE, doc):
            continue
        text = doc.replace("**", "").replace("*", "")
        for parameter in parameters:
            if parameter in ("self", "cls", "args", "kwargs") or parameter.startswith("_"):
                continue
            if not re.search(rf"(^|[\s,`]){parameter}([\s,`:(.]|$)", text):
                missing.append(f"{name}: {parameter}")
    assert not missing, "\n".join(missing)


def test_pages_name_all_errors(api_pages):
    import headrace.errors

    page = api_pages.api_pages()["errors.md"]
    for name in dir(headrace.errors):
        assert f"## `headrace.errors.{name}`" in page


def test_a_page_says_what_the_docstrings_say(api_pages):
    page = api_pages.api_pages()["pipeline.md"]
    for line in (
        "| `batch_size`: int | Largest number of samples in a batch. |",
        "### `Pipeline.run`",
        "| `StopIteration` | At the end of the data of an external source. |",
        "| `num_threads` | Number of worker threads. |",
    ):
        assert line in page.splitlines()
    assert "0x" not in page, "no address of an object"


def test_literal_blocks_and_examples_are_code(api_pages):
    lines = api_pages._prose("Text::\n\n    a = 1\n\n    b = 2\n\nMore ``x``.\n\n>>> f()\n3")
    assert lines == [
        "Text:",
        "",
        "```python",
        "a = 1",
        "",
        "b = 2",
        "```",
        "",
        "More `x`.",
        "",
        "```python",
        ">>> f()",
        "3",
        "```",
    ]
