"""Compositions: one program beside the same step by step, and beside torchvision's own."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import DataLoader

from tests.support.torchvision_inputs import annotations, differences, outcome, pixels, tensors
from tests.support.torchvision_loading import Photographs, recipe

import headrace.experimental.torchvision as ours  # isort: skip
from torchvision import tv_tensors  # isort: skip
from torchvision.transforms import v2 as theirs  # isort: skip

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def to_float(lib):
    return [lib.ToDtype(torch.float32, scale=True), lib.Normalize(MEAN, STD)]


def jitter(lib):
    return lib.ColorJitter(0.4, 0.4, 0.4, 0.1)


RECIPES = {
    "training": lambda lib: [
        lib.RandomResizedCrop(24),
        lib.RandomHorizontalFlip(),
        lib.ToImage(),
        *to_float(lib),
    ],
    "old training": lambda lib: [
        lib.RandomResizedCrop(24),
        lib.RandomHorizontalFlip(),
        jitter(lib),
        lib.PILToTensor(),
        *to_float(lib),
    ],
    "validation": lambda lib: [
        lib.Resize(32),
        lib.CenterCrop(24),
        lib.ToImage(),
        *to_float(lib),
    ],
    "tensor first": lambda lib: [
        lib.ToImage(),
        lib.ToDtype(torch.uint8, scale=True),
        lib.RandomResizedCrop((20, 30), antialias=True),
        lib.RandomHorizontalFlip(),
        lib.RandomVerticalFlip(),
        jitter(lib),
        *to_float(lib),
        lib.ToPureTensor(),
    ],
    "flip, crop, flip, resize": lambda lib: [
        lib.RandomVerticalFlip(0.6),
        lib.RandomHorizontalFlip(0.6),
        lib.RandomCrop(30),
        lib.RandomHorizontalFlip(0.5),
        lib.Resize((17, 40)),
        lib.RandomCrop((10, 33)),
        lib.RandomVerticalFlip(0.5),
        lib.PILToTensor(),
    ],
    "small pictures": lambda lib: [
        lib.RandomCrop(32, padding=4),
        lib.RandomHorizontalFlip(),
        lib.ToImage(),
        *to_float(lib),
    ],
    "several colours": lambda lib: [
        lib.ToImage(),
        lib.ColorJitter(0.4),
        lib.RandomHorizontalFlip(),
        jitter(lib),
        lib.RandomGrayscale(0.5),
        lib.ColorJitter(contrast=0.3),
    ],
    "contrastive": lambda lib: [
        lib.RandomResizedCrop(24, scale=(0.2, 1.0)),
        lib.RandomApply([lib.ColorJitter(0.4, 0.4, 0.2, 0.1)], p=0.8),
        lib.RandomGrayscale(p=0.2),
        lib.RandomApply([lib.GaussianBlur(5, (0.1, 2.0))], p=0.5),
        lib.RandomSolarize(128, p=0.3),
        lib.RandomHorizontalFlip(),
        lib.ToImage(),
        *to_float(lib),
    ],
    "augmented": lambda lib: [
        lib.RandomResizedCrop(24),
        lib.TrivialAugmentWide(),
        lib.ToImage(),
        lib.RandomErasing(0.5),
        *to_float(lib),
    ],
    "containers": lambda lib: [
        lib.Compose([lib.Resize(30), lib.RandomChoice([lib.CenterCrop(20), lib.RandomCrop(20)])]),
        lib.RandomOrder([lib.RandomHorizontalFlip(), lib.RandomVerticalFlip(), lib.Identity()]),
        lib.Lambda(lambda x: x),
        lib.ToImage(),
        lib.ConvertImageDtype(torch.float32),
    ],
    "scaled twice": lambda lib: [
        lib.Resize(30),
        lib.Resize(20, interpolation="bicubic"),
        lib.ToImage(),
        *to_float(lib),
        lib.Normalize([0.1], [0.5]),
        lib.RandomHorizontalFlip(),
        lib.Resize(12),
    ],
    "stays PIL": lambda lib: [lib.RandomResizedCrop(24), lib.RandomHorizontalFlip(), jitter(lib)],
    "wrong": lambda lib: [lib.Resize(20), lib.Normalize(MEAN, STD)],
}


def inputs():
    image, parts = pixels(), annotations()
    labels = torch.tensor([1, 2, 3])
    batch = tensors()["u8 batch"]
    rgb = PIL.Image.fromarray(image)
    return {
        "PIL": rgb,
        "L": rgb.convert("L"),
        "RGBA": PIL.Image.fromarray(pixels(4)),
        "u8": tensors()["u8"],
        "u8 of HWC": tensors()["u8 of HWC"],
        "u8 window": tensors()["u8 window"],
        "batch": batch,
        "Video": tv_tensors.Video(batch),
        "f32": tensors()["f32"],
        "label": (rgb, 7),
        "tensor labels": (tv_tensors.Image(tensors()["u8"]), labels),
        "labels first": {"labels": labels, "image": rgb},
        "boxes": (rgb, {"boxes": parts["boxes XYXY"], "mask": parts["Mask"], "labels": labels}),
        "two": [rgb, rgb],
    }


def step_by_step(steps, sample):
    several = isinstance(sample, tuple)
    for step in steps:
        sample = step(*sample) if several else step(sample)
    return sample


def seeded(seed, function, *args):
    torch.manual_seed(seed)
    return outcome(function, *args), torch.rand(1)


@pytest.mark.parametrize("name", RECIPES)
def test_a_program_gives_what_its_steps_give(name):
    """Exactly, but for a level where one rounding takes the place of two."""
    make, found = RECIPES[name], []
    for seed in range(4):
        for kind, sample in inputs().items():
            steps = make(ours)
            composed = ours.Compose(steps)
            several = isinstance(sample, tuple)
            got, left = seeded(seed, composed, *(sample if several else (sample,)))
            wanted, left_there = seeded(seed, step_by_step, steps, copy.deepcopy(sample))
            if left != left_there:
                found.append(f"{kind}: random values")
            if isinstance(wanted, type) or isinstance(got, type):
                found += [] if wanted is got else [f"{kind}: {got} != {wanted}"]
            else:
                found += [f"{kind}: {d}" for d in differences(got, wanted, float_tolerance=1e-4)]
    assert found == []


@pytest.mark.parametrize("name", sorted(set(RECIPES) - {"old training", "contrastive"}))
def test_a_program_gives_torchvision_s_values(name):
    """Colours after resizing may make more of a level; that is left to the test before."""
    make, found = RECIPES[name], []
    level = 1 / 255 / min(STD)
    if name == "scaled twice":  # of which each is a level off, and the last number is doubled
        level *= 4
    for seed in range(3):
        for kind, sample in inputs().items():
            args = sample if isinstance(sample, tuple) else (sample,)
            got, left = seeded(seed, ours.Compose(make(ours)), *args)
            wanted, left_there = seeded(seed, theirs.Compose(make(theirs)), *args)
            if left != left_there:
                found.append(f"{kind}: random values")
            if isinstance(wanted, type) or isinstance(got, type):
                found += [] if wanted is got else [f"{kind}: {got} != {wanted}"]
            elif name not in ("tensor first", "augmented", "stays PIL", "several colours"):
                found += [f"{kind}: {d}" for d in differences(got, wanted, level=level)]
    assert found == []


def test_numpy_images_go_through_programs():
    image = pixels()
    for recipe_name in ("flip, crop, flip, resize", "containers"):
        steps = [s for s in RECIPES[recipe_name](ours) if not isinstance(s, theirs.ToImage)]
        got, _ = seeded(2, ours.Compose(steps), image)
        wanted, _ = seeded(2, ours.Compose(steps), torch.from_numpy(image).permute(2, 0, 1))
        assert isinstance(got, np.ndarray)
        assert np.array_equal(got, wanted.permute(1, 2, 0).numpy())
    made = ours.Compose([ours.ToImage(), ours.Resize(10)])(image)
    assert type(made) is tv_tensors.Image


def test_no_pixel_is_touched_before_the_result():
    compose = ours.Compose(RECIPES["old training"](ours))
    image = PIL.Image.fromarray(pixels())
    torch.manual_seed(5)
    program = compose.program(image)
    assert program.size == (24, 24)
    assert not program.is_pil
    torch.manual_seed(5)
    assert torch.equal(program.result(), compose(image))
    assert compose.program(image, annotations()["Mask"]) is None
    assert len(compose.transforms) == 6


def test_samples_of_several_sizes_in_one_call():
    sizes = [(20, 31), (37, 45), (80, 33), (24, 24), (50, 50)]
    images = [
        PIL.Image.fromarray(pixels(seed=k, height=h, width=w)) for k, (h, w) in enumerate(sizes)
    ]
    samples = [(image, k) for k, image in enumerate(images)]
    plain = ours.Compose(RECIPES["old training"](ours))
    torch.manual_seed(4)
    wanted = [plain(*sample) for sample in samples]
    for threads in (1, 3):
        compose = ours.Compose(plain.transforms, batch_size=2, num_threads=threads)
        torch.manual_seed(4)
        got = compose.map(samples)
        assert [label for _, label in got] == [0, 1, 2, 3, 4]
        assert all(torch.equal(a, b) for (a, _), (b, _) in zip(got, wanted, strict=True))
    batch = tensors()["u8 batch"]
    torch.manual_seed(4)
    one = plain(batch)
    torch.manual_seed(4)
    assert torch.equal(one, ours.Compose(plain.transforms, num_threads=3)(batch))


def test_arguments_of_dali():
    steps = [ours.RandomCrop(9)]
    image = tensors()["u8"]
    runs = []
    for _ in range(2):
        compose = ours.Compose(op_list=steps, seed=7)
        torch.manual_seed(len(runs))
        state = torch.get_rng_state()
        runs.append([compose(image) for _ in range(3)])
        assert torch.equal(state, torch.get_rng_state())
    for a, b in zip(*runs, strict=True):
        assert torch.equal(a, b)
    assert not torch.equal(runs[0][0], runs[0][1])
    with pytest.raises(TypeError, match="no argument `prefetch_queue_depth`"):
        ours.Compose(steps, prefetch_queue_depth=2)
    with pytest.raises(ValueError, match="`num_threads` of `Compose` is 0"):
        ours.Compose(steps, num_threads=0)
    with pytest.raises(TypeError, match="sequence of callables"):
        ours.Compose(3)


def test_compositions_are_printed_compared_and_pickled():
    for name, make in RECIPES.items():
        if name == "containers":  # has a lambda
            continue
        mine = ours.Compose(make(ours))
        assert repr(mine) == repr(theirs.Compose(make(theirs)))
        again = pickle.loads(pickle.dumps(mine))
        assert again == mine
    assert ours.Compose([ours.Resize(3)]) != ours.Compose([ours.Resize(4)])
    assert ours.Compose([ours.Resize(3)]) != ours.Compose([ours.Resize(3)], num_threads=2)


def test_steps_of_torchvision_s_own_and_within_its_own():
    image = PIL.Image.fromarray(pixels())
    mixed = [theirs.Resize(30), ours.RandomCrop(20), theirs.RandomHorizontalFlip(), ours.ToImage()]
    wanted, _ = seeded(1, theirs.Compose(RECIPES["validation"](theirs)[:1] + mixed), image)
    for library in (ours, theirs):
        got, _ = seeded(1, library.Compose([ours.Resize(32), *mixed]), image)
        assert not differences(got, wanted)


@pytest.mark.parametrize(
    "method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.nightly)]
)
def test_workers_of_a_loader(method):
    """The same random values as without workers' processes, from the generator of each."""
    context = multiprocessing.get_context(method)
    loader = DataLoader(
        Photographs(recipe(ours)),
        batch_size=4,
        num_workers=1,
        multiprocessing_context=context,
        persistent_workers=True,
        generator=torch.Generator().manual_seed(3),
    )
    epochs = [[batch for batch in loader] for _ in range(2)]  # noqa: C416
    assert [len(epoch) for epoch in epochs] == [3, 3]
    images, labels = zip(*epochs[0], strict=True)
    assert torch.cat(labels).tolist() == list(range(12))
    assert images[0].shape == (4, 3, 16, 16)
    assert images[0].dtype == torch.float32
    assert not torch.equal(images[0], epochs[1][0][0])
    other = DataLoader(
        Photographs(recipe(theirs)),
        batch_size=4,
        num_workers=1,
        generator=torch.Generator().manual_seed(3),
        multiprocessing_context=multiprocessing.get_context("fork"),
    )
    for got, wanted in zip(epochs[0], other, strict=True):
        assert (got[0] - wanted[0]).abs().max() < 1.01 / 255 / min(STD)
    del loader
