"""Transforms made for whole batches are those made sample by sample."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.errors import ArgumentValueError


def by_batch(count=2, **given):
    """Numbers that are there for the whole batch at once."""
    return fn.random.uniform(shape=count, **given)


def by_sample(count=2, **given):
    """The same, one by one."""
    return fn.copy(by_batch(count, **given))


def graph(numbers):
    t = fn.transforms
    moved = t.translation(offset=numbers(3))
    turned = t.rotation(angle=numbers(1, range=(-90, 90)), center=numbers())
    scaled = t.scale(turned, scale=numbers(), center=(1, 2), reverse_order=True)
    sheared = t.shear(scaled, angles=numbers(), center=numbers(1))
    cropped = t.crop(sheared, from_start=numbers(), to_end=numbers(1), absolute=True)
    around = t.rotation(moved, angle=numbers(1), axis=(1, 2, 3))
    constant = t.translation(offset=(1, 2))
    whole = t.combine(cropped, constant, numbers((2, 3)))
    return (moved, turned, scaled, sheared, cropped, around, constant, whole)


def outputs(numbers):
    @pipeline_def(batch_size=5, num_threads=2, device_id=None, seed=5)
    def pipe():
        return graph(numbers)

    p = pipe()
    return [[np.array(batch.as_array()) for batch in p.run()] for _ in range(3)]


def test_batches_are_samples():
    for whole, single in zip(outputs(by_batch), outputs(by_sample), strict=True):
        for one, other in zip(whole, single, strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("numbers", [by_batch, by_sample])
def test_a_bad_sample_is_named(numbers):
    @pipeline_def(batch_size=40, num_threads=2, device_id=None, seed=5)
    def pipe():
        # About one in ten is out of range.
        return fn.transforms.shear(angles=numbers(range=(-94, 94)))

    with pytest.raises(ArgumentValueError, match="at sample") as caught:
        pipe().run()
    assert "-90 to 90" in str(caught.value)
    assert len(str(caught.value)) < 400


def test_batches_of_several_sizes_and_iterations():
    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=5)
    def pipe():
        turn = fn.transforms.rotation(angle=fn.random.uniform(range=(-90, 90)))
        images = fn.external_source(
            lambda info: np.full((4, 5, 1), info.idx_in_batch, np.uint8), batch=False
        )
        return turn, fn.warp_affine(images, turn)

    p = pipe()
    first, second = ([np.array(b.as_array()) for b in p.run()] for _ in range(2))
    assert first[0].shape == (4, 2, 3)
    assert first[1].shape == (4, 4, 5, 1)
    assert not np.array_equal(first[0], second[0])
