"""`HEADRACE_CHECK=1`: memory that instructions touch is checked before it could crash."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.executor.cpu import compiled_chunk
from headrace.kernels.cpu import view_steps, window_steps
from headrace.operators.support.compiled_steps import CompiledSteps


@pytest.fixture(autouse=True)
def _checked(monkeypatch):
    monkeypatch.setenv("HEADRACE_CHECK", "1")
    monkeypatch.setenv("HEADRACE_WORKERS", "threads")


def run(extent=30):
    random = np.random.default_rng(3)
    images = [random.integers(0, 256, (extent, 20 + k, 3), np.uint8) for k in range(5)]
    pipe = Pipeline(5, 1, None, seed=3)
    with pipe:
        data = fn.external_source(source=lambda: images, layout="HWC")
        window = fn.flip(fn.crop(data, crop=(12, 17)), horizontal=1)
        padded = fn.slice(data, start=[-2, 3], shape=[9, 40], axes=(0, 1),
                          out_of_bounds_policy="pad")  # fmt: skip
        bright = fn.brightness(padded, brightness=1.5)
        pipe.set_outputs(
            fn.crop_mirror_normalize(window, mirror=1), bright, fn.hue(bright, hue=9.0)
        )
    try:
        return [np.array(output.at(k)) for output in pipe.run() for k in range(5)]
    finally:
        pipe._shutdown()


def test_what_is_right_passes(carried, monkeypatch):
    found = run()
    assert all(carried)
    monkeypatch.setenv("HEADRACE_CHECK", "0")
    for one, other in zip(found, run(), strict=True):
        np.testing.assert_array_equal(one, other)


def mutated(monkeypatch, function, place, value):
    """Have one word of the instructions that call `function` be wrong."""
    add = CompiledSteps.add

    def wrong(self, plan, carry, words):
        words = list(words)
        if carry is function:
            words[place] = value
        add(self, plan, carry, words)

    monkeypatch.setattr(CompiledSteps, "add", wrong)


def test_a_wrong_stride_is_found(monkeypatch):
    """Elements that are said to have a thousand bytes."""
    mutated(monkeypatch, window_steps.carry_view, 4, 1000)
    with pytest.raises(AssertionError, match="What `crop` made is at"):
        run()


def test_a_wrong_origin_is_found(monkeypatch):
    """Samples whose address is taken from a column that has something else."""
    mutated(monkeypatch, view_steps.carry_mirrored, 0, 1)
    with pytest.raises(AssertionError, match="What `flip` made is at"):
        run()


def test_a_stale_view_is_found(monkeypatch):
    """Strides of another view than the one that is read."""
    mutated(monkeypatch, view_steps.carry_mirrored, 2, 0)
    with pytest.raises(AssertionError, match="What `flip` made is at"):
        run()


def test_scratch_memory_that_is_too_short_is_found(monkeypatch):
    place = CompiledSteps.place

    def short(self, dtype, ndim, *, leaves):
        made = place(self, dtype, ndim, leaves=leaves)
        if not leaves:
            address, extents, axes, _ = self.slots[-1]
            self.slots[-1] = address, extents, axes - 1, 1
        return made

    def whole(program, columns, scratch, slots, carry):
        slots = slots.copy()
        for k, (_, _, axes, size, *_) in enumerate(slots.tolist()):
            if size == 1:
                slots[k, 2] = axes + 1
        return checked(program, columns, scratch, slots, carry)

    checked = compiled_chunk.carry_checked
    monkeypatch.setattr(CompiledSteps, "place", short)
    monkeypatch.setattr(compiled_chunk, "carry_checked", whole)
    with pytest.raises(AssertionError, match="Scratch memory of column"):
        run()
