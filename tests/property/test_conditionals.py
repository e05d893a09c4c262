"""A definition with conditions gives the same bytes, whatever carries it out."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from tests.e2e.support import one_file_a_class


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    return one_file_a_class(tmp_path_factory.mktemp("conditionals") / "photos", 20)


def augmented(image, level):
    if level < 2 and fn.random.coin_flip(dtype=types.BOOL):
        image = fn.flip(image, horizontal=1, vertical=fn.random.coin_flip())
    elif level == 2 or not level:
        image = fn.rotate(image, angle=fn.random.uniform(range=(-20, 20)), keep_size=True)
        if fn.random.uniform(range=(0, 1)) > 0.5:
            image = fn.brightness_contrast(image, brightness=fn.random.uniform(range=(0.5, 1.5)))
    else:
        image = fn.crop(image, crop=(20, 20), out_of_bounds_policy="pad")
        image = fn.resize(image, size=(32, 32))
    return image


@pipeline_def(batch_size=7, device_id=None, enable_conditionals=True)
def conditional(photos):
    encoded, label = fn.readers.file(file_root=photos, random_shuffle=True, name="Reader")
    image = fn.resize(fn.decoders.image(encoded), size=(32, 32))
    for _ in range(2):
        image = augmented(image, fn.random.uniform(values=[0, 1, 2, 3], dtype=types.INT32))
    mean = 0.5 if label[0] % 2 else 10.0
    return fn.crop_mirror_normalize(image, mean=[1.0], dtype=types.FLOAT) - mean, label


def batches(photos, **settings):
    pipe = conditional(photos=photos, seed=11, **settings)
    found = [pipe.run() for _ in range(4)]
    return [np.asarray(b.at(i)) for out in found for b in out for i in range(len(b))]


def test_same_bytes(photos):
    expected = batches(photos, num_threads=1, fuse=False)
    assert any(not np.array_equal(a, b) for a, b in zip(expected, expected[7:], strict=False))
    for settings in ({"num_threads": 8}, {"num_threads": 1}, {"num_threads": 3, "fuse": False}):
        for one, other in zip(expected, batches(photos, **settings), strict=True):
            np.testing.assert_array_equal(one, other)


def test_goes_on_from_a_checkpoint(photos):
    settings = {"photos": photos, "seed": 11, "num_threads": 2, "enable_checkpointing": True}
    pipe = conditional(**settings)
    pipe.run()
    saved = pipe.checkpoint()
    wanted = pipe.run()
    found = conditional(**settings, checkpoint=saved).run()
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_array_equal(one.as_array(), other.as_array())
