"""Functions of single pixels, computed for 256 levels and looked up."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.auto_aug import augmentations as a
from headrace.errors import DataTypeError, LayoutError, ShapeError
from headrace.kernels.cpu.levels import map_levels

RANDOM = np.random.default_rng(0)


def run(graph, data, layout="HWC"):
    pipe = Pipeline(1, 1, None)
    with pipe:
        pipe.set_outputs(graph(fn.external_source(lambda: [data], layout=layout)))
    (batch,) = pipe.run()
    return np.asarray(batch[0])


def test_tables_of_levels_and_of_channels():
    for shape in ((7, 9, 3), (7, 9, 2), (1, 1, 3), (0, 4, 3), (5, 4, 20)):
        data = RANDOM.integers(0, 256, shape, np.uint8)
        for channels in {1, shape[-1]}:
            table = RANDOM.integers(0, 256, (256, channels), np.uint8)
            for source in (data, data[::-1]):
                out = np.full(shape, 7, np.uint8)
                map_levels(source, table, out)
                wanted = np.take_along_axis(
                    np.broadcast_to(table, (256, shape[-1])), source.reshape(-1, shape[-1]), 0
                )
                np.testing.assert_array_equal(out, wanted.reshape(shape))


@pytest.mark.parametrize(
    ("op", "function"),
    [
        (a.invert, lambda x: 255 - x),
        (a.solarize, lambda x: np.where(x < 100, x, 255 - x)),
        (a.solarize_add, lambda x: np.where(x < 128, np.minimum(x + 100, 255), x)),
    ],
)
def test_what_becomes_of_pixels(op, function):
    frames = RANDOM.integers(0, 256, (2, 9, 8, 3), np.uint8)
    argument = None if op is a.invert else 100
    for data, layout in (
        (frames[0], "HWC"),
        (frames, "FHWC"),
        (frames[0, :, :, :1], "HWC"),
        (frames[0, :, :, 0], "HW"),
    ):
        parameter = None if argument is None else np.uint8(argument)
        got = run(lambda x, p=parameter: op.op(x, p), data, layout)
        np.testing.assert_array_equal(got, function(data.astype(int)))


def test_frames_have_tables_of_their_own():
    frames = RANDOM.integers(0, 100, (3, 9, 8, 3), np.uint8)
    frames[1] //= 2
    whole = run(lambda x: a.auto_contrast.op(x, None), frames, "FHWC")
    for frame, got in zip(frames, whole, strict=True):
        np.testing.assert_array_equal(run(lambda x: a.auto_contrast.op(x, None), frame), got)
        assert got.min() == 0
        assert got.max() == 255


def test_what_has_no_levels():
    with pytest.raises(DataTypeError, match=r"UINT8.*\n.*an augmentation"):
        run(lambda x: a.invert.op(x, None), np.zeros((2, 3, 3), np.float32))
    planes = RANDOM.integers(0, 256, (3, 9, 8), np.uint8)
    for op in (a.auto_contrast, a.contrast):
        with pytest.raises(LayoutError):
            run(lambda x, op=op: op.op(x, 1.5), planes, "CHW")
    for data in (planes, np.moveaxis(planes, 0, 2)):  # of eight channels, and of three
        for shape in ((2,), (4, 1, 1, 1)):
            with pytest.raises(ShapeError, match=r"HWC|shape"):
                run(lambda x, shape=shape: a.contrast.op(x, np.ones(shape, np.float32)), data)


@pytest.mark.parametrize("factor", [1.7, -0.5, 2, np.array([0.5, 1, 1.5], np.float32)])
def test_contrast(factor):
    frames = RANDOM.integers(30, 200, (2, 9, 8, 3)).astype(np.uint8)
    for data, layout in ((frames[1], "HWC"), (frames, "FHWC"), (frames[0, :0], "HWC")):
        means = data.reshape(-1, data.shape[-3] * 8, 3).mean(1) if data.size else np.zeros((1, 3))
        center = (means @ [0.299, 0.587, 0.114]).reshape(-1, 1, 1, 1)
        wanted = np.clip(center + (data - center) * factor, 0, 255).reshape(data.shape)
        for given in (factor, "fed"):

            def graph(x, given=given):
                is_fed = isinstance(given, str)
                edge = fn.external_source(lambda: [np.asarray(factor)]) if is_fed else given
                return a.contrast.op(x, edge)

            np.testing.assert_allclose(run(graph, data, layout), wanted, atol=0.51)
