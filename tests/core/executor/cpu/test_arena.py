"""Scratch memory: what is kept, and what is given back."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

from headrace.executor.cpu import arena as arenas
from headrace.executor.cpu.arena import Arena


@pytest.fixture
def blocks(monkeypatch):
    """Weak references to all blocks that an arena takes."""
    taken = []
    take = arenas._aligned_block

    def noted(size):
        block, base = take(size)
        taken.append(weakref.ref(block))
        return block, base

    monkeypatch.setattr(arenas, "_aligned_block", noted)
    return taken


def alive(blocks):
    gc.collect()
    return sum(block().nbytes for block in blocks if block() is not None)


def test_a_block_grows_to_what_samples_need(blocks):
    arena = Arena()
    arena.empty((3 << 20,), np.uint8)
    arena.reset()
    taken = len(blocks)
    for _ in range(3):
        arena.empty((3 << 20,), np.uint8)
        arena.reset()
    assert len(blocks) == taken


def test_what_one_sample_took_is_dropped_before_the_next(blocks):
    arena = Arena()
    arena.empty((1000,), np.uint8)
    mark = arena.mark()
    for _ in range(8):
        arena.empty((100 << 20,), np.uint8)
        arena.empty((100 << 20,), np.uint8)
        arena.release(mark)
        assert alive(blocks) < 4 << 20


def test_much_memory_is_not_kept(blocks):
    arena = Arena()
    arena.empty((200 << 20,), np.uint8)
    arena.reset()
    assert alive(blocks) <= (64 << 20) + 64
    arena.reset()
    assert alive(blocks) <= (64 << 20) + 64


def test_arrays_stay_valid_as_long_as_somebody_has_them():
    arena = Arena()
    mark = arena.mark()
    kept = arena.empty((8 << 20,), np.uint8)
    kept[...] = 7
    arena.release(mark)
    arena.empty((8 << 20,), np.uint8)[...] = 1
    assert (kept == 7).all()


def test_without_memory_for_a_larger_block_the_arena_goes_on(monkeypatch):
    arena = Arena()
    arena.empty((3 << 20,), np.uint8)
    take = arenas._aligned_block

    def refuse(size):
        raise MemoryError

    monkeypatch.setattr(arenas, "_aligned_block", refuse)
    with pytest.raises(MemoryError):
        arena.reset()
    monkeypatch.setattr(arenas, "_aligned_block", take)
    assert arena.empty((3 << 20,), np.uint8).shape == (3 << 20,)


def test_samples_of_one_shape_get_the_same_arrays():
    arena = Arena()
    mark = arena.mark()
    first = [arena.empty((4, 5), np.uint8), arena.empty((3,), np.float32)]
    arena.release(mark)
    again = [arena.empty((4, 5), np.uint8), arena.empty((3,), np.float32)]
    assert all(a is b for a, b in zip(first, again, strict=True))
    assert not np.shares_memory(*again)
    arena.release(mark)
    for shape, dtype in (((5, 4), np.uint8), ((4, 5), np.int8), ((4, 5), np.uint8)):
        other = arena.empty(shape, dtype)
        assert (other.shape, other.dtype) == (shape, dtype)
        arena.release(mark)
