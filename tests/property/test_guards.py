"""Random graphs with random branches, beside everything computed for all samples and selected."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.branches import check_equal, run


@given(st.data())
@settings(deadline=None)
def test_branches_give_what_is_selected(data):
    choices: list = []
    wanted = run(data, choices, branches=False, threads=1, fuse=False)
    for threads, fuse in ((1, True), (8, False), (3, True)):
        check_equal(run(data, choices, branches=True, threads=threads, fuse=fuse), wanted)
