"""`rotate`, `gaussian_blur` and `normalize` in a pipeline: random arguments, sequences, batches."""

from __future__ import annotations

import numpy as np

from headrace import Pipeline, fn

_random = np.random.default_rng(0)
SEQUENCES = [(_random.random((n, 20, 30, 3)) * 255).astype(np.uint8) for n in (2, 3, 1, 4)]
ANGLES = [np.linspace(0, 90, len(s), dtype=np.float32) for s in SEQUENCES]
IMAGES = [(_random.random((20 + i, 30, 3)) * 255).astype(np.uint8) for i in range(4)]


def _outputs(device):
    pipe = Pipeline(batch_size=4, num_threads=2, device_id=0 if device == "gpu" else None, seed=1)
    with pipe:
        frames = fn.external_source(source=lambda: SEQUENCES, batch=True, layout="FHWC")
        angles = fn.external_source(source=lambda: ANGLES, batch=True, layout="F")
        images = fn.external_source(source=lambda: IMAGES, batch=True, layout="HWC")
        if device == "gpu":
            frames, images = frames.gpu(), images.gpu()
        blurred = fn.gaussian_blur(images, sigma=fn.random.uniform(range=(0.5, 2.0)))
        pipe.set_outputs(
            fn.rotate(frames, angle=angles, fill_value=0),
            fn.rotate(blurred, angle=fn.random.uniform(range=(-30, 30))),
            fn.gaussian_blur(frames, sigma=1.5),
            fn.normalize(blurred, axis_names="HW"),
            fn.normalize(images, axis_names="HW", batch=True),
            fn.normalize(images, mean=fn.random.uniform(range=(1.0, 2.0)), stddev=3.0),
        )
    pipe.build()
    pipe.run()
    outputs = pipe.run()
    return [out.as_cpu() if device == "gpu" else out for out in outputs]


def test_the_gpu_gives_what_the_cpu_gives():
    for on_gpu, on_cpu in zip(_outputs("gpu"), _outputs("cpu"), strict=True):
        for got, expected in zip(map(np.asarray, on_gpu), map(np.asarray, on_cpu), strict=True):
            assert got.dtype == expected.dtype
            tolerance = 1 if got.dtype == np.uint8 else 1e-4
            np.testing.assert_allclose(
                got.astype(float), expected.astype(float), rtol=0, atol=tolerance
            )
