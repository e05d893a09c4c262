"""Environment switches."""

from __future__ import annotations

import re

from headrace.config import SWITCHES
from tests.e2e.support import REPOSITORY


def test_every_switch_is_documented():
    page = (REPOSITORY / "docs" / "compiled-code.md").read_text()
    rows = dict(re.findall(r"^\| `(HEADRACE_\w+)` \| (.*?) \|", page, re.MULTILINE))
    assert {switch.name for switch in SWITCHES} <= set(rows), "docs/compiled-code.md lists them"
    for switch in SWITCHES:
        assert rows[switch.name] == ", ".join(f"`{choice}`" for choice in switch.choices)
    used = set()
    for source in REPOSITORY.glob("packages/*/src/**/*.py"):
        used |= set(re.findall(r'"(HEADRACE_[A-Z_]+)"', source.read_text()))
    assert used == set(rows)
