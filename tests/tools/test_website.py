"""What the site of the documentation has besides docs/."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

WEBSITE = Path(__file__).parents[2] / "tools/website"
REPOSITORY = "https://example.com/r"


@pytest.fixture(scope="module", autouse=True)
def website():
    sys.path.insert(0, str(WEBSITE))
    before = set(sys.modules)
    yield
    sys.path.remove(str(WEBSITE))
    for name in set(sys.modules) - before:
        if str(WEBSITE) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]


@pytest.mark.parametrize(
    ("link", "here", "address"),
    [
        ("gpu.md", "index.md", "gpu.md"),
        ("../design/README.md", "index.md", "design/index.md"),
        ("../docs/gpu.md", "design/gpu.md", "../gpu.md"),
        ("plan.md", "design/index.md", "plan.md"),
        ("design/README.md", "contributing.md", "design/index.md"),
        ("../benchmarks/RESULTS.md", "jax.md", f"{REPOSITORY}/blob/main/benchmarks/RESULTS.md"),
        ("../examples", "jax.md", f"{REPOSITORY}/tree/main/examples"),
        ("notebooks/video.py", "index.md", "notebooks/video.md"),
        ("speech.py", "notebooks/video.md", "speech.md"),
        ("../video.md", "notebooks/video.md", "../video.md"),
        ("../nowhere.md", "jax.md", "../nowhere.md"),
        ("nowhere.md", "jax.md", "nowhere.md"),
    ],
)
def test_addresses(link, here, address):
    import links

    assert links.address(link, here, REPOSITORY) == address


def test_operators_are_linked_but_in_code_headings_and_links():
    import links

    text = "# `fn.crop`\n`fn.crop` and [`fn.flip`](x.md), `fn.nothing`\n```python a\n`fn.crop`\n```"
    made = links.for_site(text, "jax.md", REPOSITORY)
    assert made == text.replace(
        "\n`fn.crop` and", "\n[`fn.crop`](reference/fn.crop.md) and"
    ).replace("python a", "python")


def test_pages_of_operators_have_all_that_is_declared():
    import operator_pages

    for schema in operator_pages.public_schemas():
        page = operator_pages.operator_page(schema, ["shown"])
        assert page.startswith(f"# `fn.{schema.name}`\n")
        rows = re.findall(r"^\| `(\w+)`", page, re.MULTILINE)
        assert sorted(rows) == sorted([*(i.name for i in schema.inputs), *schema.shown_args]), (
            schema.name
        )
        assert page.count("```") % 2 == 0
        assert "shown" in page.splitlines()
        assert operator_pages.summary(schema).endswith((".", ":")), schema.name


def test_index_has_each_operator():
    import operator_pages

    page = operator_pages.index_page([])
    linked = re.findall(r"\]\(fn\.([\w.]+)\.md\)", page)
    assert sorted(linked) == sorted(schema.name for schema in operator_pages.public_schemas())


def test_each_operator_has_an_example():
    import gallery
    import operator_pages

    names = {schema.name for schema in operator_pages.public_schemas()}
    assert names == set(gallery.names()), "tools/website/examples/*.toml"


def test_an_example_is_a_program_with_a_picture_or_text_for_each_call():
    import gallery

    shown = gallery.example("bb_flip")
    assert [panel.call for panel in shown.panels][:2] == [
        "images, boxes",
        "fn.flip(images), fn.bb_flip(boxes, ltrb=True)",
    ]
    pictures = [panel.picture for panel in shown.panels]
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert len(set(pictures)) == len(pictures)
    exec(compile(shown.program.replace(".run()", ""), "program", "exec"), {})
    text = "\n".join(gallery.section("cast"))
    assert "<code>fn.cast(x, dtype=types.UINT8)</code>" in text
    assert "[[1 3 3]" in text
