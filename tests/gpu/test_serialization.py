"""Serialized pipelines with work for a GPU."""

from __future__ import annotations

import numpy as np

from headrace import fn, pipeline_def, types
from headrace.pipeline import Pipeline


def test_the_same_bytes():
    @pipeline_def(batch_size=2, num_threads=2, device_id=0, seed=4, prefetch_queue_depth=1)
    def p():
        x = fn.external_source(name="x", layout="HWC").gpu()
        shift = types.Constant(np.uint8([1, 2, 3]), device="gpu")
        flipped = fn.flip(x, horizontal=fn.random.coin_flip())
        return flipped + shift, fn.cast(x[0, 0, 0].cpu(), dtype=types.INT32), flipped.cpu()

    original = p()
    data = original.serialize()
    loaded = Pipeline.deserialize(data)
    assert loaded.device_id == 0
    assert loaded.serialize() == data
    batch = [np.arange(36, dtype=np.uint8).reshape(3, 4, 3) + k for k in range(2)]
    for a, b in zip(original.run(x=batch), loaded.run(x=batch), strict=True):
        assert type(a) is type(b)
        for one, other in zip(a.as_cpu(), b.as_cpu(), strict=True):
            np.testing.assert_array_equal(np.array(one), np.array(other))
