"""Loops that run ahead of the background thread: each round of them is the same chain."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace.experimental.dynamic import evaluators


@pytest.fixture
def chains(monkeypatch):
    """The chains that are run, in order."""
    found = []
    run = evaluators.run_chain

    def noted(chain, *rest):
        found.append(chain)
        return run(chain, *rest)

    monkeypatch.setattr(evaluators, "run_chain", noted)
    return found


def ahead(rounds, body):
    """The results of `body` for each round, all called before any work is begun."""
    context = ndd.EvalContext.current()
    context.evaluate_all()
    with context._evaluator._work_lock:
        results = [body(k) for k in range(rounds)]
    context.evaluate_all()
    return results


def batch(k):
    return ndd.batch([np.full(3, k, np.float32), np.full(2, k + 0.5, np.float32)])


def test_rounds_of_a_loop_share_a_chain(chains):
    def body(k):
        data = batch(k)
        other = ndd.cast(data * 3, dtype=ndd.int32) + 1
        return ndd.stack(data, ndd.cast(other, dtype=ndd.float32)), ndd.reductions.sum(data)

    results = ahead(20, body)
    first = chains[0]
    assert [chain is first for chain in chains[:-1]] == [True] * 19
    for k, (stacked, total) in enumerate(results):
        assert np.asarray(stacked.tensors[0]).tolist() == [[k] * 3, [k * 3 + 1] * 3]
        assert np.asarray(total.tensors[1]).item() == 2 * k + 1


def test_two_views_of_a_sample_share_a_chain_where_they_meet(chains):
    def body(k):
        data = batch(k)
        return ndd.cat(data + 1, data + 1, axis=0)

    results = ahead(4, body)
    assert len(set(chains)) == 1
    assert len(chains) == 4
    assert np.asarray(results[3].tensors[1]).tolist() == [4.5] * 4


def test_rounds_that_read_one_another_are_one_chain(chains):
    total = ndd.batch([np.zeros(1, np.float32), np.zeros(2, np.float32)])

    def body(k):
        nonlocal total
        total = total + k
        return total

    results = ahead(100, body)  # more calls than one chain takes
    assert [r.tensors[1].shape for r in results] == [(2,)] * 100
    assert [np.asarray(r.tensors[0]).item() for r in results] == list(np.cumsum(np.arange(100)))
    assert len(chains) == 2


def test_a_failure_stays_in_its_round():
    def body(k):
        data = ndd.reshape(batch(k), shape=[-1, 1])
        start = ndd.batch([np.int32(0), np.int32(5 if k == 2 else 0)])
        return ndd.slice(data, start=start, shape=[1], axes=[0]) * 2

    results = ahead(5, body)
    for k, result in enumerate(results):
        if k == 2:
            with pytest.raises(Exception, match="slice"):
                result.evaluate()
        else:
            assert np.asarray(result.tensors[0]).tolist() == [[2 * k]]


def test_a_failure_in_a_long_chain_reaches_what_reads_it_and_nothing_else():
    total = ndd.batch([np.zeros(1, np.float32)])
    cut = None

    def body(k):
        nonlocal total, cut
        total = total + 1
        if k == 10:
            cut = ndd.slice(total, start=[9], shape=[1], axes=[0])
        elif k > 10:
            cut = cut + total
        return cut if k >= 10 else total

    results = ahead(80, body)
    for k, result in enumerate(results):
        if k < 10:
            assert np.asarray(result.tensors[0]).tolist() == [k + 1]
        else:
            with pytest.raises(Exception, match="slice"):
                result.evaluate()
    assert np.asarray(total.tensors[0]).tolist() == [80]
