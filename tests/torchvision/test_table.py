"""The table in docs/from-torchvision.md: both sides of each row, with the same random values."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import DataLoader

import headrace
from headrace import fn, types
from headrace.plugin.pytorch import DatasetSource
from tests.e2e.support import REPOSITORY
from tests.support.torchvision_inputs import pixels

from torchvision.datasets import ImageFolder  # isort: skip
from torchvision.transforms import v2  # isort: skip

HEIGHT, WIDTH = 256, 300
IMAGE = pixels(height=HEIGHT, width=WIDTH)
TENSOR = torch.from_numpy(IMAGE).permute(2, 0, 1)
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
OUTLIERS = 0.001


def invert(x):
    return 255 - x


def jitter(**factors):
    names = ("brightness", "contrast", "saturation", "hue")
    return {"fn_idx": torch.arange(4), **{f"{n}_factor": factors.get(n) for n in names}}


COEFFICIENTS = [0.9, 0.05, 3.0, -0.02, 1.05, -4.0, 2e-4, -1e-4]
DRAWN = {
    "RandomCrop": ([31 / 76, 7 / 32], {"needs_pad": False, "needs_crop": True, "padding": None}
                   | {"top": 7, "left": 31, "height": 224, "width": 224}),
    "RandomHorizontalFlip": ([1], {}),
    "RandomVerticalFlip": ([1], {}),
    "ColorJitter(brightness=0.4)": ([1.3], jitter(brightness=1.3)),
    "ColorJitter(saturation=0.4)": ([0.7], jitter(saturation=0.7)),
    "ColorJitter": ([1.3, 0.8, 0.7, 18], jitter(brightness=1.3, contrast=0.8, hue=0.05)),
    "RandomRotation": ([7.5], {"angle": 7.5}),
    "RandomAffine": (
        [7.5], {"angle": 7.5, "translate": (0, 0), "scale": 1.0, "shear": (0.0, 0.0)},
    ),
    "RandomPerspective": ([], {"coefficients": COEFFICIENTS}),
    "GaussianBlur": ([1.2], {"sigma": [1.2, 1.2]}),
    "RandomErasing": ([], {"i": 30, "j": 50, "h": 80, "w": 61, "v": torch.zeros(1)}),
    "RandomInvert": ([], {}),
    "RandomEqualize": ([], {}),
}  # fmt: skip
"""By the transform, as far as the line has to tell it from others: what Headrace's line and what
torchvision's draw."""


def rows():
    text = (REPOSITORY / "docs/from-torchvision.md").read_text()
    table = text.partition("## Transform by transform")[2].partition("\n## ")[0]
    lines = [line.split(" | ") for line in table.splitlines() if line.startswith("| `")]
    assert len(lines) == table.count("\n| ") - 1  # all but the heading
    for theirs, ours, values, _ in lines:
        yield pytest.param(theirs.strip("| `"), ours.strip("` "), values, id=theirs.strip("| `"))


@pytest.fixture
def names(tmp_path, monkeypatch):
    for k in range(3):
        path = tmp_path / "ab"[k // 2] / f"{k}.png"
        path.parent.mkdir(exist_ok=True)
        PIL.Image.fromarray(pixels(seed=k)).save(path)
    monkeypatch.chdir(tmp_path)
    a, b, c, d, e, f, g, h = COEFFICIENTS
    found = {
        **vars(v2),
        "ImageFolder": ImageFolder,
        "DataLoader": DataLoader,
        "DatasetSource": DatasetSource,
        "torch": torch,
        "fn": fn,
        "types": types,
        "root": str(tmp_path),
        "f": invert,
        "mean": MEAN,
        "std": STD,
        "anchor": [30.0, 50.0],
        "shape": [80.0, 61.0],
        "MEAN": [255 * m for m in MEAN],
        "STD": [255 * s for s in STD],
        "dataset": [(pixels(seed=k), np.int64(k)) for k in range(5)],
        "matrix": np.float32([[a, b, c], [d, e, f], [g, h, 1]]),
    }
    for policies in ("auto_augment", "rand_augment", "trivial_augment"):
        found[policies] = importlib.import_module(f"headrace.auto_aug.{policies}")
    return found


def run(line, names, image, **options):
    """All outputs of a line of ours, in a pipeline."""

    def defined():
        x = fn.external_source(source=lambda: [image] * 4, layout="HWC")
        made = eval(line, {**names, "x": x})
        return tuple(made) if isinstance(made, tuple | list) else made

    definition = headrace.pipeline_def(defined, enable_conditionals=True)
    outputs = definition(batch_size=4, num_threads=1, device_id=None, seed=4).run()
    return [[np.asarray(sample) for sample in output] for output in outputs]


@pytest.mark.parametrize(("theirs", "ours", "values"), list(rows()))
def test_both_sides_of_a_row(theirs, ours, values, names, monkeypatch):
    if theirs.startswith("ImageFolder"):
        files, labels = run(ours, names, IMAGE)
        folder = eval(theirs, names)
        for k, (path, label) in enumerate(folder.samples):
            assert files[k].tobytes() == Path(path).read_bytes()
            assert labels[k].tolist() == [label]
        return
    if theirs.startswith("DataLoader"):
        images, labels = run(ours, names, IMAGE)
        for got, wanted in zip((images, labels), next(iter(eval(theirs, names))), strict=True):
            assert np.array_equal(np.stack(got), wanted)
        return
    transform = eval(theirs, names)
    numbers, params = DRAWN.get(theirs, DRAWN.get(theirs.partition("(")[0], (None, None)))
    left = list(numbers or ())

    def draw(range=(-1, 1), probability=0.5):
        number = left.pop(0)
        assert range[0] <= number <= range[1]
        assert probability in (0.5, getattr(transform, "p", 0.5))
        return number

    if numbers is not None:
        monkeypatch.setattr(fn.random, "uniform", draw)
        monkeypatch.setattr(fn.random, "coin_flip", draw)
    got = run(ours, names, IMAGE)[0][0]
    assert not left
    if theirs.startswith("RandomResizedCrop"):
        # The same draws for an image whose pixels say where they are.
        places = np.stack([*np.mgrid[:HEIGHT, :WIDTH], np.zeros((HEIGHT, WIDTH))], -1)
        first, last = run(ours, names, places.astype(np.float32))[0][0][[100, 120], [100, 120], :2]
        step = (last - first) / 20
        size = np.round(step * 224).astype(int)
        top, left_ = np.round(first + 0.5 - 100.5 * step).astype(int)
        params = {"top": top, "left": left_, "height": size[0], "width": size[1]}
        area = size.prod() / (HEIGHT * WIDTH)
        assert 0.07 < area <= 1
        assert 0.74 < size[1] / size[0] < 1.34
    image = v2.functional.to_image(TENSOR)
    made = transform(image) if params is None else transform.transform(image, params)
    wanted = made.numpy()
    if not theirs.startswith(("Compose", "ToImage")):
        wanted = wanted.transpose(1, 2, 0)
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    if values == "others":
        assert not np.array_equal(got, wanted)
        return
    levels = 0 if values == "equal" else int(re.fullmatch(r"within (\d+)", values)[1])
    apart = np.abs(got.astype(np.float64) - wanted)
    if got.dtype == np.float32:
        apart = np.floor(apart / 1e-5)
    assert (apart > levels).mean() <= OUTLIERS, f"{np.quantile(apart, 1 - OUTLIERS)} levels"
    assert levels == 0 or (apart > levels // 2).any(), "it is better than the table says"
