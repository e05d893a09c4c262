"""Half of the tests beside DALI take whole batches at a time, the others what a thread would."""

from __future__ import annotations

import pytest

from tests.support.chunks import are_set, set_chunks, takes_several


@pytest.fixture(autouse=True)
def _checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Check all memory that compiled steps touch."""
    monkeypatch.setenv("HEADRACE_CHECK", "1")


@pytest.fixture(autouse=True)
def _chunks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if not are_set() and takes_several(request.node.nodeid):
        set_chunks("64:64", monkeypatch.setattr)
