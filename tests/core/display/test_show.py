"""Contact sheets: every kind of data finds its place, with the right pixels."""

from __future__ import annotations

import sys
import types as python_types

import cv2
import numpy as np
import pytest

import headrace
import headrace.experimental.dynamic as ndd
from headrace import Pipeline, contact_sheet, errors, fn, types
from headrace.tensors import TensorCPU, TensorListCPU

TOP, LEFT, GAP, TEXT = 34, 6, 6, 16
"""Where the first picture begins, and what is between pictures."""


def tile(sheet, height, width, row=0, column=0):
    """The pixels of a picture in a sheet of pictures of one size."""
    y = TOP + row * (height + TEXT + GAP)
    x = LEFT + column * (width + GAP)
    return sheet[y : y + height, x : x + width]


@pytest.fixture
def image():
    return np.random.default_rng(0).integers(0, 256, (12, 16, 3), np.uint8)


HOLDERS = {
    "image": lambda x: x,
    "batch": lambda x: x[None],
    "list": lambda x: [x],
    "CHW": lambda x: x.transpose(2, 0, 1),
    "NCHW": lambda x: np.ascontiguousarray(x.transpose(2, 0, 1))[None],
    "TensorCPU": lambda x: TensorCPU(x, "HWC"),
    "TensorCPU with N": lambda x: TensorCPU(x[None], "NHWC"),
    "TensorList": lambda x: TensorListCPU(x[None], "HWC"),
    "TensorList CHW": lambda x: TensorListCPU([np.ascontiguousarray(x.transpose(2, 0, 1))], "CHW"),
    "TensorList WHC": lambda x: TensorListCPU([np.ascontiguousarray(x.transpose(1, 0, 2))], "WHC"),
    "Tensor": lambda x: ndd.tensor(x, layout="HWC"),
    "Batch": lambda x: ndd.batch([x], layout="HWC"),
    "tensors of a batch": lambda x: ndd.batch([x]).tensors,
    "list of Tensor": lambda x: [ndd.tensor(x)],
    "mapping": lambda x: {"image": x[None]},
    "run": lambda x: (TensorListCPU(x[None]), TensorListCPU(np.zeros((1, 1), np.int32))),
    "iterator": lambda x: [{"image": x[None], "label": np.zeros((1, 1))}],
    "loader": lambda x: [x[None], np.zeros(1, np.int64)],
    "float levels": lambda x: x.astype(np.float32),
    "floats to 1": lambda x: x.astype(np.float32) / 255,
    "int32": lambda x: x.astype(np.int32),
    "float16": lambda x: x.astype(np.float16),
    "sequence": lambda x: x[:, :, None, :].transpose(2, 0, 1, 3),
}


@pytest.mark.parametrize("holder", HOLDERS)
def test_an_image_is_seen_whatever_holds_it(holder, image):
    sheet = contact_sheet(HOLDERS[holder](image), size=16)
    assert (sheet.ndim, sheet.shape[2], sheet.dtype) == (3, 3, np.uint8)
    np.testing.assert_array_equal(tile(sheet, 12, 16), image)


def test_images_stand_in_rows(image):
    images = [image // (k + 1) for k in range(5)]
    sheet = contact_sheet(images, size=16, columns=2)
    for k in range(5):
        np.testing.assert_array_equal(tile(sheet, 12, 16, k // 2, k % 2), images[k])
    assert (tile(sheet, 12, 16, 2, 1) == 255).all(), "no sixth image"


@pytest.mark.parametrize(
    ("picture", "expected"),
    [
        (np.full((8, 8), 7, np.uint8), [7, 7, 7]),
        (np.full((8, 8, 1), 7, np.uint8), [7, 7, 7]),
        (np.ones((8, 8), bool), [255, 255, 255]),
        (np.full((8, 8, 4), (10, 20, 30, 255), np.uint8), [10, 20, 30]),
        (np.full((8, 8, 4), (10, 20, 30, 0), np.uint8), [255, 255, 255]),
        (np.full((3, 8, 8), 0.2, np.float32), [51, 51, 51]),
        (np.full((8, 8), np.nan, np.float32), [0, 0, 0]),
    ],
    ids=["grey", "one channel", "bool", "opaque", "transparent", "CHW floats", "nan"],
)
def test_colours(picture, expected):
    assert tile(contact_sheet(picture, size=8), 8, 8)[0, 0].tolist() == expected


def test_normalised_images_are_stretched_together():
    images = np.zeros((2, 3, 4, 4), np.float32)
    images[0] -= 2
    images[1] += 3
    sheet = contact_sheet(images, size=4)
    assert tile(sheet, 4, 4).max() == 0
    assert tile(sheet, 4, 4, 0, 1).min() == 255


def test_sizes():
    small = contact_sheet(np.arange(12, dtype=np.uint8).reshape(3, 4), size=11)
    np.testing.assert_array_equal(tile(small, 6, 8)[::2, ::2, 0], np.arange(12).reshape(3, 4))
    large = contact_sheet(np.full((100, 50, 3), 9, np.uint8), size=10)
    assert (tile(large, 10, 5) == 9).all()
    assert (large[TOP : TOP + 10, LEFT + 5] == 255).all()
    empty = contact_sheet([np.zeros((0, 5, 3), np.uint8), np.ones((5, 5, 3), np.uint8)])
    assert empty.min() == 1


def test_sequences_have_a_row_each(image):
    frames = [np.stack([image // (k + 1)] * (3 - k)) for k in range(2)]
    sheet = contact_sheet(TensorListCPU(frames, "FHWC"), size=16)
    for sample in range(2):
        for number in range(3 - sample):
            np.testing.assert_array_equal(
                tile(sheet, 12, 16, sample, number), frames[sample][number]
            )
    volume = contact_sheet(np.moveaxis(frames[0], 0, 2)[None], layout="HWDC", size=16)
    np.testing.assert_array_equal(tile(volume, 12, 16, 0, 2), frames[0][2])
    planes = contact_sheet(np.stack([image[..., 0], image[..., 1]], -1), layout="HWC", size=16)
    np.testing.assert_array_equal(tile(planes, 12, 16, 0, 1)[..., 0], image[..., 1])


def test_signals_are_envelopes():
    signal = np.zeros(1000, np.float32)
    signal[500:] = 1
    signal[750:] = -1
    drawn = tile(contact_sheet(signal, size=50), 25, 100)
    ink = (drawn == drawn[0, 60]).all(axis=-1)
    assert ink[:, 10].nonzero()[0].tolist() == [12]
    assert ink[:, 60].nonzero()[0].tolist() == [0]
    assert ink[:, 90].nonzero()[0].tolist() == [24]
    stereo = np.stack([signal, -signal], axis=1)
    drawn = tile(contact_sheet([stereo], size=50), 25, 100)
    assert (drawn[0, 60] == drawn[-1, 60]).all()


def test_spectrograms_have_low_frequencies_at_the_bottom():
    power = np.zeros((4, 6), np.float32)
    power[0] = 1
    for layout, data in (("ft", power), ("tf", np.ascontiguousarray(power.T))):
        drawn = tile(contact_sheet(TensorListCPU([data], layout), size=3), 4, 6)
        assert drawn[3].min() > 150
        assert drawn[:3].max() < 10


@pytest.mark.parametrize(("size", "width"), [(6, 6), (12, 12), (3, 3)])
def test_spectrograms_of_a_batch_have_one_scale(size, width):
    """However long they are: a second of each is as wide."""
    powers = [np.ones((4, extent), np.float32) for extent in (6, 12)]
    sheet = contact_sheet(TensorListCPU(powers, "ft"), size=size)
    row = (sheet[TOP, LEFT : LEFT + 2 * size + GAP] < 255).any(axis=-1)
    assert row.tolist() == [True] * width + [False] * (2 * size - width + GAP)


def test_outputs_of_a_pipeline(image):
    pipe = Pipeline(2, 1, None)
    with pipe:
        source = fn.external_source(lambda: [image, image // 2], layout="HWC")
        planes = fn.crop_mirror_normalize(source, dtype=types.FLOAT, output_layout="CHW")
        pipe.set_outputs(source, planes, np.int32(3))
    outputs = pipe.run()
    sheet = contact_sheet(outputs, size=16)
    np.testing.assert_array_equal(tile(sheet, 12, 16, 0, 1), image // 2)
    second = sheet[TOP + 12 + TEXT + GAP :]
    np.testing.assert_array_equal(tile(second, 12, 16), image)


def test_labels_are_written(image):
    plain = contact_sheet([image, image], size=16)
    labelled = contact_sheet([image, image], size=16, labels=["", "dog"])
    first = (slice(TOP + 12, None), slice(LEFT, LEFT + 16))
    assert (labelled[first] == 255).all()
    assert (plain[first] != 255).any()
    numbers = TensorListCPU(np.array([[5], [6]], np.int32))
    assert not np.array_equal(
        contact_sheet((TensorListCPU([image] * 2), numbers), size=64),
        contact_sheet(TensorListCPU([image] * 2), size=64),
    )


def test_only_so_many_samples(image):
    many, few = (contact_sheet([image] * 100, max_samples=n, columns=1) for n in (3, 2))
    assert many.shape[0] - few.shape[0] == 120 + TEXT + GAP


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda: contact_sheet([]), errors.ArgumentTypeError, "empty batch"),
        (lambda: contact_sheet(np.zeros((3, 1))), errors.ArgumentTypeError, r"shape \(3, 1\)"),
        (
            lambda: contact_sheet([np.zeros(500, np.uint8)]),
            errors.ArgumentTypeError,
            "Encoded files have to be decoded",
        ),
        (lambda: contact_sheet(["a"]), errors.ArgumentTypeError, "is a str of"),
        (lambda: contact_sheet(np.zeros((4, 4)), layout="HWC"), errors.LayoutError, '"HWC"'),
        (lambda: contact_sheet(np.zeros((4, 4)), size=0), errors.ArgumentValueError, "`size` is 0"),
        (lambda: headrace.show(np.zeros((4, 4)), "a.gif"), errors.ArgumentValueError, ".png"),
    ],
    ids=["empty", "no picture", "encoded", "text", "layout", "size", "file name"],
)
def test_mistakes(call, error, match):
    with pytest.raises(error, match=match):
        call()


def test_a_file_is_written(image, tmp_path):
    path = tmp_path / "sheet.png"
    headrace.show([image], path, size=16)
    np.testing.assert_array_equal(cv2.imread(str(path))[..., ::-1], contact_sheet([image], size=16))


def test_notebooks_show_it_and_programs_write_it(image, monkeypatch, tmp_path, capsys):
    shown = []
    display = python_types.SimpleNamespace(display=shown.append, Image=lambda png: png)
    shell = python_types.SimpleNamespace(kernel=object())
    module = python_types.SimpleNamespace(display=display, get_ipython=lambda: shell)
    monkeypatch.setitem(sys.modules, "IPython", module)
    headrace.show([image], size=16)
    pixels = cv2.imdecode(np.frombuffer(shown[0], np.uint8), cv2.IMREAD_COLOR)
    np.testing.assert_array_equal(pixels[..., ::-1], contact_sheet([image], size=16))
    del shell.kernel  # IPython in a terminal
    monkeypatch.chdir(tmp_path)
    for number in (1, 2):
        headrace.show([image], size=16)
        assert f"wrote batch-{number}.png" in capsys.readouterr().out
        written = cv2.imread(f"batch-{number}.png")
        np.testing.assert_array_equal(written[..., ::-1], contact_sheet([image], size=16))
