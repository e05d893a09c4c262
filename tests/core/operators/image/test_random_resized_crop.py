"""`random_resized_crop`: its windows and its randomness; the rest is that of `resize`."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.plan.random_crop import random_windows
from tests.support.run_operator import draw_seed, run_operator


def picture(*shape):
    return np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)


def test_it_is_resize_of_the_chosen_window():
    data = picture(50, 70, 3)
    out = run_operator("random_resized_crop", data, layout="HWC", size=(20, 24))
    ranges = (0.08, 1.0), (3 / 4, 4 / 3)
    windows = random_windows(np.array([[50, 70]]), *ranges, 10, draw_seed(0), 0, [0])
    y, x, h, w = windows[0].tolist()
    want = run_operator(
        "resize", data, layout="HWC", size=(20, 24), roi_start=(y, x), roi_end=(y + h, x + w)
    )
    np.testing.assert_array_equal(out, want)


@pytest.mark.parametrize("layout", ["CHW", "FHWC", "FCHW", "CFHW"])
def test_every_frame_gets_the_same_window(layout):
    frame = picture(30, 40, 3)
    extended = np.broadcast_to(frame, (4, 30, 40, 3)) if "F" in layout else frame[None]
    order = [
        "FHWC".index(axis) for axis in layout.replace("CHW", "FCHW" if "F" not in layout else "CHW")
    ]
    data = np.ascontiguousarray(extended.transpose(order))
    if "F" not in layout:
        data = data[0]
    out = run_operator("random_resized_crop", data, layout=layout, size=16)
    alone = run_operator("random_resized_crop", frame, layout="HWC", size=16)
    if "F" not in layout:
        out = out[None]
    for got in out.transpose(np.argsort(order)):
        np.testing.assert_array_equal(got, alone)


def test_seeds():
    data = [picture(30, 40, 3)] * 4

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def pipe():
        x = fn.external_source(source=lambda: data, layout="HWC")
        return (
            fn.random_resized_crop(x, size=8, seed=5),
            fn.random_resized_crop(x, size=8, seed=5),
            fn.random_resized_crop(x, size=8),
        )

    def run(seed):
        p = pipe(seed=seed)
        return [[np.array(o.as_array()) for o in p.run()] for _ in range(2)]

    first, again, other = run(1), run(1), run(2)
    for batch, same, another in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(batch, same)
        np.testing.assert_array_equal(batch[0], batch[1])
        np.testing.assert_array_equal(batch[0], another[0])
        assert (batch[2] != another[2]).any()
        assert (batch[0][0] != batch[0][1]).any()
    assert (first[0][0] != first[1][0]).any()


def test_types():
    out = run_operator(
        "random_resized_crop", picture(9, 9, 1), layout="HWC", size=5, dtype=types.FLOAT
    )
    assert out.dtype == np.float32


@pytest.mark.parametrize(
    ("kwargs", "match"),
    [
        ({"size": (0, 5)}, "size"),
        ({"size": (1, 2, 3)}, "size"),
        ({"size": 5, "random_area": (0.9, 0.1)}, "random_area"),
        ({"size": 5, "random_aspect_ratio": (0.0, 1.0)}, "random_aspect_ratio"),
    ],
)
def test_wrong_arguments(kwargs, match):
    with pytest.raises(ArgumentValueError, match=match):
        run_operator("random_resized_crop", picture(9, 9, 3), layout="HWC", **kwargs)


def test_empty_images():
    with pytest.raises(ShapeError, match="0x9"):
        run_operator("random_resized_crop", np.empty((0, 9, 3), np.uint8), layout="HWC", size=5)


def test_percents_are_no_fractions():
    with pytest.raises(ArgumentValueError, match=r"`random_area` is .*fractions"):
        run_operator(
            "random_resized_crop", picture(9, 9, 3), layout="HWC", size=4, random_area=[8, 9]
        )
