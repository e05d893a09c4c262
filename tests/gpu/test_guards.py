"""Branches on the GPU, beside everything computed for all samples on the CPU and selected."""

from __future__ import annotations

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.branches import check_equal, run


@given(st.data())
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_branches_give_what_is_selected(data):
    choices: list = []
    wanted = run(data, choices, branches=False, threads=1, fuse=False)
    for fuse in (True, False):
        check_equal(run(data, choices, branches=True, threads=2, fuse=fuse, device="gpu"), wanted)
