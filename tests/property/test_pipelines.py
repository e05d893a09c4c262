"""What must never change a byte: fusion, the number of threads, the prefetch depth, a restart."""

from __future__ import annotations

import os

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import given, settings

from headrace import fn, pipeline_def, types
from tests.support.image_chains import steps
from tests.support.images import class_folders, encoded, picture

ENCODED = [encoded(40 + 9 * k, 70 - 7 * k, seed=k) for k in range(5)]
DECODED = [picture(30 + 11 * k, 64 - 5 * k, seed=k) for k in range(5)]


def outputs(chain, *, feed, decode, normalise, iterations=2, **keywords):
    @pipeline_def(batch_size=len(feed), device_id=None, seed=99)
    def p():
        x = fn.external_source(source=lambda: feed, layout=None if decode else "HWC")
        if decode == "image":
            x = fn.decoders.image(x)
        elif decode == "random":
            x = fn.decoders.image_random_crop(x)
        for step in chain:
            x = step(x)
        if normalise:
            x = fn.crop_mirror_normalize(
                x,
                dtype=types.FLOAT,
                mean=[100.0, 110, 120],
                std=[50.0, 60, 70],
                mirror=fn.random.coin_flip(),
            )
        return x

    pipe = p(**keywords)
    return [[np.array(s) for s in pipe.run()[0]] for _ in range(iterations)]


def assert_same(one, other):
    for a_batch, b_batch in zip(one, other, strict=True):
        for a, b in zip(a_batch, b_batch, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)


@settings(max_examples=25)
@given(steps(), st.sampled_from([None, "image", "random"]), st.booleans())
def test_fused_equals_unfused_and_threads_do_not_matter(chain, decode, normalise):
    what = {"feed": ENCODED if decode else DECODED, "decode": decode, "normalise": normalise}
    fused = outputs(chain, num_threads=1, **what)
    assert_same(fused, outputs(chain, num_threads=2, fuse=False, **what))
    assert_same(fused, outputs(chain, num_threads=4, prefetch_queue_depth=4, **what))


@pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")
@settings(max_examples=5)
@given(steps(), st.sampled_from([None, "image", "random"]), st.booleans())
def test_worker_processes_do_not_matter(chain, decode, normalise):
    what = {"feed": ENCODED if decode else DECODED, "decode": decode, "normalise": normalise}
    threads = outputs(chain, num_threads=2, workers="threads", **what)
    assert_same(threads, outputs(chain, num_threads=2, workers="processes", **what))


@pytest.mark.parametrize("consumed", [0, 1, 3, 4])
@pytest.mark.parametrize("shuffle", [{"random_shuffle": True}, {"shuffle_after_epoch": True}, {}])
def test_a_restart_gives_the_next_epoch(tmp_path, consumed, shuffle):
    class_folders(tmp_path, 12)

    @pipeline_def(batch_size=3, num_threads=2, seed=4)
    def p():
        return fn.readers.file(file_root=tmp_path, name="r", **shuffle)[1], fn.random.uniform()

    straight, restarted = p(prefetch_queue_depth=3), p(prefetch_queue_depth=1)
    epochs = [[straight.run()[0].as_array().tolist() for _ in range(4)] for _ in range(2)]
    for _ in range(consumed):
        restarted.run()
    restarted._restart_epoch()
    got = [restarted.run()[0].as_array().tolist() for _ in range(4)]
    assert got == epochs[consumed > 0]
