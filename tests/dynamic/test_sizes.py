"""Sizes of batches that users give."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("size", "error", "text"),
    [
        (-1, ValueError, "`batch_size` is -1; it must be at least 0"),
        (2.5, TypeError, "`batch_size` is an integer, got 2.5"),
        ("3", TypeError, "`batch_size` is an integer, got '3'"),
        (True, TypeError, "`batch_size` is an integer, got True"),
    ],
    ids=repr,
)
@pytest.mark.parametrize("mode", list(ndd.EvalMode), ids=str)
def test_sizes_of_batches_are_checked_at_the_call(mode, size, error, text):
    with mode:
        for call in (
            lambda: ndd.random.uniform(batch_size=size),
            lambda: ndd.copy(ndd.tensor([1, 2]), batch_size=size),
            lambda: ndd.Batch.broadcast(3, size),
        ):
            with pytest.raises(error, match=text):
                call()


def test_batches_may_be_empty():
    assert ndd.random.uniform(batch_size=0).batch_size == 0
    assert ndd.copy(ndd.tensor([1, 2]), batch_size=np.int64(3)).batch_size == 3
