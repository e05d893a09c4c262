"""The CPU makes what the table of golden hashes says, in every way to run it."""

from __future__ import annotations

import pytest

from tests.golden.running import MODES
from tests.golden.table import differences, found


@pytest.fixture(scope="module")
def plain():

    return found("cpu", "plain")


@pytest.mark.parametrize("mode", MODES)
def test_outputs_are_those_of_the_table(mode, plain):
    now = plain if mode == "plain" else found("cpu", mode)
    told = differences("cpu", mode, now, plain)
    assert not told, "\n".join(
        [*told, "If that is meant: `hatch run test:golden --write` writes the table again."]
    )
