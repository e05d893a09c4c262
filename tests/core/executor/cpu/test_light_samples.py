"""Samples of few bytes go through the steps as columns, with the bytes they have one by one."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.executor.cpu import runner
from headrace.kernels.cpu.strided import contiguous
from headrace.operators.image.crop import Crop
from headrace.operators.image.crop_mirror_normalize import CropMirrorNormalize
from headrace.operators.image.flip import Flip
from headrace.tensors.rows import Rows
from headrace.tensors.strided_rows import StridedRows
from tests.support.compiled import without

COUNT = 16


def drawn(low, high):
    return fn.random.uniform(range=(low, high))


def corner():
    return {"crop_pos_x": drawn(0.0, 1.0), "crop_pos_y": drawn(0.0, 1.0)}


def coin():
    return fn.random.coin_flip()


def normalized(x, **more):
    given = {"mean": [10.0, 20.0, 30.0], "std": [50.0, 60.0, 70.0], "mirror": coin()} | more
    return fn.crop_mirror_normalize(x, **given)


def grey(x, given):
    x = fn.cast(x, dtype=types.UINT8)
    return fn.color_space_conversion(x, image_type=given, output_type=types.GRAY)


CASES = {
    "crop": lambda x: fn.crop(x, crop=(9, 11), **corner()),
    "crop beyond": lambda x: fn.crop(x, crop=(40, 8), out_of_bounds_policy="pad", **corner()),
    "crop to float": lambda x: fn.crop(x, crop=(9, 11), dtype=types.FLOAT),
    "slice": lambda x: fn.slice(x, rel_start=fn.random.uniform(range=(0, 0.5), shape=2),
                                rel_shape=(0.4, 0.5), axes=(0, 1)),
    "nothing left": lambda x: fn.slice(x, start=fn.cast(drawn(0, 5), dtype=types.INT32), shape=0,
                                       axes=[0]),
    "flip": lambda x: fn.flip(x, horizontal=coin(), vertical=coin()),
    "twice": lambda x: fn.flip(fn.flip(x, horizontal=coin()), horizontal=coin(), vertical=1),
    "window of mirrored": lambda x: fn.crop(fn.flip(x, horizontal=1), crop=(7, 10), **corner()),
    "planes": lambda x: normalized(
        fn.flip(fn.crop(x, crop=(9, 20), **corner()), horizontal=coin())
    ),
    "pixels": lambda x: normalized(x, output_layout="HWC", crop=(8, 17)),
    "half": lambda x: normalized(x, dtype=types.FLOAT16),
    "bytes": lambda x: normalized(x, dtype=types.UINT8),
    "padded channels": lambda x: normalized(x, pad_output=True, output_layout="HWC"),
    "means by sample": lambda x: normalized(
        x, mean=fn.random.uniform(range=(0, 9), shape=3), std=[2.0, 3.0, 4.0]
    ),
    "bright": lambda x: fn.brightness_contrast(x, brightness=drawn(0.5, 1.5), contrast=1.2),
    "as bright": lambda x: fn.brightness(x, brightness=1.5),
    "of one hue": lambda x: fn.hue(x, hue=40.0),
    "to float": lambda x: fn.brightness(x, brightness=drawn(0.5, 1.5), dtype=types.FLOAT),
    "unchanged": lambda x: fn.brightness(x, brightness=fn.cast(coin(), dtype=types.FLOAT)),
    "colours": lambda x: fn.color_twist(x, hue=drawn(0, 90), saturation=drawn(0, 2)),
    "colours of mirrored": lambda x: fn.hsv(fn.flip(x), value=drawn(0.5, 2.0), dtype=types.FLOAT),
    "grey": lambda x: grey(x, types.RGB),
    "grey of blue first": lambda x: grey(fn.flip(x), types.BGR),
    "another reader": lambda x: fn.cast(fn.flip(x, vertical=coin()), dtype=types.INT16) + 1,
    "transposed": lambda x: fn.transpose(fn.crop(x, crop=(8, 9), **corner()), perm=[2, 0, 1]),
    "in a branch": lambda x: fn.flip(x, horizontal=coin()),
}  # fmt: skip


def images(dtype, ragged):
    rng = np.random.default_rng(3)
    shapes = rng.integers(24, 37, (COUNT, 2)) if ragged else np.full((COUNT, 2), 30)
    found = [rng.integers(0, 256, (*shape, 3)).astype(dtype) for shape in shapes.tolist()]
    return found if ragged else np.stack(found)


@pytest.fixture(autouse=True)
def _without(monkeypatch):
    """Programs whose steps have no instructions."""
    without(monkeypatch)


def run(name, data, monkeypatch, few, *, fuse=True):
    monkeypatch.setattr(runner, "_FEW_SAMPLES", few)

    @pipeline_def(batch_size=COUNT, num_threads=2, device_id=None, seed=5, enable_conditionals=True)
    def made():
        x = fn.external_source(lambda: data, layout="HWC")
        if name == "in a branch":
            if coin():
                x = CASES[name](x)
            else:
                x = fn.brightness(x, brightness=1.5)
            return x
        return CASES[name](x)

    pipe = made(fuse=fuse)
    return [np.array(row) for _ in range(2) for row in pipe.run()[0]]


@pytest.mark.sweep
@pytest.mark.parametrize("kind", ["uint8", "float32", "ragged"])
@pytest.mark.parametrize("name", CASES)
def test_columns_or_one_by_one(name, kind, monkeypatch):
    data = images("uint8" if kind == "ragged" else kind, kind == "ragged")
    fuse = kind != "float32"
    together = run(name, data, monkeypatch, 1, fuse=fuse)
    alone = run(name, data, monkeypatch, 1 << 30, fuse=fuse)
    for a, b in zip(together, alone, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(a, b)


@pytest.mark.in_threads  # as below
def test_no_sample_is_an_object_of_its_own(monkeypatch):
    def cpu(*_):
        raise AssertionError("one by one")

    for operator in (Crop, Flip, CropMirrorNormalize):
        monkeypatch.setattr(operator, "cpu", cpu)
    assert len(run("planes", images("uint8", ragged=False), monkeypatch, 1)) == 2 * COUNT


@pytest.mark.in_threads  # worker processes run Flip.cpu as it was when they started
@pytest.mark.parametrize("as_list", [True, False])
def test_large_samples_are_none_where_there_is_one_step(as_list, monkeypatch):
    def cpu(*_):
        raise AssertionError("one by one")

    rng = np.random.default_rng(3)
    data = rng.integers(0, 256, (COUNT, 130, 140, 3)).astype(np.uint8)
    data = list(data) if as_list else data
    alone = run("window of mirrored", data, monkeypatch, 1 << 30)
    monkeypatch.setitem(CASES, "one step", lambda x: fn.flip(x, horizontal=1))
    expected = run("one step", data, monkeypatch, 1 << 30)
    monkeypatch.setattr(Flip, "cpu", cpu)
    found = run("one step", data, monkeypatch, 1)
    np.testing.assert_array_equal(found, expected)
    with pytest.raises(RuntimeError, match="one by one"):
        run("window of mirrored", data, monkeypatch, 1)
    assert alone[0].shape == (7, 10, 3)


def test_a_bad_sample_leaves_the_others(monkeypatch):
    data = images("uint8", ragged=True)
    data[5] = data[5][:6]

    def run(few):
        monkeypatch.setattr(runner, "_FEW_SAMPLES", few)

        @pipeline_def(
            batch_size=COUNT, num_threads=1, device_id=None, seed=5, on_bad_sample="replace"
        )
        def made():
            x = fn.external_source(lambda: data, layout="HWC")
            return normalized(fn.crop(x, crop=(8, 9), **corner()))

        pipe = made()
        rows = [np.array(row) for row in pipe.run()[0]]
        return rows, pipe.bad_samples[0]  # a later iteration may have begun

    (together, bad), (alone, other) = run(1), run(1 << 30)
    np.testing.assert_array_equal(together, alone)
    assert (bad.index, bad.operator, bad.reason) == (5, other.operator, other.reason)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "int64"])
@pytest.mark.parametrize(
    "shape", [(5, 7, 3), (40, 50, 3), (9, 33, 1), (3, 20, 5, 3), (17,), (3, 16, 4), (0, 3, 3)]
)
def test_views_and_their_copies(shape, dtype):
    rng = np.random.default_rng(0)
    data = rng.integers(0, 255, (6, *shape)).astype(dtype)
    anchors = np.array([[rng.integers(0, e + 1) for e in shape] for _ in data])
    sizes = rng.integers(0, np.array(shape) - anchors + 1)
    which = np.array([True, False, True, True, False, True])
    for axis in range(len(shape)):
        views = StridedRows.of(Rows.of_array(data)).mirrored(axis, which)
        views = views.windows(anchors, sizes)
        expected = []
        for row, is_mirrored, anchor, size in zip(data, which, anchors, sizes, strict=True):
            row = np.flip(row, axis) if is_mirrored else row
            window = [slice(a, a + s) for a, s in zip(anchor, size, strict=True)]
            expected.append(row[tuple(window)])
        for found in (views, contiguous(views, np.empty)):
            for a, b in zip(found, expected, strict=True):
                np.testing.assert_array_equal(a, b)
