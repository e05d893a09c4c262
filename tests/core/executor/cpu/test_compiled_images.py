"""Small images that go through all steps in one compiled loop: the bits, and the errors, of the
other way.
"""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.errors import HeadraceError
from tests.support.chunks import set_chunks
from tests.support.compiled import assert_equal_bits, without

_RANDOM = np.random.default_rng(3)
_EXTENTS = [(32, 32), (28, 40), (17, 33), (64, 20), (1, 70), (30, 30), (21, 19), (90, 45)]
MEAN, STD = [123.7, 116.3, 103.5], [58.4, 57.1, 57.4]


def images(dtype=np.uint8, channels=3, extents=_EXTENTS):
    return [_RANDOM.integers(0, 256, (*extent, channels)).astype(dtype) for extent in extents]


def outputs_of(define, samples, layout="HWC", batches=2, **settings):
    """Samples of all outputs of a pipeline that is fed the same samples again and again."""
    pipe = Pipeline(len(samples), 2, None, seed=5, **settings)
    with pipe:
        data = fn.external_source(source=lambda: samples, layout=layout)
        made = define(data)
        pipe.set_outputs(*(made if isinstance(made, tuple) else (made,)))
    try:
        found = [pipe.run() for _ in range(batches)]
        layouts = [output.layout() for output in found[0]]
        return layouts, [
            [np.array(output.at(k)) for output in outputs for k in range(len(samples))]
            for outputs in found
        ]
    finally:
        pipe._shutdown()  # no chunk of it is to be counted by the next one


def _normalised(data, **settings):
    settings = {"mean": MEAN, "std": STD, **settings}
    return fn.crop_mirror_normalize(data, **settings)


def _at_random():
    return {
        "crop_pos_x": fn.random.uniform(range=[0.0, 1.0]),
        "crop_pos_y": fn.random.uniform(range=[0.0, 1.0]),
    }


def _crop(data):
    whole = fn.crop(data, crop=(1, 19), **_at_random())
    return whole, fn.crop(data, crop=(1, 5), rounding="truncate", crop_pos_x=0.3), fn.crop(data)


def _padded_crop(data):
    return fn.crop(data, crop=(50, 41), out_of_bounds_policy="pad", fill_values=7, **_at_random())


def _slices(data):
    start = fn.cast(fn.random.uniform(range=[-9.0, 30.0], shape=2), dtype=types.INT32)
    rest = {"axes": (0, 1), "out_of_bounds_policy": "pad"}
    fractions = fn.random.uniform(range=[0.0, 0.4])
    return (
        fn.slice(data, start=start, shape=[20, 31], fill_values=3, **rest),
        fn.slice(data, rel_start=fractions, rel_end=[0.5, 0.9], axes=(1, 0)),
        fn.slice(data, start=-3, end=[200], axes=(1,), out_of_bounds_policy="pad"),
        fn.slice(data, start=0, end=0, axes=(0,)),
    )


def _flips(data):
    coin = fn.random.coin_flip()
    wide = fn.flip(data, horizontal=coin)
    return (
        wide,
        fn.flip(wide, horizontal=0, vertical=fn.random.coin_flip(dtype=types.UINT8)),
        fn.flip(fn.crop(data, crop=(1, 16)), horizontal=1, vertical=coin),
    )


def _chain(data):
    window = fn.flip(fn.crop(data, crop=(1, 17), **_at_random()), horizontal=fn.random.coin_flip())
    return _normalised(window, mirror=fn.random.coin_flip()), window


def _normalisations(data):
    coin = fn.random.coin_flip()
    return (
        _normalised(data),
        _normalised(data, mirror=coin, crop=(1, 18), output_layout="HWC", **_at_random()),
        _normalised(data, mirror=1, dtype=types.FLOAT16),
        _normalised(data, dtype=types.UINT8, mean=10.0, std=2.0, shift=3.0),
        _normalised(data, dtype=types.INT8, mean=100.0, std=MEAN, mirror=coin),
    )


def _drawn(low, high, **settings):
    return fn.random.uniform(range=[low, high], **settings)


def _adjustments(data):
    mirrored = fn.flip(data, horizontal=fn.random.coin_flip())
    return (
        fn.brightness(data, brightness=_drawn(0.5, 1.5)),
        fn.brightness(data, brightness=1.0),
        fn.contrast(mirrored, contrast=_drawn(0.5, 1.5), dtype=types.FLOAT),
        fn.brightness_contrast(data, brightness_shift=_drawn(-0.2, 0.2), contrast=1.3),
        _normalised(fn.brightness(mirrored, brightness=_drawn(0.5, 1.5)), mirror=1),
    )


def _colors(data):
    twisted = fn.color_twist(
        data, hue=_drawn(-40, 40), saturation=_drawn(0.3, 2), brightness=_drawn(0.5, 1.5)
    )
    return (
        twisted,
        fn.hsv(fn.flip(data), saturation=1.5, dtype=types.FLOAT),
        _normalised(fn.saturation(twisted, saturation=_drawn(0.0, 1.0))),
    )


def _canvases(data):
    wide = fn.paste(
        fn.flip(data), ratio=_drawn(1, 2), paste_x=_drawn(0, 1), fill_value=(10, 20, 300)
    )
    return wide, _normalised(fn.crop(wide, crop=(1, 20), **_at_random()))


def _casts(data):
    real = fn.cast(data, dtype=types.FLOAT)
    return (
        real,
        fn.cast(fn.brightness(real, brightness=_drawn(-1.5, 1.5)), dtype=types.INT8),
        fn.cast(fn.brightness(data, brightness=9.5, dtype=types.FLOAT), dtype=types.UINT8),
        fn.cast(fn.crop(data, crop=(1, 9)), dtype=types.INT32),
        fn.cast(fn.flip(data), dtype=types.UINT8),
        fn.cast(_drawn(0, 99), dtype=types.INT64),
    )


def _labelled(data):
    """Numbers of samples beside them that have no instructions."""
    labels = fn.external_source(source=lambda: [np.int32([k]) for k in range(len(_EXTENTS))])
    return _normalised(data), fn.cast(labels, dtype=types.INT64), fn.one_hot(labels, num_classes=9)


def _planes(data):
    planes = fn.transpose(fn.crop(data, crop=(1, 9)), perm=[2, 0, 1])
    return planes, fn.copy(fn.transpose(data)), fn.flip(planes, vertical=1), fn.copy(data)


def _expressions(data):
    louder = data / 255.0 - _drawn(0.0, 1.0)
    return louder, 2.0 * fn.flip(data) + fn.transpose(louder, perm=[0, 1, 2])


def _resized(data):
    window = {"crop": (18, 20), **_at_random()}
    coin = fn.random.coin_flip()
    wide = fn.resize(data, size=(24, 31), interp_type=types.INTERP_CUBIC)
    real = fn.resize(data, size=(40, 40), dtype=types.FLOAT, antialias=False)
    return (
        fn.resize(data, resize_x=17, interp_type=types.INTERP_NN),
        fn.resize(data, size=(9, 50), mode="not_larger", interp_type=types.INTERP_LANCZOS3),
        _normalised(wide, mirror=coin, **window),
        _normalised(real, dtype=types.UINT8, mirror=coin, output_layout="HWC", **window),
        _normalised(fn.resize(data, size=[-30, 25]), dtype=types.FLOAT16, mirror=1),
        fn.crop(fn.resize(fn.flip(data), size=(30, 30)), crop=(10, 12), **_at_random()),
        fn.resize(
            *(data,),
            size=fn.random.uniform(range=[5.0, 60.0], shape=2),
            roi_start=[0.9, 0.1],
            roi_end=[0.2, 0.8],
            roi_relative=True,
            interp_type=types.INTERP_GAUSSIAN,
        ),
    )


def _resized_at_random(data):
    windows = fn.random_resized_crop(data, size=(19, 23), random_area=[0.2, 1.0])
    plain = fn.random_resized_crop(data, size=16, interp_type=types.INTERP_NN, seed=3)
    return (
        _normalised(windows, mirror=fn.random.coin_flip()),
        plain,
        fn.brightness(fn.random_resized_crop(data, size=[8, 9]), brightness=_drawn(0.5, 1.5)),
    )


CHAINS = [
    *(_resized, _resized_at_random),
    *(_planes, _expressions),
    *(_crop, _padded_crop, _slices, _flips, _chain, _normalisations),
    *(_adjustments, _colors, _canvases, _casts, _labelled),
]


@pytest.mark.sweep
@pytest.mark.parametrize("define", CHAINS)
@pytest.mark.parametrize("chunks", ["1:1", "4:2", "8:8"])
def test_bits_are_those_of_the_other_way(define, chunks, carried, monkeypatch, tmp_path):
    set_chunks(chunks, monkeypatch.setattr)
    samples = images()
    layouts, found = outputs_of(define, samples)
    assert carried
    assert all(carried)
    profiled, again = outputs_of(define, samples, profile=str(tmp_path / "profile.json"))
    assert profiled == layouts
    assert_equal_bits(found, again)
    assert all(carried)
    without(monkeypatch)
    expected_layouts, expected = outputs_of(define, samples)
    assert layouts == expected_layouts
    assert_equal_bits(found, expected)
    _, plain = outputs_of(define, samples, fuse=False)
    assert_equal_bits(found, plain)


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.float32])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_types_and_channels(dtype, channels, carried, monkeypatch):
    def define(data):
        window = fn.crop(data, crop=(1, 18), **_at_random())
        made = _normalised(window, mean=MEAN[0], std=STD[0], mirror=fn.random.coin_flip())
        return made, fn.slice(data, start=-2, shape=21, axes=(1,), out_of_bounds_policy="pad")

    samples = images(dtype, channels)
    _, found = outputs_of(define, samples)
    assert all(carried)
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(define, samples)[1])


@pytest.mark.parametrize(
    ("layout", "shape"), [("FHWC", (2, 9, 11, 3)), ("DHWC", (3, 6, 8, 1)), ("CHW", (3, 12, 10))]
)
def test_other_layouts(layout, shape, carried, monkeypatch):
    """Frames are cut alike; volumes have a third axis."""
    samples = [_RANDOM.integers(0, 256, shape, np.uint8) for _ in range(3)]

    def define(data):
        window = fn.crop(data, crop_w=5, crop_h=4, **_at_random())
        mirrored = fn.flip(window, vertical=fn.random.coin_flip())
        return mirrored, fn.slice(
            data,
            start=[1, -2],
            shape=[3, 9],
            axis_names="HW",
            out_of_bounds_policy="pad",
            fill_values=1,
        )

    _, found = outputs_of(define, samples, layout)
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(define, samples, layout)[1])


BAD = {
    "an image without pixels": lambda data: fn.random_resized_crop(
        fn.slice(data, start=0, end=0, axes=(0,)), size=(4, 4)
    ),
    "a size that is none": lambda data: fn.resize(
        data, resize_x=fn.random.uniform(range=[1e10, 2e10])
    ),
    "a window leaves a resized image": lambda data: _normalised(
        fn.resize(data, size=(20, 20)), crop=(21, 5)
    ),
    "a window leaves an image": lambda data: _normalised(fn.crop(data, crop=(20, 18))),
    "a position is none": lambda data: fn.crop(
        data, crop=(1, 3), crop_pos_x=fn.random.uniform(range=[1.5, 2.0])
    ),
    "channels do not fit": lambda data: _normalised(data, mean=[1.0, 2.0], std=[1.0, 2.0]),
    "a window has no end": lambda data: fn.slice(data, start=9, end=3, axes=[0]),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_those_of_the_other_way(case, carried, monkeypatch):
    set_chunks("8:8", monkeypatch.setattr)
    samples = images()
    with pytest.raises(HeadraceError) as error:
        outputs_of(BAD[case], samples)
    assert not any(carried)
    without(monkeypatch)
    with pytest.raises(type(error.value)) as expected:
        outputs_of(BAD[case], samples)
    first, second = (str(each.value).splitlines() for each in (error, expected))
    assert first[0] == second[0]
    assert [line for line in first if "sample" in line] == [x for x in second if "sample" in x]


def test_a_window_beyond_an_image_is_replaced_alone(carried, monkeypatch):
    set_chunks("8:8", monkeypatch.setattr)
    samples = images()
    define = BAD["a window leaves an image"]
    _, found = outputs_of(define, samples, on_bad_sample="replace")
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(define, samples, on_bad_sample="replace")[1])


UNKNOWN = {
    "resized images that are mirrored": lambda data: fn.resize_crop_mirror(
        data, size=(30, 25), crop=(20, 21), mirror=1
    ),
    "extents beside resized images": lambda data: tuple(
        fn.resize(data, size=(9, 9), save_attrs=True)
    ),
    "extents by sample": lambda data: fn.crop(
        data, crop_h=1, crop_w=fn.random.uniform(range=[3.0, 9.0])
    ),
    "channels that are added": lambda data: _normalised(data, pad_output=True),
    "moments by sample": lambda data: _normalised(
        data, mean=fn.random.uniform(range=[1.0, 2.0], shape=3)
    ),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_programs_without_instructions(case, carried, monkeypatch):
    samples = images()
    _, found = outputs_of(UNKNOWN[case], samples)
    assert not carried
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(UNKNOWN[case], samples)[1])


def test_images_of_many_bytes_are_resized_the_other_way(carried, monkeypatch):
    """Their taps are remembered, and threads share the work of one."""
    extents = [(200, 150), (160, 170)]
    samples = images(extents=extents)
    _, found = outputs_of(_resized_at_random, samples)
    assert not any(carried)
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(_resized_at_random, samples)[1])


@pytest.mark.parametrize(
    ("channels", "dtype"), [(1, np.uint8), (4, np.uint8), (5, np.uint8), (3, np.float32)]
)
def test_channels_of_resized_images(channels, dtype, carried, monkeypatch):
    set_chunks("8:8", monkeypatch.setattr)
    samples = images(dtype, channels)

    def define(data):
        resized = fn.resize(data, size=(20, 21))
        return resized, _normalised(fn.random_resized_crop(data, size=9), mean=3.0, std=2.0)

    _, found = outputs_of(define, samples)
    assert any(carried) == (dtype == np.uint8 and channels < 5)
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(define, samples)[1])


def test_windows_whose_edges_are_repeated_are_left(carried, monkeypatch):
    set_chunks("8:8", monkeypatch.setattr)
    samples = images()

    def define(data):
        return fn.crop(data, crop=(50, 50), out_of_bounds_policy="edge")

    _, found = outputs_of(define, samples)
    assert not any(carried)
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(define, samples)[1])


def test_samples_with_gaps():
    whole = _RANDOM.integers(0, 256, (4, 40, 40, 3), np.uint8)
    samples = [each[::2, 3:30] for each in whole]
    _, found = outputs_of(lambda data: fn.crop(data, crop=(9, 9)), samples)
    np.testing.assert_array_equal(found[0][0], samples[0][6:15, 9:18])


def _encoded(kinds, channels=3):
    found = []
    for k, kind in enumerate(kinds):
        image = images(extents=[(20 + 7 * k, 60 - 5 * k)], channels=channels)[0]
        good, data = cv2.imencode(kind, image)
        assert good
        found.append(data.reshape(-1))
    return found


def _decoded(data):
    pixels = fn.decoders.image(data)
    return _normalised(pixels, mirror=fn.random.coin_flip()), fn.flip(pixels, horizontal=1)


DECODED = {
    "one reader": lambda data: _normalised(fn.decoders.image(data), crop=(18, 20), **_at_random()),
    "several readers": _decoded,
    "grey": lambda data: _normalised(
        fn.decoders.image(data, output_type=types.GRAY), mean=3.0, std=2.0
    ),
    "other colours": lambda data: _normalised(fn.decoders.image(data, output_type=types.YCbCr)),
    "another type": lambda data: _normalised(fn.decoders.image(data, dtype=types.FLOAT)),
    "its own window": lambda data: _normalised(fn.decoders.image_crop(data, crop=(17, 19))),
    "a random window": lambda data: _normalised(
        fn.decoders.image_random_crop(data, random_area=[0.3, 0.9])
    ),
}


@pytest.mark.parametrize("case", DECODED)
def test_small_files(case, carried, monkeypatch):
    set_chunks("8:8", monkeypatch.setattr)
    files = _encoded([".jpg", ".png", ".jpg", ".bmp", ".webp", ".jpg"])
    layouts, found = outputs_of(DECODED[case], files, None)
    assert carried
    assert all(carried)
    without(monkeypatch)
    expected_layouts, expected = outputs_of(DECODED[case], files, None)
    assert layouts == expected_layouts
    assert_equal_bits(found, expected)


@pytest.mark.parametrize("damage", ["cut off", "none", "no end"])
def test_damaged_small_files(damage, carried, monkeypatch):
    """The bad sample is told, and replaced, as it is alone."""
    set_chunks("8:8", monkeypatch.setattr)
    files = _encoded([".jpg", ".png", ".jpg", ".jpg", ".jpg"])
    wrong = {"cut off": files[2][:-200], "none": np.zeros(99, "u1"), "no end": files[2][:-2]}
    files[2] = wrong[damage]
    define = DECODED["one reader"]
    with pytest.raises(HeadraceError, match=r"sample 2") as error:
        outputs_of(define, files, None)
    _, found = outputs_of(define, files, None, on_bad_sample="replace")
    assert not any(carried)
    without(monkeypatch)
    with pytest.raises(type(error.value)) as expected:
        outputs_of(define, files, None)
    assert str(error.value).splitlines()[0] == str(expected.value).splitlines()[0]
    assert_equal_bits(found, outputs_of(define, files, None, on_bad_sample="replace")[1])


@pytest.mark.parametrize("damage", ["cut off", "none", "no end", "noise"])
@pytest.mark.parametrize("case", ["its own window", "a random window"])
def test_windows_of_damaged_small_files(case, damage, carried, monkeypatch):
    """A window may be whole where its file is not."""
    set_chunks("8:8", monkeypatch.setattr)
    files = _encoded([".jpg"] * 5)
    noise = files[2].copy()
    noise[-90:-60] = 77
    wrong = {"cut off": files[2][:-200], "none": np.zeros(99, "u1"), "no end": files[2][:-2]}
    files[2] = {**wrong, "noise": noise}[damage]
    _, found = outputs_of(DECODED[case], files, None, on_bad_sample="replace")
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(DECODED[case], files, None, on_bad_sample="replace")[1])


def test_photographs_are_left(carried, monkeypatch):
    set_chunks("8:8", monkeypatch.setattr)
    files = [
        cv2.imencode(".jpg", image)[1].reshape(-1) for image in images(extents=[(300, 200)] * 5)
    ]
    _, found = outputs_of(DECODED["one reader"], files, None)
    assert not any(carried)
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(DECODED["one reader"], files, None)[1])
