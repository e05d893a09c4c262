"""Tests that take several samples at a time really do."""

from __future__ import annotations

import numpy as np

from headrace import fn, pipeline_def
from headrace.operators.transforms.coord_flip import CoordFlip
from tests.support import chunks


def test_chunks_and_groups(monkeypatch):
    seen = []
    flip = CoordFlip.cpu_chunk

    def noted(self, c, data):
        seen.append(list(c.indices))
        return flip(self, c, data)

    monkeypatch.setattr(CoordFlip, "cpu_chunk", noted)

    @pipeline_def(batch_size=7, num_threads=2, device_id=None)
    def mirror():
        points = fn.external_source(lambda: np.ones((7, 3, 2), np.float32))
        return fn.coord_flip(points)

    def samples_together():
        seen.clear()
        mirror().run()
        return set(map(tuple, seen))

    with monkeypatch.context() as patch:
        chunks.set_chunks("5:3", patch.setattr)
        assert chunks.are_set()
        assert samples_together() == {(0, 1, 2), (3, 4), (5, 6)}
        chunks.set_chunks("64:64", patch.setattr)
        assert samples_together() == {tuple(range(7))}


def test_half_of_the_tests_take_several():
    names = [f"tests/parity/test_{k}.py::test" for k in range(1000)]
    assert 400 < sum(map(chunks.takes_several, names)) < 600


def test_samples_that_are_alike_are_one_array():
    alike = [np.zeros((2, 3), np.float32)] * 4
    assert chunks.as_one_array(alike).shape == (4, 2, 3)
    ragged = [*alike, np.zeros((2, 4), np.float32)]
    assert chunks.as_one_array(ragged) is ragged
