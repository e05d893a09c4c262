"""Automatic augmentation on the GPU gives what it gives on the CPU, but for rounding."""

from __future__ import annotations

import numpy as np

from headrace import Pipeline, fn
from headrace.auto_aug import auto_augment, rand_augment

IMAGES = [
    np.random.default_rng(k).integers(0, 256, (12 + k, 15, 3)).astype(np.uint8) for k in range(12)
]


def run(device_id, graph):
    pipe = Pipeline(batch_size=len(IMAGES), num_threads=1, device_id=device_id, seed=3)
    with pipe:
        data = fn.external_source(lambda: IMAGES, layout="HWC")
        pipe.set_outputs(graph(data if device_id is None else data.gpu()))
    return [np.asarray(each) for each in pipe.run()[0].as_cpu()]


def test_policies():
    for graph in (
        lambda x: rand_augment.rand_augment(x, n=1, m=9, seed=4),
        lambda x: auto_augment.auto_augment(x, "reduced_image_net", seed=4),
    ):
        for got, wanted in zip(run(0, graph), run(None, graph), strict=True):
            difference = np.abs(got.astype(int) - wanted)
            assert np.mean(difference > 1) < 0.02


def test_efficientnet():
    def graph(images):
        images = fn.flip(images, horizontal=fn.random.coin_flip())
        images = auto_augment.auto_augment(images, "reduced_image_net", seed=4)
        return fn.crop_mirror_normalize(
            images, output_layout="CHW", mean=[99.0] * 3, std=[50.0] * 3
        )

    for got, wanted in zip(run(0, graph), run(None, graph), strict=True):
        assert got.shape == wanted.shape
        assert np.mean(np.abs(got - wanted) > 1 / 40) < 0.02
