"""Definitions of pipelines that `Compose.to_pipeline` writes: they run, with the same values."""

from __future__ import annotations

import inspect

import numpy as np
import PIL.Image
import pytest
import torch

from tests.support.torchvision_inputs import pixels

import headrace.experimental.torchvision as v2  # isort: skip
from torchvision.datasets import ImageFolder  # isort: skip
from headrace import fn  # isort: skip

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SIZES = [(37, 45), (50, 31), (40, 40), (64, 41)]
IMAGES = [pixels(seed=k, height=h, width=w) for k, (h, w) in enumerate(SIZES)]


def reading():
    images = fn.external_source(source=lambda: IMAGES, layout="HWC")
    numbers = fn.external_source(source=lambda: [np.int32(k) for k in range(4)])
    return images, numbers


FLOATS = [v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]
CASES = {
    "validation": [v2.Resize(24), v2.CenterCrop(20), v2.PILToTensor(), *FLOATS],
    "sizes": [v2.Resize((20, 31)), v2.CenterCrop((9, 40)), v2.ToImage()],
    "at most": [v2.Resize(30, max_size=35), v2.ToImage()],
    "longest": [v2.Resize(None, max_size=35), v2.ToImage()],
    "odd middle": [v2.CenterCrop((30, 26)), v2.ToImage()],
    "wide middle": [v2.CenterCrop((41, 46)), v2.ToImage()],
    "filters": [v2.Resize(24, "bicubic"), v2.Resize(60, "nearest"), v2.Resize(30, "lanczos")],
    "without antialias": [v2.Resize(20, antialias=False), v2.ToImage()],
    "flips": [v2.RandomHorizontalFlip(1.0), v2.RandomVerticalFlip(1.0), v2.PILToTensor()],
    "one flip": [v2.RandomVerticalFlip(1.0), v2.RandomHorizontalFlip(0.0), v2.ToImage(), FLOATS[0]],
    "colours": [v2.ColorJitter((1.2, 1.2), (0.8, 0.8), (1.3, 1.3), (0.1, 0.1)), v2.ToImage()],
    "grey": [v2.RandomApply([v2.Grayscale(3)], 1.0), v2.ToImage()],
    "one channel": [v2.Compose([v2.Grayscale()]), v2.PILToTensor()],
    "often grey": [v2.RandomGrayscale(1.0), v2.ToImage(), v2.ConvertImageDtype()],
    "blur": [v2.GaussianBlur((5, 3), (0.9, 0.9)), v2.Identity(), v2.ToPureTensor()],
    "DALI's blur": [v2.GaussianBlur((5, 3), (0.9, 0.9), values="dali"), v2.ToImage()],
    "padding": [v2.Pad(3), v2.Pad([1, 2], 5), v2.Pad([3, 4, 5, 6], (1, 2, 3)), v2.ToImage()],
    "whole crops": [v2.Resize((30, 20)), v2.RandomCrop((30, 20)), v2.PILToTensor(), *FLOATS],
    "padded crops": [v2.Resize((30, 20)), v2.RandomCrop((36, 26), padding=3, fill=9)],
    "whole areas": [
        v2.Resize((20, 30)),
        v2.RandomResizedCrop((25, 40), (1.0, 1.0), (1.5, 1.5)),
        v2.ToImage(),
    ],
    "turned": [v2.RandomRotation((90, 90), expand=True), v2.ToImage()],
    "a little turned": [v2.RandomRotation((13, 13), "bilinear", fill=7), v2.ToImage()],
}


def outputs(steps, **options):
    definition = v2.Compose(steps).to_pipeline(
        reading, show=False, batch_size=4, num_threads=1, device_id=None, **options
    )
    images, numbers = definition().run()
    assert [int(np.asarray(n)) for n in numbers] == [0, 1, 2, 3]
    return [np.asarray(image) for image in images], definition


@pytest.mark.parametrize("name", CASES)
def test_values_are_those_of_the_transforms(name):
    steps = CASES[name]
    got, definition = outputs(steps)
    compose = v2.Compose(steps, values="torchvision" if name == "blur" else "dali")
    for image, found in zip(IMAGES, got, strict=True):
        wanted = np.asarray(compose(PIL.Image.fromarray(image)))
        if wanted.ndim == 2:
            wanted = wanted[..., None]
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        apart = np.abs(found.astype(np.float64) - wanted)
        level = 1 if found.dtype == np.uint8 else 1.01 / 255 / min(STD)
        if name == "a little turned":  # where the image ends, the fill is blended otherwise
            apart = apart[:, 12:-12, 12:-12]
        assert (apart > level).mean() <= 0.001, name
    assert all(len(line) <= 100 for line in definition.text.splitlines())
    compile(definition.text, "text", "exec")


def test_random_values_are_drawn_by_the_pipeline():
    steps = [v2.RandomCrop(20), v2.RandomHorizontalFlip(), v2.ToImage()]
    images, definition = outputs(steps, seed=3)
    again, _ = outputs(steps, seed=3)
    for image, found, same in zip(IMAGES, images, again, strict=True):
        assert np.array_equal(found, same)
        windows = [
            image[y : y + 20, x : x + 20]
            for y in range(image.shape[0] - 19)
            for x in range(image.shape[1] - 19)
        ]
        moved = found.transpose(1, 2, 0)
        assert any(np.array_equal(w, moved) or np.array_equal(w[:, ::-1], moved) for w in windows)
    assert "seed=3" in definition.text
    chosen = outputs([v2.RandomApply([v2.Grayscale(3)], 0.5), v2.RandomGrayscale(0.0)], seed=1)[0]
    grey = [np.ptp(image, axis=2).max() == 0 for image in chosen]
    assert 0 < sum(grey) < 4
    wild = [v2.RandAugment(), v2.TrivialAugmentWide(), v2.AutoAugment(), v2.ColorJitter(0.4, 0.3)]
    assert [image.shape for image in outputs([*wild, v2.RandomRotation(10)])[0]] == [
        (*size, 3) for size in SIZES
    ]


def test_readers_of_folders_and_the_printed_program(tmp_path, capsys):
    for k, image in enumerate(IMAGES):
        path = tmp_path / f"class {k // 2}" / f"{k}.png"
        path.parent.mkdir(exist_ok=True)
        PIL.Image.fromarray(image).save(path)
    compose = v2.Compose([v2.CenterCrop(20), v2.ToImage()])
    options = {"batch_size": 4, "num_threads": 1, "device_id": None}
    texts = []
    for reader in (tmp_path, str(tmp_path), ImageFolder(tmp_path)):
        definition = compose.to_pipeline(reader, **options)
        assert capsys.readouterr().out == definition.text + "\n"
        images, labels = definition().run()
        found = {
            (np.asarray(image).tobytes(), int(np.asarray(label)[0]))
            for image, label in zip(images, labels, strict=True)
        }
        wanted = {
            (compose(PIL.Image.fromarray(image)).numpy().tobytes(), k // 2)
            for k, image in enumerate(IMAGES)
        }
        assert found == wanted
        texts.append(definition.text)
        space = {}
        exec(definition.text, space)  # a program of its own
        assert len(space["pipeline"]().run()[0]) == 4
    assert texts[0] == texts[1] == texts[2]
    text = compose.to_pipeline(reading, show=False, **options).text
    assert f"from {__name__} import reading\n" in text
    assert "    images, *others = reading()\n" in text
    assert "    return images, *others\n" in text
    inner = inspect.unwrap(definition)
    assert "fn.readers.file" in inspect.getsource(inner)


@pytest.mark.filterwarnings("ignore:The transform `ToTensor:UserWarning")
def test_transforms_without_an_operator_are_refused():
    for steps, pattern in (
        ([v2.RandomPosterize(3)], "cannot write `RandomPosterize`; it knows AutoAugment, "),
        ([v2.Lambda(abs)], "cannot write `Lambda`"),
        ([v2.RandomChoice([v2.Resize(3)])], "cannot write `RandomChoice`"),
        ([v2.Pad(3, padding_mode="edge")], "`Pad` with the padding mode 'edge'"),
        ([v2.Resize(3, "hamming")], "`Resize` with the interpolation 'hamming'"),
        ([v2.Normalize(MEAN, STD)], "`Normalize` of what is not float32"),
        ([v2.ToTensor(), v2.Resize(9)], "`Resize` of images of floats"),
        ([v2.ToTensor(), v2.Normalize(MEAN, STD), v2.Resize(9)], "`Resize` after `Normalize`"),
        ([v2.RandomApply([v2.ToImage()])], "changes the type of images"),
        ([v2.ToImage(), v2.ToDtype(torch.float64, scale=True)], "other than to torch.float32"),
    ):
        with pytest.raises(NotImplementedError, match="`to_pipeline` ") as caught:
            v2.Compose(steps).to_pipeline("photos")
        assert pattern in str(caught.value)
        assert "`to_loader` runs all" in str(caught.value)
    with pytest.raises(TypeError, match="`reader` of `to_pipeline` is a int"):
        v2.Compose([v2.Resize(3)]).to_pipeline(3)
    with pytest.raises(ValueError, match="a function without a name"):
        v2.Compose([v2.Resize(3)]).to_pipeline(lambda: None)
