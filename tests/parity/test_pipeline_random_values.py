"""Random operators of a pipeline draw the numbers that DALI draws."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from headrace import Pipeline, fn, pipeline_def
from headrace.errors import ArgumentValueError
from headrace.pipeline import experimental
from tests.parity.support import LIBRARIES
from tests.support.images import encoded

BATCH = 5
RANDOM = np.random.default_rng(3)
IMAGES = [RANDOM.integers(0, 255, (90 + 7 * k, 120 - 9 * k, 3), np.uint8) for k in range(BATCH)]
FILES = [encoded(60 + 9 * k, 80, seed=k) for k in range(BATCH)]
CORNERS = [np.sort(RANDOM.random((k, 2, 2), np.float32), axis=1) for k in range(BATCH)]
BOXES = [corners.reshape(-1, 4) for corners in CORNERS]


def images(lib):
    return lib.fn.external_source(lambda i: IMAGES, layout="HWC")


def numbers(lib):
    random, t = lib.fn.random, lib.types
    return [
        random.uniform(range=[2, 5], shape=(3,)),
        random.uniform(values=[1.0, 5, 7]),
        random.uniform(range=[0, 100], dtype=t.UINT8, seed=5),
        random.uniform(dtype=t.FLOAT64, seed=2**40 + 3),
        random.uniform(range=lib.fn.stack(random.uniform(), random.uniform(range=[1, 2]))),
        random.normal(mean=3, shape=(9,)),
        random.coin_flip(shape=(20,)),
        random.coin_flip(probability=0.3),
        random.choice(10, shape=(4,)),
        random.choice([1.0, 2, 3], p=[0.2, 0.2, 0.6]),
        random.choice(np.arange(12).reshape(4, 3), shape=(5,)),
        random.beta(alpha=2.0, beta=3.0),
        *(
            lib.fn.batch_permutation(allow_repetitions=a, no_fixed_points=b)
            for a in (False, True)
            for b in (False, True)
        ),
    ]


def integers(lib):
    """Enough of them for halves, which are rounded away from zero; ends are cut off."""
    random, t = lib.fn.random, lib.types
    kinds = [t.UINT8, t.INT8, t.INT16, t.UINT16, t.INT32, t.UINT32, t.INT64]
    ranges = [(80, 120), (80.3, 120.1), (80.7, 120.9), (0.2, 0.9), (3.5, 4.5)]
    signed = [t.INT8, t.INT16, t.INT32, t.INT64]
    drawn = [random.uniform(range=r, shape=9999, dtype=k) for k in kinds for r in ranges]
    drawn += [random.uniform(range=(-99.9, 2.5), shape=9999, dtype=k) for k in signed]
    drawn += [random.normal(mean=-2.5, stddev=0, dtype=k) for k in signed]
    each = lib.fn.stack(random.uniform(range=[1, 2]), random.uniform(range=[7, 8]))
    return [*drawn, random.uniform(range=each, shape=999, dtype=t.UINT8)]


def choices_of_many(lib):
    """More numbers than one word can tell apart."""
    counts = [2**31 + 5, 2**32 - 1, 2**32, 2**32 + 1, 3 << 32, 2**40, 2**62 + 3, 2**63 - 1]
    samples = [[np.array(n)] * BATCH for n in counts]
    nodes = lib.fn.external_source(lambda: samples, num_outputs=len(counts))
    return [lib.fn.random.choice(node, shape=(9,)) for node in nodes]


def windows(lib):
    f = lib.fn
    crops = {"size": (9, 9), "antialias": False}
    boxes = f.external_source(lambda: BOXES)
    options = {"bbox_layout": "xyXY", "thresholds": [0.0, 0.1, 0.3], "quiet": True}
    drawn = {"scaling": [0.3, 1.0], "aspect_ratio": [0.5, 2.0]}
    few = {"total_num_attempts": 400, "allow_no_crop": False}
    fixed = {"crop_shape": [30, 20], "input_shape": [60, 20], "total_num_attempts": 9}
    return [
        f.random_resized_crop(images(lib), **crops),
        f.random_resized_crop(images(lib), random_area=[0.9, 1], num_attempts=1, **crops),
        f.decoders.image_random_crop(f.external_source(lambda: FILES)),
        f.roi_random_crop(
            images(lib), crop_shape=[9, 5, 3], roi_start=[2, 2, 0], roi_end=[60, 7, 3]
        ),
        *f.random_bbox_crop(boxes, **options, **drawn),
        *f.random_bbox_crop(boxes, num_attempts=40, **options, **drawn, **few),
        *f.random_bbox_crop(boxes, **options, **fixed),
    ]


def noises(lib):
    salt = lib.fn.noise.salt_and_pepper
    return [
        lib.fn.noise.gaussian(images(lib), stddev=20.0),
        salt(images(lib), prob=0.1),
        salt(images(lib), prob=0.1, per_channel=True),
    ]


def built(lib, graph, **settings):
    pipe = lib.Pipeline(BATCH, 2, None, **{"seed": 77, **settings})
    with pipe:
        pipe.set_outputs(*graph(lib))
    return pipe


def batches(pipe, count=3):
    return [[np.asarray(x) for x in output] for _ in range(count) for output in pipe.run()]


def assert_alike(ours, theirs):
    for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
        assert [x.shape for x in one] == [x.shape for x in other], number
        for a, b in zip(one, other, strict=True):
            # Resized pixels are DALI's within rounding.
            atol = 1 if a.dtype == np.uint8 and a.ndim == 3 else 1e-5
            wrong = ~np.isclose(a.astype(np.float64), b.astype(np.float64), rtol=1e-5, atol=atol)
            assert not wrong.any(), (number, a[wrong], b[wrong])


@pytest.mark.parametrize("graph", [numbers, integers, choices_of_many, windows, noises])
def test_same_numbers(graph):
    theirs = batches(built(LIBRARIES["dali"], graph))
    lib = LIBRARIES["headrace"]
    assert_alike(batches(built(lib, graph)), theirs)


def test_branches_and_seeds_of_all_sizes():
    def define(lib):
        @lib.pipeline_def(enable_conditionals=True, batch_size=BATCH, num_threads=2, device_id=None)
        def graph():
            if lib.fn.random.coin_flip(dtype=lib.types.BOOL, seed=2**62 + 1):
                value = lib.fn.random.uniform(range=[1, 2])
            else:
                value = lib.fn.random.uniform(range=[3, 4], seed=1)
            return value

        return graph

    theirs = batches(define(LIBRARIES["dali"])(seed=2**33 + 5))
    ours = define(LIBRARIES["headrace"])(seed=2**33 + 5)
    assert_alike(batches(ours), theirs)


def test_wherever_they_are_drawn():
    lib = LIBRARIES["headrace"]
    expected = batches(built(lib, windows))
    assert_alike(batches(built(lib, windows, workers="processes")), expected)
    assert_alike(batches(built(lib, windows, random_numbers="dali")), expected)
    first = built(lib, noises, enable_checkpointing=True)
    expected = batches(first, 2)
    saved, after = first.checkpoint(), batches(first, 1)
    resumed = built(lib, noises, enable_checkpointing=True, checkpoint=saved, seed=4)
    assert_alike(batches(resumed, 1), after)
    for other in ("headrace", "DALI", ""):
        with pytest.raises(ArgumentValueError, match=rf"random_numbers.*{other!r}.*'dali'"):
            Pipeline(1, 1, None, random_numbers=other)


def test_debug_mode_draws_the_same():
    def define(decorated):
        @decorated(batch_size=3, num_threads=1, device_id=None, seed=5)
        def graph():
            return fn.random.normal(), fn.random.uniform(seed=8)

        return batches(graph())

    assert_alike(
        define(functools.partial(experimental.pipeline_def, debug=True)), define(pipeline_def)
    )


def by_sample(lib, dtype):
    """Calls with each argument given as a tensor, of numbers without axes and of small tensors."""
    random = lib.fn.random

    def given(*rows, dtype=np.float32):
        return lib.fn.external_source(lambda: [np.array(row, dtype) for row in rows], batch=True)

    spans = given([1, 20], [5, 9], [0, 90], [50, 99], [7, 77])
    extents = given([2], [3], [1], [4], [2], dtype=np.int32)
    some, more = given(30, 60, 90, 40, 50), given(1, 2, 3, 4, 5)
    choices = given([1, 5, 9], [2, 4], [3], [7, 8], [1, 2])
    for shape in ({}, {"shape": [3]}, {"shape": extents}):
        yield random.uniform(range=spans, dtype=dtype, **shape)
        yield random.uniform(values=choices, dtype=dtype, **shape)
        yield random.normal(mean=some, dtype=dtype, **shape)
        yield random.normal(mean=50, stddev=more, dtype=dtype, **shape)
        yield random.normal(mean=some, stddev=more, dtype=dtype, **shape)


INTEGERS = "UINT8 INT8 UINT16 INT16 UINT32 INT32 UINT64 INT64"


@pytest.mark.parametrize("dtype", [*INTEGERS.split(), "FLOAT", "FLOAT64"])
def test_arguments_of_each_sample(dtype):
    def graph(lib):
        return list(by_sample(lib, getattr(lib.types, dtype)))

    theirs = batches(built(LIBRARIES["dali"], graph))
    lib = LIBRARIES["headrace"]
    ours = batches(built(lib, graph))
    if dtype in INTEGERS.split():
        for one, other in zip(ours, theirs, strict=True):
            for a, b in zip(one, other, strict=True):
                assert a.dtype == b.dtype
                # Normal numbers are DALI's within rounding.
                assert np.abs(a.astype(np.int64) - b.astype(np.int64)).max() <= 1
    else:
        assert_alike(ours, theirs)
