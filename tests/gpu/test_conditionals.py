"""Conditions in pipelines whose branches are on the GPU, beside those on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types


def images():
    return [
        np.full((4, 6, 3), k, np.uint8) + np.arange(6, dtype=np.uint8)[:, None] for k in range(5)
    ]


@pipeline_def(batch_size=5, num_threads=2, enable_conditionals=True, seed=5)
def conditional(device):
    image = fn.external_source(images, layout="HWC")
    number = fn.external_source(lambda: [np.int32(k) for k in range(5)])
    if device == "gpu" and number >= 0:
        image = image.gpu()
    elif device == "gpu":
        image = image.gpu() + types.Constant(1).uint8()
    if number > 2:
        image = fn.flip(image)
    elif number == 1:
        image = image + types.Constant(100).uint8()
        if fn.random.coin_flip(dtype=types.BOOL) or number == 1:
            image = fn.flip(image, horizontal=0, vertical=1)
    return image, 1 if number > 3 else 2


def test_as_on_the_cpu():
    found = []
    for device, device_id in (("cpu", None), ("gpu", 0)):
        outputs = conditional(device, device_id=device_id).run()
        found.append([np.asarray(s) for o in outputs for s in o.as_cpu()])
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
    assert [int(s) for s in found[0][5:]] == [2, 2, 2, 2, 1]


@pytest.mark.parametrize("what", ["if", "and", "not"])
def test_conditions_are_on_the_cpu(what):
    def define():
        x = fn.external_source(lambda: [np.bool_(True)]).gpu()
        if what == "if":
            return 1 if x else 2
        return (x and True) if what == "and" else not x

    with pytest.raises(errors.MisusedArgumentError, match=r"test_conditionals.*\.cpu\(\)"):
        pipeline_def(define, enable_conditionals=True)(batch_size=1, num_threads=1, device_id=0)
