"""Tracked arrays: what is made of them is made anew, and nothing is read of them unnoticed."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import lay_samples, uniform_shape
from headrace.tensors.gpu.traced import (
    TracedNumber,
    TracedResults,
    UntrackedError,
    traced,
    tracing,
)
from headrace.tensors.gpu.tracked import Tracked, empty_beside


class _Noted:
    """An array with the calls that were noted of what became of it."""

    def __init__(self, raw, use):
        self.raw = np.array(raw, np.int64)
        self.calls: list[Any] = []
        with tracing(self.calls):
            self.made = use(Tracked(self.raw))

    def again(self, values):
        """Make the calls with other elements; return whether they do for what was read."""
        self.raw[...] = values
        return all(
            call.result.admit(call.function(*call.args))
            if isinstance(call.result, TracedResults)
            else call.function(*call.args) == call.result
            for call in self.calls
        )


def _assigned(x):
    made = empty_beside((len(x), 2), np.int64, x)
    made[:, 0], made[:, 1] = x[:, 1], 7
    made += 1
    return made


def _copied(x):
    target = np.zeros_like(x)
    np.copyto(target, x, where=x > 2)
    return target


USES = {
    "ufunc": lambda x: x * 2 + x[:, :1],
    "in place": _assigned,
    "copyto": _copied,
    "reduced": lambda x: x.sum(axis=1) - np.max(x, axis=1),
    "chosen": lambda x: x[np.array([2, 0])],
    "view": lambda x: x.T[1:].view(np.uint64),
    "broadcast": lambda x: np.broadcast_to(x[:1], (3, 2)),
    "where": lambda x: np.where(x > 3, x, -x),
    "converted": lambda x: (x + 1).astype(np.int32),
    "stacked": lambda x: np.stack([x[:, 0], x[:, 1] * 3], axis=1),
}


@pytest.mark.parametrize("name", USES)
def test_what_is_made_is_made_anew(name):
    noted = _Noted([[1, 2], [3, 4], [5, 6]], USES[name])
    others = [[9, 2], [1, 8], [4, 3]]
    assert isinstance(noted.made, Tracked)
    np.testing.assert_array_equal(noted.made.raw, _plain(name, [[1, 2], [3, 4], [5, 6]]))
    assert noted.again(others)
    np.testing.assert_array_equal(noted.made.raw, _plain(name, others))


def _plain(name, values):
    return USES[name](np.array(values, np.int64))


READS = {
    "bool": (lambda x: bool((x > 0).all()), [[7, 7], [7, 7]], [[7, 0], [7, 7]]),
    "int": (lambda x: int(x.max()), [[4, 0], [0, 0]], [[5, 0], [0, 0]]),
    "tolist": (lambda x: x[0].tolist(), [[1, 2], [9, 9]], [[1, 3], [9, 9]]),
    "equal": (lambda x: np.array_equal(x, [[1, 2], [3, 4]]), [[1, 2], [3, 4]], [[1, 2], [3, 5]]),
    "uniform": (lambda x: uniform_shape(x), [[9, 9], [8, 8]], [[2, 2], [2, 2]]),
    "count": (lambda x: int(np.count_nonzero(x)), [[1, 0], [1, 1]], [[1, 0], [0, 1]]),
}
"""What a program reads, elements of which it is the same, and others."""


@pytest.mark.parametrize("name", READS)
def test_what_is_read_has_to_be_the_same(name):
    read, same, others = READS[name]
    noted = _Noted([[1, 2], [3, 4]] if name in ("tolist", "equal", "uniform") else same, read)
    assert not isinstance(noted.made, Tracked)
    assert noted.again(same)
    assert not noted.again(others)


@compiled
def _untraced(x: np.ndarray) -> int:
    return x[0, 0]


@traced
def _filled(out: np.ndarray, x: np.ndarray) -> None:
    out[...] = x


def _silenced(x):
    with np.errstate(divide="ignore"):
        return 1 / x


LEAKS = {
    "asarray": np.asarray,
    "plain target": lambda x: np.empty((2, 2)).__setitem__(slice(None), x),
    "plain out": lambda x: np.add(x, 1, out=np.empty((2, 2), np.int64)),
    "plain filled": lambda x: _filled(np.full((2, 2), -1), x),
    "compiled": _untraced,
    "several results": np.nonzero,
    "silenced": _silenced,
}


@pytest.mark.parametrize("name", LEAKS)
def test_nothing_is_read_unnoticed(name):
    with pytest.raises(UntrackedError):
        _Noted([[1, 2], [3, 4]], LEAKS[name])


def test_numbers_are_handed_on():
    """Sizes and blocks follow from shapes; comparisons are what iterations have in common."""
    offsets = Tracked(np.zeros(2, np.int64))
    noted = _Noted([[1, 2], [3, 4]], lambda x: lay_samples(offsets, x, 1, 8))
    total, blocks = noted.made, -(-noted.made // 16)
    assert isinstance(total, TracedNumber)
    assert (total.now, blocks.now) == (24, 2)
    assert total > 8
    assert noted.again([[10, 2], [3, 4]])
    assert (total.now, blocks.now, offsets.raw.tolist()) == (40, 3, [0, 24])
    assert not noted.again([[0, 2], [3, 2]])  # 8 bytes
    assert noted.again([[10, 2], [3, 4]])
    int(blocks)
    assert not noted.again([[1, 2], [3, 4]])
    with pytest.raises(TypeError):
        total * total
