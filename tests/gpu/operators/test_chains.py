"""Operators that cut, mirror and turn data, one after the other: nothing moves before the end."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from tests.support.gpu.runtime import EmulatedRuntime

_rng = np.random.default_rng(0)
IMAGES = [_rng.integers(0, 256, s, np.uint8) for s in [(40, 61, 3), (33, 47, 3), (50, 40, 3)]]


def outputs(define, device, *, fuse=True):
    """The samples of one batch of what `define` makes of the images."""
    pipe = Pipeline(
        batch_size=len(IMAGES),
        num_threads=1,
        device_id=None if device == "cpu" else 0,
        fuse=fuse,
        prefetch_queue_depth=1,
    )
    with pipe:
        data = fn.external_source(source=lambda: IMAGES, layout="HWC", batch=True)
        pipe.set_outputs(define(data if device == "cpu" else data.gpu()))
    (batch,) = pipe.run()
    host = batch if device == "cpu" else batch.as_cpu()
    return [np.array(host.at(i)) for i in range(len(host))], batch.layout()


def check(define, *, exact=True):
    expected, layout = outputs(define, "cpu")
    for fuse in (True, False):
        found, found_layout = outputs(define, "gpu", fuse=fuse)
        assert found_layout == layout
        for got, wanted in zip(found, expected, strict=True):
            if exact:
                np.testing.assert_array_equal(got, wanted)
            else:
                np.testing.assert_allclose(got.astype(float), wanted.astype(float), atol=1)


def per_sample(*values, dtype=np.float32):
    rows = [np.asarray(v, dtype) for v in values]
    return fn.external_source(source=lambda: rows, batch=True)


def crop_flip_transpose(x):
    x = fn.crop(x, crop=(20, 30), crop_pos_x=per_sample(0.1, 0.5, 1))
    x = fn.flip(x, horizontal=per_sample(1, 0, 1, dtype=np.int32))
    return fn.transpose(x, perm=[2, 0, 1])


def test_views_of_views():
    check(crop_flip_transpose)


def test_one_launch(gpu_runtime):
    outputs(crop_flip_transpose, "gpu")
    if isinstance(gpu_runtime, EmulatedRuntime):
        # The first is the upload.
        assert [n.split("<")[0] for n in gpu_runtime.launches] == ["copy_rows", "copy_tiles"]


def test_indexing():
    check(lambda x: x[5:30:2, ::-1, 1])
    check(lambda x: x[per_sample(1, -2, 3, dtype=np.int32), :, 0:2])
    check(lambda x: fn.squeeze(fn.expand_dims(x[3:, 4:20], axes=[0]), axes=[0]))


def test_padding_behind_views():
    check(
        lambda x: fn.crop(
            fn.flip(fn.slice(x, start=[3], end=[30], axes=[0])),
            crop=(40, 50),
            out_of_bounds_policy="pad",
            fill_values=[1, 2, 3],
            dtype=types.FLOAT,
        )
    )


def test_arithmetic_behind_views():
    check(lambda x: fn.flip(fn.crop(x, crop=(20, 30))) * 2 + 1)
    check(lambda x: fn.transpose(fn.cast(fn.crop(x, crop=(9, 7)), dtype=types.FLOAT)))


def test_reshape_behind_views():
    check(lambda x: fn.reshape(fn.transpose(x, perm=[1, 0, 2]), shape=[-1]))
    check(lambda x: fn.reinterpret(fn.crop(x, crop=(8, 8)), dtype=types.INT32, shape=[-1]))


BEHIND = {
    "crop": lambda x: fn.crop(x, crop=(12, 9), crop_pos_x=0.2),
    "flip": lambda x: fn.flip(x, vertical=1),
    "padded crop": lambda x: fn.crop(x, crop=(30, 12), out_of_bounds_policy="pad", fill_values=[7]),
    "reflected crop": lambda x: fn.crop(x, crop=(30, 12), out_of_bounds_policy="reflect"),
    "converted crop": lambda x: fn.crop(x, crop=(12, 9), dtype=types.FLOAT),
    "channel": lambda x: fn.slice(x, start=[1], end=[2], axes=[2]),
    "outside": lambda x: fn.slice(x, start=[40], end=[60], axes=[0], out_of_bounds_policy="pad"),
    "turned": lambda x: fn.transpose(fn.flip(fn.crop(x, crop=(5, 6))), perm=[2, 0, 1]),
    "index": lambda x: x[2:9],
}


@pytest.mark.parametrize("behind", BEHIND)
def test_behind_resize(behind):
    check(lambda x: BEHIND[behind](fn.resize(x, resize_x=24, resize_y=20)), exact=False)


def test_a_crop_of_resized_images_resizes_no_more_than_it_shows(gpu_runtime):
    """Fused and by itself, a pixel has the same value to the last bit."""
    whole, _ = outputs(lambda x: fn.resize(x, resize_x=24, resize_y=20), "gpu")
    part, _ = outputs(
        lambda x: fn.flip(fn.crop(fn.resize(x, resize_x=24, resize_y=20), crop=(8, 10))), "gpu"
    )
    for image, shown in zip(whole, part, strict=True):
        np.testing.assert_array_equal(shown, image[6:14, 7:17][:, ::-1])


def test_anchors_on_the_gpu_come_to_the_host():
    def define(x):
        anchor, shape = per_sample(*[(0.1, 0.2)] * 3), per_sample(*[(0.5, 0.5)] * 3)
        if x.device == "gpu":
            anchor = anchor.gpu()
        return fn.slice(x, anchor, shape)

    check(define)
