"""The same values in every mode."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd

MODES = list(ndd.EvalMode)


@pytest.mark.parametrize("mode", MODES, ids=[m.name for m in MODES])
def test_a_chain_gives_the_same_values_in_every_mode(mode):
    data = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    with mode:
        samples = ndd.batch([data, data[:1]])
        result = ndd.cast(samples * 2 + 1, dtype=ndd.int32)
        part = result.slice[0, 1:]
        assert np.array_equal(part.tensors[0], (data * 2 + 1).astype(np.int32)[0, 1:])
        assert np.array_equal(part.tensors[1], (data * 2 + 1).astype(np.int32)[0, 1:])
    assert part.dtype == ndd.int32
    assert part.shape == [(2, 4), (2, 4)]


def test_modes_nest():
    assert ndd.EvalMode.current() is ndd.EvalMode.eager
    with ndd.EvalMode.deferred:
        with ndd.EvalMode.sync_cpu as nothing:
            assert nothing is None
            assert ndd.EvalMode.current() is ndd.EvalMode.sync_cpu
        assert ndd.EvalMode.current() is ndd.EvalMode.deferred
    assert ndd.EvalMode.default is ndd.EvalMode.eager
