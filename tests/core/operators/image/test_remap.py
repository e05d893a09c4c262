"""`experimental.remap` against OpenCV, `jitter`, and `experimental.resize` against `resize`."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.errors import HeadraceError
from headrace.experimental import dynamic as ndd
from tests.support.run_operator import run_operator

_rng = np.random.default_rng(0)
KINDS = {
    "INTERP_NN": cv2.INTER_NEAREST,
    "INTERP_LINEAR": cv2.INTER_LINEAR,
    "INTERP_CUBIC": cv2.INTER_CUBIC,
}


def places(height, width):
    x = np.float32(_rng.random((height, width)) * (width + 4) - 2)
    return x, np.float32(_rng.random((height, width)) * (height + 4) - 2)


def test_against_opencv():
    for dtype in (np.uint8, np.int16, np.uint16, np.float32):
        for shape in ((20, 31, 3), (9, 14, 1), (1, 1, 1), (5, 7, 6)):
            image = (_rng.random(shape) * 200).astype(dtype)
            x, y = places(*shape[:2])
            for kind, flag in KINDS.items():
                wanted = np.dstack([cv2.remap(plane, x, y, flag) for plane in cv2.split(image)])
                options = {"interp": types.DALIInterpType[kind]}
                got = run_operator(
                    "experimental.remap",
                    *(image, x, y[..., np.newaxis]),
                    layout="HWC",
                    pixel_origin="center",
                    **options,
                )
                assert got.dtype == dtype
                np.testing.assert_array_equal(got, wanted.reshape(shape))
                half = np.float32(0.5)
                got = run_operator(
                    "experimental.remap", image, x + half, y + half, layout="HWC", **options
                )
                if kind != "INTERP_NN":  # halves may be rounded another way
                    far = np.abs(got.astype(np.float64) - wanted.reshape(shape))
                    assert far.max() <= (0.1 if dtype == np.float32 else 1)


def test_maps_of_frames():
    batch = [_rng.integers(0, 255, (n, 12, 10, 3), np.uint8) for n in (2, 3)]
    maps = [
        tuple(np.stack(k) for k in zip(*[places(12, 10) for _ in b], strict=True)) for b in batch
    ]
    pipe = Pipeline(batch_size=2, num_threads=2, device_id=None)
    with pipe:
        data = fn.external_source([batch], cycle=True, layout="FHWC")
        x, y = (fn.external_source([[m[k] for m in maps]], layout="FHW") for k in (0, 1))
        u, v = (fn.external_source([[m[k][0] for m in maps]], layout="HW") for k in (0, 1))
        pipe.set_outputs(fn.experimental.remap(data, x, y), fn.experimental.remap(data, u, v))
    own, same = pipe.run()
    assert own.layout() == "FHWC"
    for k, sequence in enumerate(batch):
        for f, frame in enumerate(sequence):
            for got, number in ((own, f), (same, 0)):
                x, y = (m[number] for m in maps[k])
                wanted = run_operator("experimental.remap", frame, x, y, layout="HWC")
                np.testing.assert_array_equal(got.at(k)[f], wanted)


def test_errors_of_maps():
    image = np.zeros((4, 5, 3), np.uint8)
    fits, other = np.zeros((4, 5), np.float32), np.zeros((5, 4), np.float32)
    for maps, options, words in (
        ((fits, other), {}, r"`mapy` has the shape \(5, 4\) for an image of 4 x 5"),
        ((fits[..., None].repeat(2, 2), fits), {}, r"`mapx` has the shape \(4, 5, 2\)"),
        ((fits[0], fits), {}, r"`mapx` has the shape \(5,\)"),
        ((fits, fits), {"pixel_origin": "corners"}, '"corners". It may be "corner" or "center"'),
        ((fits, fits), {"interp": types.INTERP_GAUSSIAN}, "`interp` must be .* got INTERP_GAUS"),
    ):
        with pytest.raises(HeadraceError, match=words):
            run_operator("experimental.remap", image, *maps, layout="HWC", **options)


def jittered(images, size=3, **options):
    pipe = Pipeline(batch_size=size, num_threads=2, device_id=None, seed=1)
    with pipe:
        data = fn.external_source([images], cycle=True, layout="HWC")
        pipe.set_outputs(fn.jitter(data, **options))
    return [[np.asarray(x) for x in pipe.run()[0]] for _ in range(2)]


def test_jitter():
    y, x = np.mgrid[:40, :50]
    images = [np.stack([x, y, x], -1).astype(dtype) for dtype in [np.float32] * 3]
    for degree in (0, 1, 2, 5, 8):
        first, second = jittered(images, nDegree=degree, fill_value=300.0)
        assert [np.array_equal(a, b) for a, b in zip(first, second, strict=True)] == [
            degree < 2
        ] * 3
        assert np.array_equal(first[0], first[1]) == (degree < 2)
        for image in (*first, *second):
            across, down = image[..., 0] - x, image[..., 1] - y
            np.testing.assert_array_equal(image[..., 2], image[..., 0])
            assert image.min() >= 0
            assert (image[..., 0].max(), image[..., 1].max()) <= (49, 39)
            inside = np.s_[8:-8, 8:-8]
            possible = np.arange(-(degree // 2), max(degree, 1) - degree // 2)
            for moved in (across[inside], down[inside]):
                found, counts = np.unique(moved, return_counts=True)
                np.testing.assert_array_equal(found, possible)
                assert counts.min() > 0.7 * moved.size / len(possible)
            if degree > 1:
                assert abs(np.corrcoef(across[inside].ravel(), down[inside].ravel())[0, 1]) < 0.2
    mask = [np.int32(k) for k in (1, 0, 1)]
    pipe = Pipeline(batch_size=3, num_threads=2, device_id=None, seed=1)
    with pipe:
        data = fn.external_source([images], layout="HWC")
        pipe.set_outputs(fn.jitter(data, mask=fn.external_source([mask])))
    (got,) = pipe.run()
    same = [np.array_equal(got.at(k), images[k]) for k in range(3)]
    assert same == [False, True, False]
    linear, nearest = (
        jittered(images, seed=5, interp_type=kind)[0]
        for kind in (types.INTERP_LINEAR, types.INTERP_NN)
    )
    np.testing.assert_array_equal(linear, nearest)
    for options, words in (
        ({"nDegree": -1}, "`nDegree` must be from 0 to 32767, got -1"),
        ({"interp_type": types.INTERP_CUBIC}, "`interp_type` .*INTERP_CUBIC"),
    ):
        with pytest.raises(HeadraceError, match=words):
            jittered(images, **options)


def test_dynamic_mode():
    image = _rng.integers(0, 255, (12, 10, 3), np.uint8)
    tensor = ndd.as_tensor(image, layout="HWC")
    x, y = places(12, 10)
    got = ndd.experimental.remap(tensor, x, y)
    wanted = run_operator("experimental.remap", image, x, y, layout="HWC")
    np.testing.assert_array_equal(np.asarray(got), wanted)
    moved = [np.asarray(ndd.jitter(tensor, rng=ndd.random.RNG(seed=3))) for _ in range(2)]
    np.testing.assert_array_equal(*moved)
    assert not np.array_equal(moved[0], image)
    np.testing.assert_array_equal(
        np.asarray(ndd.experimental.resize(tensor, size=[5, 7])),
        np.asarray(ndd.resize(tensor, size=[5, 7])),
    )


def test_the_other_resize():
    images = [_rng.integers(0, 255, (n, 12, 3), np.uint8) for n in (20, 9)]
    pipe = Pipeline(batch_size=2, num_threads=2, device_id=None)
    options = {"resize_shorter": 7, "interp_type": types.INTERP_CUBIC, "save_attrs": True}
    with pipe:
        data = fn.external_source([images], layout="HWC")
        outputs = [f(data, **options) for f in (fn.experimental.resize, fn.resize)]
        cropped = [
            fn.crop(f(data, size=[9, 8]), crop=[4, 5]) for f in (fn.experimental.resize, fn.resize)
        ]
        pipe.set_outputs(*outputs[0], *outputs[1], *cropped)
    ours, attributes, theirs, others, part, same = pipe.run()
    for a, b in ((ours, theirs), (attributes, others), (part, same)):
        for k in range(2):
            np.testing.assert_array_equal(a.at(k), b.at(k))
