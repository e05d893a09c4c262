"""Which process a thread is lent that has lost one."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from headrace.executor.processes.pool import WorkerPool


def nothing(*_):
    pass


def worker(pid):
    return SimpleNamespace(
        pid=pid,
        processors=(),
        graphs=set(),
        is_discarded=False,
        has_ended=lambda: False,
        is_ready=lambda: True,
        lend=nothing,
        know=nothing,
        kill=nothing,
    )


@pytest.mark.parametrize(
    ("idle", "again", "found"),
    [
        ([0], False, 0),  # it is waited for
        ([0, 0, 0], True, 9),  # their server may just be killed
        ([4, 0], True, 4),
        ([4], True, 4),
    ],
)
def test_a_sample_that_lost_its_worker_is_given_one_that_has_begun(idle, again, found, monkeypatch):
    pool, graph = WorkerPool(), SimpleNamespace(number=1, modules=[])
    pool._idle += [worker(pid) for pid in idle]
    monkeypatch.setattr(pool, "_alive", SimpleNamespace(discard=lambda _: None))
    monkeypatch.setattr(pool, "_another", lambda *_, **__: worker(9))
    assert pool.lend(graph, [()], None, again=again).pid == found
