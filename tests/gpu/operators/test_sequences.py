"""Operators of frames on sequences: whole, where they work element by element, else by frames."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types

_rng = np.random.default_rng(0)
CLIPS = [_rng.integers(0, 256, s, np.uint8) for s in [(3, 8, 9, 3), (1, 5, 7, 3), (4, 8, 6, 3)]]


def outputs(define, device, clips, layout):
    pipe = Pipeline(len(clips), 1, None if device == "cpu" else 0, prefetch_queue_depth=1)
    with pipe:
        data = fn.external_source(source=lambda: clips, layout=layout)
        pipe.set_outputs(define(data if device == "cpu" else data.gpu()))
    (batch,) = pipe.run()
    host = batch if device == "cpu" else batch.as_cpu()
    return [np.array(host.at(i)) for i in range(len(host))], batch.layout()


def check(define, clips=CLIPS, layout="FHWC"):
    expected, expected_layout = outputs(define, "cpu", clips, layout)
    found, found_layout = outputs(define, "gpu", clips, layout)
    assert found_layout == expected_layout
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted, strict=True)


def per_sample(*values):
    rows = [np.asarray(v, np.float32) for v in values]
    return fn.external_source(source=lambda: rows)


def adjusted(x):
    x = fn.brightness(x, brightness=per_sample(0.5, 1, 2))
    x = fn.contrast(x, contrast=1.5, contrast_center=per_sample(1, 2, 3))
    return fn.cast(fn.brightness_contrast(x, brightness_shift=0.1), dtype=types.FLOAT)


def test_elementwise_operators_are_one_kernel(emulated_gpu):
    check(adjusted)
    names = [name.split("<")[0] for name in emulated_gpu.launches]
    assert len(names) == 2, names  # the first is the upload


def test_they_read_views(emulated_gpu):
    check(lambda x: adjusted(fn.flip(x, horizontal=1, vertical=1)))
    assert len(emulated_gpu.launches) == 2


@pytest.mark.parametrize(
    "shapes", [[(3, 0, 7, 3), (2, 4, 5, 3)], [(0, 4, 5, 3), (2, 4, 5, 3)], [(0, 4, 5, 3)] * 2]
)
def test_sequences_of_nothing(shapes):
    clips = [np.full(s, 7, np.uint8) for s in shapes]
    check(lambda x: fn.brightness(x, brightness=2.0, dtype=types.FLOAT), clips)


def test_arguments_that_differ_by_frame():
    rows = [np.linspace(0.5, 1.5, len(clip), dtype=np.float32) for clip in CLIPS]

    def define(x):
        x = fn.brightness(x, brightness=2.0)
        each = fn.per_frame(fn.external_source(source=lambda: rows))
        return fn.contrast(fn.brightness(x, brightness=each), contrast=0.5)

    check(define)


def test_neighbours_matter_to_others():
    def blurred(x):
        return fn.gaussian_blur(x, sigma=1.0)

    check(lambda x: fn.cast(blurred(fn.flip(x)), dtype=types.INT16))
    check(lambda x: fn.brightness(blurred(fn.brightness(x, brightness=1.5)), brightness=0.5))
