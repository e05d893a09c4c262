"""Chains of calls in dynamic mode, drawn at random, beside the same chains in a pipeline."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import headrace.experimental.dynamic as ndd
from headrace import fn, types
from headrace.pipeline import Pipeline

STEPS = {
    "double": lambda lib, x: x * 2,
    "shift": lambda lib, x: x + 1.5,
    "to_uint8": lambda lib, x: lib.cast(x, dtype=types.UINT8),
    "to_float": lambda lib, x: lib.cast(x, dtype=types.FLOAT),
    "flip": lambda lib, x: lib.flip(x, horizontal=1),
    "crop": lambda lib, x: lib.crop(x, crop=[4, 4], out_of_bounds_policy="pad"),
    "transpose": lambda lib, x: lib.transpose(x, perm=[1, 0, 2], transpose_layout=False),
    "square": lambda lib, x: x * x,
    "compare": lambda lib, x: lib.cast(x > 50, dtype=types.UINT8),
}


@given(
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=6),
    heights=st.lists(st.integers(4, 9), min_size=1, max_size=5),
    held=st.lists(st.booleans(), min_size=6, max_size=6),
    looks=st.lists(st.booleans(), min_size=6, max_size=6),
    mode=st.sampled_from(list(ndd.EvalMode)),
)
def test_a_chain_is_what_a_pipeline_gives(names, heights, held, looks, mode):
    draw = np.random.default_rng(len(names))
    samples = [draw.integers(0, 256, (h, 6, 3), dtype=np.uint8) for h in heights]
    want = in_pipeline(names, samples)
    kept = []
    with mode:
        x = ndd.batch(samples, layout="HWC")
        for name, hold, look in zip(names, held, looks, strict=False):
            x = STEPS[name](ndd, x)
            if hold:
                kept.append(x)
            if look:
                x.evaluate()
    assert [np.asarray(t).tobytes() for t in x.tensors] == [a.tobytes() for a in want]
    assert x.shape == [a.shape for a in want]
    for batch in kept:
        assert batch.shape  # is there


def in_pipeline(names, samples):
    pipe = Pipeline(batch_size=len(samples), num_threads=2, device_id=None)
    with pipe:
        x = fn.external_source(lambda: samples, layout="HWC")
        for name in names:
            x = STEPS[name](fn, x)
        pipe.set_outputs(x)
    pipe.build()
    (result,) = pipe.run()
    return [np.array(result.at(k)) for k in range(len(samples))]
