"""Debug mode on the GPU: the same batches as without it, also those of branches."""

from __future__ import annotations

import numpy as np

from headrace import fn, types
from headrace.pipeline.experimental import pipeline_def


def images():
    rng = np.random.default_rng(3)
    return [rng.integers(0, 255, (4, 3 + k, 3), np.uint8) for k in range(3)]


def test_the_same_batches():
    looked = []

    def p():
        x = fn.external_source(images, layout="HWC")
        label = fn.random.coin_flip(dtype=types.BOOL)
        on_gpu = x.gpu()
        moved = fn.external_source(images, layout="HWC", device="gpu")
        if label:
            on_gpu = fn.flip(on_gpu, vertical=1)
            looked.append(on_gpu)
        back = fn.copy(on_gpu).cpu()
        return on_gpu, fn.flip(back), moved, fn.cast(on_gpu[0, 0, 0].cpu(), dtype=types.INT32) + 1

    settings = {"batch_size": 3, "num_threads": 2, "device_id": 0, "seed": 2}
    made = pipeline_def(p, enable_conditionals=True, **settings)
    normal, debug = made(), made(debug=True)
    for _ in range(3):
        one, other = normal.run(), debug.run()
        for a, b in zip(one, other, strict=True):
            assert type(a) is type(b)
            for x, y in zip(a.as_cpu(), b.as_cpu(), strict=True):
                np.testing.assert_array_equal(np.array(x), np.array(y))
    debug._shutdown()
