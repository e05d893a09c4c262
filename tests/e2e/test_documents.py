"""The programs in the guide run as they stand there, one after the other on each page."""

from __future__ import annotations

import re

import cv2
import pytest

from tests.e2e.support import REPOSITORY, one_file_a_class


def programs(page):
    text = (REPOSITORY / "docs" / page).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def run_page(tmp_path, monkeypatch):
    """Runs the programs of a page in a folder with `photos`; returns the names they define."""
    one_file_a_class(tmp_path / "photos", 20)
    monkeypatch.chdir(tmp_path)

    def run(page, **names):
        names["__name__"] = page
        for program in programs(page):
            exec(compile(program, f"docs/{page}", "exec"), names)
        return names

    return run


def test_looking(run_page, tmp_path, capsys):
    names = run_page("looking.md")
    assert cv2.imread(str(tmp_path / "batch.png")).std() > 20
    assert names["pixels"].shape[2] == 3
    printed = capsys.readouterr().out
    (shown,) = re.findall(
        r"```text\n(.*?)```", (REPOSITORY / "docs/looking.md").read_text(), re.DOTALL
    )

    def words(text):
        return [line.split()[:3] for line in text.splitlines()[1:]]

    assert words(printed) == words(shown)
    assert printed.splitlines()[0] == shown.splitlines()[0]


def test_checkpointing(run_page):
    names = run_page("checkpointing.md")
    assert sum(1 for _ in names["loader"]) == 1
