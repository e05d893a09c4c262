"""``values="dali"`` beside DALI's own module, and the differences between the two libraries."""

from __future__ import annotations

import numpy as np
import PIL.Image
import pytest
import torch

from tests.support.torchvision_inputs import pixels

import headrace.experimental.torchvision as ours  # isort: skip
from headrace.experimental.torchvision.v2 import functional  # isort: skip

dali = pytest.importorskip("nvidia.dali.experimental.torchvision")
IMAGE = pixels(height=60, width=80)


@pytest.fixture
def theirs(monkeypatch):
    """DALI's transforms, which ask for a stream of CUDA wherever they run."""

    class Stream:
        cuda_stream = 0

    if not torch.cuda.is_available():
        monkeypatch.setattr(torch.cuda, "current_stream", lambda *_: Stream())
    from nvidia.dali.experimental.torchvision import v2

    return v2.functional


def numbers(image):
    if isinstance(image, torch.Tensor):
        return image.as_subclass(torch.Tensor).movedim(-3, -1).numpy().astype(float)
    array = np.asarray(image).astype(float)
    return array if array.ndim == 3 else array[..., None]


def furthest(a, b):
    return np.abs(numbers(a) - numbers(b)).max()


MODES = ("NEAREST", "BILINEAR", "BICUBIC", "LANCZOS")
FUNCTIONS = [
    *(("resize", ([20, 31], mode)) for mode in MODES),
    *(("resize", ([90, 100], mode)) for mode in MODES[1:]),
    ("resize", (24,)),
    *(("resized_crop", (3, 4, 20, 30, [16, 17], mode)) for mode in MODES[:2]),
    ("gaussian_blur", (5, 1.3)),
    ("gaussian_blur", ([3, 7], 0.8)),
    ("to_grayscale", ()),
    ("to_grayscale", (3,)),
    ("horizontal_flip", ()),
    ("center_crop", ([20, 30],)),
    ("pad", ([2, 3],)),
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "arguments"), FUNCTIONS)
def test_functions_have_dali_s_values(theirs, name, arguments):
    """Within the level by which the operators differ, too."""
    mine = [getattr(ours.InterpolationMode, a) if a in MODES else a for a in arguments]
    its = [getattr(dali.InterpolationMode, a) if a in MODES else a for a in arguments]
    image = PIL.Image.fromarray(IMAGE)
    got = getattr(functional, name)(image, *mine, values="dali")
    assert isinstance(got, PIL.Image.Image)
    assert furthest(got, getattr(theirs, name)(image, *its)) <= 1
    tensor = torch.from_numpy(IMAGE).permute(2, 0, 1)
    for given in (tensor, torch.stack([tensor, tensor]), ours.ToImage()(tensor)):
        made = getattr(functional, name)(given, *mine, values="dali")
        assert type(made) is type(given)
        assert furthest(made if made.ndim == 3 else made[1], got) <= 1


JITTERS = [
    {"brightness": (1.3, 1.3)},
    {"contrast": (1.4, 1.4)},
    {"saturation": (0.5, 0.5)},
    {"hue": (0.1, 0.1)},
    {
        "brightness": (1.2, 1.2),
        "contrast": (1.5,) * 2,
        "saturation": (0.5,) * 2,
        "hue": (-0.2,) * 2,
    },
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("arguments", JITTERS)
def test_jitter_has_dali_s_values(theirs, arguments):
    image = PIL.Image.fromarray(IMAGE)
    wanted = dali.Compose([dali.ColorJitter(**arguments)], batch_size=1, num_threads=1)(image)
    assert furthest(ours.ColorJitter(**arguments, values="dali")(image), wanted) <= 1
    steps = [ours.RandomApply([ours.ColorJitter(**arguments)], p=1.0)]
    assert furthest(ours.Compose(steps, values="dali")(image), wanted) <= 1
    if "contrast" in arguments or "hue" in arguments:
        assert furthest(ours.Compose(steps)(image), wanted) > 2  # and the steps are unchanged


def test_libraries_differ_at_borders():
    image = torch.from_numpy(IMAGE).permute(2, 0, 1)
    both = [ours.Resize((20, 31), values=v)(image) for v in ("torchvision", "dali")]
    assert 1 < furthest(*both) < 40
    inner = [each[:, 3:-3, 3:-3] for each in both]
    assert furthest(*inner) <= 1


def test_values_are_checked():
    image = torch.from_numpy(IMAGE).permute(2, 0, 1)
    for call in (
        lambda: functional.resize(image, [4, 4], values="pillow"),
        lambda: ours.Resize(4, values="pillow"),
        lambda: ours.Compose([ours.Resize(4)], values="pillow"),
    ):
        with pytest.raises(ValueError, match="'pillow'; it can be 'torchvision' or 'dali'"):
            call()
    with pytest.raises(ValueError, match="'box', which DALI does not have"):
        functional.resize(image, [4, 4], "box", values="dali")
    with pytest.raises(TypeError, match="values"):
        ours.RandomInvert(values="dali")


@pytest.mark.filterwarnings("ignore")
def test_arguments_that_no_image_goes_with_are_refused_at_once(theirs):
    """As DALI does, whose errors are of the class `ValueError`; torchvision waits for an image."""
    wrong = [
        ("Resize", {"size": 10, "max_size": 5}),
        ("Resize", {"size": [10], "max_size": 5}),
        ("Resize", {"size": [10, 10], "max_size": 50}),
        ("Resize", {"size": None, "max_size": -1}),
        ("Resize", {"size": 10, "interpolation": "foo"}),
        ("Resize", {"size": 10, "interpolation": 9}),
        ("RandomResizedCrop", {"size": 10, "interpolation": "foo"}),
        ("Grayscale", {"num_output_channels": 2}),
    ]
    for size in (0, -3, (3, 0), [3.0, 4.0], "a"):
        wrong.append(("Resize", {"size": size}))
        if size != "a":
            wrong.append(("RandomResizedCrop", {"size": size}))
    for name, arguments in wrong:
        for library in (dali, ours):
            with pytest.raises(ValueError, match=r"\w"):
                getattr(library, name)(**arguments)
    image = PIL.Image.fromarray(IMAGE)
    for size, max_size in ((10, 5), (0, None), ([3.0, 4.0], None)):
        with pytest.raises(ValueError, match="size` is"):
            functional.resize(image, size, max_size=max_size, values="dali")
    with pytest.raises(ValueError, match="it can be 1 or 3"):
        functional.rgb_to_grayscale(image, 2, values="dali")
    for size, max_size in ((30, 35), ([30], 31), (None, 35), (35, 35), ([35], 35), (35, 200)):
        wanted = dali.Compose([dali.Resize(size, max_size=max_size)], batch_size=1, num_threads=1)
        got = functional.resize(image, size, max_size=max_size, values="dali")
        assert furthest(got, wanted(image)) <= 1
