"""What package indexes show of every distribution."""

from __future__ import annotations

import re
import tomllib

import pytest

from headrace.to_come import REPOSITORY
from tests.e2e.support import REPOSITORY as ROOT

PACKAGES = sorted(path.name for path in (ROOT / "packages").iterdir())
PAGES = [ROOT / "packages" / name / "README.md" for name in PACKAGES]


def project(name):
    return tomllib.loads((ROOT / "packages" / name / "pyproject.toml").read_text())["project"]


def check_address(address):
    """An address within the repository names a file or folder that is there."""
    inside = re.fullmatch(rf"{re.escape(REPOSITORY)}/(?:blob|tree)/main/([^#]*)(#.*)?", address)
    if inside:
        assert (ROOT / inside[1]).exists(), address
    else:
        assert address.startswith("https://"), address


@pytest.mark.parametrize("name", PACKAGES)
def test_project_addresses(name):
    urls = project(name)["urls"]
    assert {"Homepage", "Documentation", "Source", "Issues", "Changelog"} <= set(urls)
    for address in urls.values():
        assert address.startswith(REPOSITORY)
        check_address(address)
    assert f"packages/{name}" in urls["Source"]
    assert f"packages/{name}" in urls["Changelog"]


@pytest.mark.parametrize("page", PAGES, ids=PACKAGES)
def test_links_of_a_page_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", page.read_text())
    assert links
    for link in links:
        check_address(link)


def test_links_of_the_readme_lead_somewhere():
    text = (ROOT / "README.md").read_text()
    links = re.findall(r"\]\(([^)\s]+)\)", text)
    headings = [h.lower().replace(" ", "-") for h in re.findall(r"^#+ (.*)$", text, re.MULTILINE)]
    for link in links:
        if link.startswith("#"):
            assert link[1:] in headings
        elif "://" not in link:
            assert (ROOT / link.partition("#")[0]).exists(), link
    assert "install" in headings  # errors of imports name it


def test_the_same_bounds_everywhere():
    bounds = {}
    for file in (ROOT / "hatch.toml", *ROOT.glob("packages/*/pyproject.toml")):
        for bound in re.findall(r'"fsspec([^"]*)"', file.read_text()):
            bounds.setdefault(bound, []).append(file)
    assert len(bounds) == 1, bounds


def test_only_the_plugin_to_come_is_called_one():
    for name, page in zip(PACKAGES, PAGES, strict=True):
        text = f"{page.read_text()} {project(name)['description']}"
        for sentence in re.split(r"(?<=\.)\s|\n\n|\|\n", text):
            if re.search(r"place-?holder|reserve|to come", sentence, re.IGNORECASE):
                assert not re.search(r"headrace-(jax|torch|squirrel)", sentence), sentence


def test_a_crash_ends_a_run_on_several_processes():
    hatch = tomllib.loads((ROOT / "hatch.toml").read_text())
    calls = [
        line
        for env in hatch["envs"].values()
        for script in env.get("scripts", {}).values()
        for line in ([script] if isinstance(script, str) else script)
        if "pytest" in line and " -n " in line
    ]
    assert len(calls) >= 5
    assert all("--max-worker-restart 0" in line and "--durations" in line for line in calls)
