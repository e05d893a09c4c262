"""The programs of the skill for coding assistants run as they stand there."""

from __future__ import annotations

import re

from headrace import fn
from tests.e2e.support import REPOSITORY, one_file_a_class

TEXT = (REPOSITORY / "skills/headrace/SKILL.md").read_text()


def test_its_programs_run(tmp_path, monkeypatch, capsys):
    one_file_a_class(tmp_path / "photos", 10)
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "skill"}
    for number, program in enumerate(re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)):
        exec(compile(program, f"SKILL.md, program {number}", "exec"), names)
    assert (tmp_path / "batch.png").exists()
    assert (tmp_path / "profile.html").exists()
    said = capsys.readouterr().out
    assert "fn.decoders.image_random_crop" in said
    assert "A perfect loader" in said
    first, second = next(names["restored"]), next(names["loader"])
    assert (first[0]["label"] == second[0]["label"]).all()


def test_it_begins_as_skills_do():
    head = re.match(r"---\nname: headrace\ndescription: (.+)\n---\n", TEXT)
    assert head is not None
    assert 100 < len(head[1]) < 1024
    assert len(TEXT.splitlines()) < 500


def test_it_names_what_there_is():
    """Operators, pages and commands."""
    for module, name in re.findall(r"`fn\.(\w+)\.(\w+)", TEXT):
        assert hasattr(getattr(fn, module), name), name
    for name in re.findall(r"`\.(\w+)`,", TEXT):
        assert hasattr(fn.readers, name), name
    for page in re.findall(r"`(docs/[\w-]+\.md)`", TEXT):
        assert (REPOSITORY / page).exists(), page
