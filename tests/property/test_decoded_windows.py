"""A window of a decoded image is the same whether the decoder knows of it or not."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

import headrace
import headrace.fn as fn
import headrace.types as types


def encoded(extension: str, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    height, width = rng.integers(90, 260, 2)
    image = cv2.GaussianBlur(rng.integers(0, 256, (height, width, 3), dtype=np.uint8), (0, 0), 2)
    return np.frombuffer(cv2.imencode(extension, image)[1].tobytes(), np.uint8)


GRAPHS = {
    "crop": lambda x: fn.crop(x, crop=(64, 80), crop_pos_x=0.3, crop_pos_y=0.9),
    "truncated": lambda x: fn.crop(x, crop=(63, 31), rounding="truncate", dtype=types.FLOAT),
    "padded": lambda x: fn.crop(x, crop=(300, 33), out_of_bounds_policy="pad", fill_values=9),
    "mirrored": lambda x: fn.crop(x, crop=(300, 33), out_of_bounds_policy="reflect"),
    "slice": lambda x: fn.slice(x, rel_start=(0.1, 0.2), rel_shape=(0.5, 0.25)),
    "one channel": lambda x: fn.slice(x, start=(5, 6, 1), shape=(40, 30, 1), axes=(0, 1, 2)),
    "flip": lambda x: fn.flip(x, horizontal=1, vertical=1),
    "flip, crop": lambda x: fn.crop(fn.flip(x), crop=(50, 40), crop_pos_x=0.0),
    "crop, flip": lambda x: fn.flip(fn.crop(x, crop=(50, 40)), horizontal=0, vertical=1),
    "crop, slice, flip, crop": lambda x: fn.crop(
        fn.flip(fn.slice(fn.crop(x, crop=(80, 70)), start=(3, 4))), crop=(21, 22)
    ),
    "random": lambda x: fn.crop(
        fn.flip(x, horizontal=fn.random.coin_flip()),
        crop=(48, 48),
        crop_pos_x=fn.random.uniform(range=(0, 1)),
    ),
}


def run(graph, batch, fuse: bool) -> list[np.ndarray]:
    pipe = headrace.Pipeline(
        batch_size=len(batch), num_threads=2, device_id=None, seed=3, fuse=fuse
    )
    with pipe:
        source = fn.external_source(source=lambda: batch)
        pipe.set_outputs(graph(fn.decoders.image(source)))
    pipe.build()
    (out,) = pipe.run()
    return [np.array(out.at(i)) for i in range(len(batch))]


@pytest.mark.sweep
@pytest.mark.parametrize("extension", [".jpg", ".png"])
@pytest.mark.parametrize("name", GRAPHS)
def test_windows(name, extension):
    batch = [encoded(extension, seed) for seed in range(3)]
    fused, plain = (run(GRAPHS[name], batch, fuse) for fuse in (True, False))
    for a, b in zip(fused, plain, strict=True):
        np.testing.assert_array_equal(a, b)
