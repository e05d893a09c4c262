"""What generators end with."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest


@pytest.fixture
def generated(monkeypatch, tmp_path):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "tools"))
    import generated

    monkeypatch.setattr(generated, "ROOT", tmp_path)
    yield generated
    del sys.modules["generated"]


def test_writes_and_then_finds_nothing_stale(generated, tmp_path, capsys):
    files = {tmp_path / "new" / "a.pyi": "a\n", tmp_path / "b.pyi": "b\n"}
    assert generated.write_or_check(files, check=True) == 1
    assert not (tmp_path / "b.pyi").exists()
    assert generated.write_or_check(files, check=False) == 0
    assert (tmp_path / "new" / "a.pyi").read_text() == "a\n"
    capsys.readouterr()
    assert generated.write_or_check(files, check=True) == 0
    assert capsys.readouterr().out == ""


def test_complains_of_changed_files(generated, tmp_path, capsys):
    path = tmp_path / "a.pyi"
    path.write_text("changed by hand\n")
    assert generated.write_or_check({path: "a\n"}, check=True) == 1
    assert "stale: a.pyi" in capsys.readouterr().out
    assert path.read_text() == "changed by hand\n"


def test_removes_what_is_left_over_of_its_own_only(generated, tmp_path):
    kept, left, other = (tmp_path / n for n in ("kept.pyi", "left.pyi", "other.py"))
    for path in (kept, left, other):
        path.write_text("")
    owned = ((tmp_path, "*.pyi"),)
    assert generated.write_or_check({kept: ""}, check=True, owned=owned) == 1
    assert generated.write_or_check({kept: ""}, check=False, owned=owned) == 0
    assert kept.exists()
    assert not left.exists()
    assert other.exists()
