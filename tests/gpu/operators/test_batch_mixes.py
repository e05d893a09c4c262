"""Mixes of samples of a batch on the GPU, beside the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn

_rng = np.random.default_rng(0)
IMAGES = [_rng.integers(0, 255, (20, 30, 3), np.uint8) for _ in range(4)]
LABELS = [np.int32([k]) for k in range(4)]
BOXES = [np.float32([[0.1, 0.2, 0.5, 0.6]])] * 4


def run(device: str, name: str, **args: Any) -> list[Any]:
    pipe = Pipeline(4, device_id=0, num_threads=2, seed=1)
    with pipe:
        data = fn.external_source(
            lambda: (IMAGES, LABELS, BOXES), num_outputs=3, layout=["HWC", "", ""]
        )
        images, labels, boxes = data
        if device == "gpu":
            images = images.gpu()
        mix = getattr(fn, name)
        masks = {} if name == "mixup" else {"masks": images[:, :, :1]}
        found = mix(images, labels, num_classes=5, seed=3, probability=0.8, **masks, **args)
        found += mix(images * np.float32(0.5), labels, boxes=boxes, seed=4, **args)
        there = labels.gpu() if device == "gpu" else labels
        found += mix(images, there, num_classes=5, seed=3, **args)
        pipe.set_outputs(*found)
    if device == "gpu":
        assert found[0].device == "gpu"
        assert found[1].device == "cpu"
        assert found[-1].device == "gpu"
    return [[np.asarray(out.as_cpu().at(k)) for k in range(4)] for out in pipe.run()]


@pytest.mark.parametrize(
    ("name", "args"), [("mixup", {}), ("cutmix", {}), ("mosaic", {"output_size": (26, 32)})]
)
def test_same_as_on_the_cpu(name, args):
    for ours, wanted in zip(run("gpu", name, **args), run("cpu", name, **args), strict=True):
        for a, b in zip(ours, wanted, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6, atol=1 if a.dtype == np.uint8 else 1e-5)


def test_dynamic_mode():
    found = [
        ndd.mixup(
            ndd.batch(IMAGES, layout="HWC", device=device),
            ndd.batch(LABELS),
            num_classes=4,
            rng=ndd.random.RNG(seed=2),
        )
        for device in ("cpu", "gpu")
    ]
    assert found[1][0].device.device_type == "gpu"
    for cpu, gpu in zip(*found, strict=True):
        for a, b in zip(cpu.tensors, gpu.cpu().tensors, strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), atol=1)
