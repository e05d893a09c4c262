from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _counts_of_their_own(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is remembered from one test to the next, nor left behind."""
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "headrace-cache"))
