"""Which processors worker threads are bound to, as the kernel tells it."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path

import numpy as np
import nvidia.dali
import pytest

import headrace
from tests.support.processes import wait_until

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_setaffinity"), reason="the system binds no threads"
)


def tasks() -> set[Path]:
    return set(Path("/proc/self/task").iterdir())


def dali_workers(others: set[Path]) -> dict[int, tuple[int, ...]]:
    found = {}
    for task in tasks() - others:
        name = re.match(r"\[DALI\]\[TP(\d+)\]", (task / "comm").read_text())
        if name is not None:
            found[int(name[1])] = tuple(sorted(os.sched_getaffinity(int(task.name))))
    return found


def headrace_workers(pipe) -> dict[int, tuple[int, ...]]:
    return {
        worker.number: tuple(sorted(os.sched_getaffinity(worker.native_id)))
        for worker in pipe._executor._threads
    }


def running(library, threads: int):
    pipe = library.Pipeline(4, threads, None, set_affinity=True)
    with pipe:
        pipe.set_outputs(library.fn.external_source(lambda: [np.zeros(3, np.uint8)] * 4))
    pipe.build()
    pipe.run()
    return pipe


@pytest.mark.parametrize("mask", [None, "last", "first,last", " last , first,last", "last,99999"])
def test_masks(monkeypatch, mask) -> None:
    """Listed processors in order; beyond the list, and for processors that are not there, any."""
    allowed = sorted(os.sched_getaffinity(0))
    if mask is None:
        monkeypatch.delenv("DALI_AFFINITY_MASK", raising=False)
    else:
        words = mask.replace("first", str(allowed[0])).replace("last", str(allowed[-1]))
        monkeypatch.setenv("DALI_AFFINITY_MASK", words)
    others = tasks()
    theirs = running(nvidia.dali, 3)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        ours = running(headrace, 3)
    # Threads of both name and bind themselves when they begin.
    wait_until(lambda: len(dali_workers(others)) == 3)
    wait_until(lambda: headrace_workers(ours) == dali_workers(others))
    assert [("99999" in str(w.message), w.filename) for w in warned] == (
        [(True, __file__)] if mask and "99999" in mask else []
    )
    del theirs
