"""`to_loader` beside PyTorch's `DataLoader`: order, options, random numbers, memory, errors."""

from __future__ import annotations

import copy
import io
import pickle
import random
from typing import NamedTuple

import numpy as np
import PIL.Image
import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    IterableDataset,
    SequentialSampler,
    Subset,
    WeightedRandomSampler,
    get_worker_info,
)

from tests.support.torchvision_inputs import differences, pixels
from tests.support.torchvision_loading import CONTEXTS, Photographs, Told, alone, recipe, tell

import headrace.experimental.torchvision as ours  # isort: skip
from headrace.experimental.torchvision._encoded import open_rgb  # isort: skip
from torchvision.datasets import ImageFolder  # isort: skip
from torchvision.transforms import v2 as theirs  # isort: skip

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")


def plain(lib):
    return lib.Compose([lib.Resize(20), lib.CenterCrop(18), lib.PILToTensor()])


def generator(seed=3):
    return torch.Generator().manual_seed(seed)


def same(left, right):
    left, right = list(left), list(right)
    assert len(left) == len(right)
    for a, b in zip(left, right, strict=True):
        assert type(a) is type(b) is list
        assert torch.equal(a[0], b[0])
        assert a[1].tolist() == b[1].tolist()


OPTIONS = {
    "plain": lambda: {"batch_size": 5},
    "drop": lambda: {"batch_size": 5, "drop_last": True},
    "shuffle": lambda: {"batch_size": 4, "shuffle": True, "generator": generator()},
    "sampler": lambda: {
        "batch_size": 3,
        "sampler": WeightedRandomSampler([1.0] * 12, 7, generator=generator(5)),
    },
    "batches": lambda: {"batch_sampler": BatchSampler(SequentialSampler(range(12)), 7, False)},
}


@pytest.mark.parametrize("workers", [0, 2])
def test_options_of_a_data_loader(workers):
    for name, options in OPTIONS.items():
        theirs_loader = DataLoader(Photographs(plain(theirs)), **options())
        loader = ours.to_loader(
            Photographs(alone),
            plain(ours),
            num_workers=workers,
            persistent_workers=workers > 0,
            **options(),
        )
        assert isinstance(loader, DataLoader)
        assert len(loader) == len(theirs_loader)
        assert type(loader.dataset) is Photographs
        assert loader.batch_size == theirs_loader.batch_size
        assert loader.drop_last == theirs_loader.drop_last
        for _ in range(2):
            for got, wanted in zip(loader, theirs_loader, strict=True):
                assert got[1].tolist() == wanted[1].tolist(), name
                assert type(got) is list
                assert type(got[0]) is torch.Tensor
                assert not differences(got[0], wanted[0]), name


def test_random_numbers_follow_from_the_generator_alone():
    def batches(workers, seed, **options):
        loader = ours.to_loader(
            Noisy(), recipe(ours), 4, workers, shuffle=True, generator=generator(seed), **options
        )
        return [batch for _ in range(2) for batch in loader]

    state = torch.get_rng_state(), random.getstate(), np.random.get_state()[1].tolist()  # noqa: NPY002
    first = batches(0, 3)
    assert torch.equal(state[0], torch.get_rng_state())
    assert state[1:] == (random.getstate(), np.random.get_state()[1].tolist())  # noqa: NPY002
    same(first, batches(2, 3, persistent_workers=True, prefetch_factor=1))
    same(first, batches(1, 3))
    assert not torch.equal(first[0][0], batches(0, 4)[0][0])
    assert first[0][1].tolist() != first[3][1].tolist()
    # Without an order to be drawn, epochs differ all the same.
    loader = ours.to_loader(Noisy(), recipe(ours), 12, generator=generator())
    assert not torch.equal(next(iter(loader))[0], next(iter(loader))[0])
    # PyTorch's own seed, or the composition's, where there is no generator.
    for seed, steps in ((None, recipe(ours)), (5, recipe(ours).transforms)):
        runs = []
        for k in (1, 1 if seed is None else 2):
            torch.manual_seed(k)
            compose = steps if seed is None else ours.Compose(steps, seed=seed)
            runs.append(list(ours.to_loader(Noisy(), compose, 6, shuffle=True)))
        same(*runs)


@pytest.mark.parametrize("workers", [0, 1])
def test_going_on_from_a_state(workers):
    def make(sampler_seed=7):
        sampler = WeightedRandomSampler([1.0] * 12, 12, generator=generator(sampler_seed))
        kinds = {"sampler": sampler} if workers else {"shuffle": True}
        return ours.to_loader(Noisy(), recipe(ours), 5, workers, generator=generator(), **kinds)

    loader = make()
    states, batches = [loader.state_dict()], []
    for _ in range(2):
        for batch in loader:
            batches.append(batch)
            states.append(loader.state_dict())
    between = loader.state_dict()
    batches += list(loader)
    for number in range(0, 7, 1 if workers == 0 else 3):
        torch.manual_seed(number)
        other = make(number)
        stream = io.BytesIO()
        torch.save(states[number], stream)
        stream.seek(0)
        other.load_state_dict(torch.load(stream))
        assert other.state_dict()["batches"] == states[number]["batches"]
        rest = []
        for _ in range(3 - max(number - 1, 0) // 3):
            rest += list(other)
        same(rest, batches[number:])
    other = make(1)
    other.load_state_dict(between)
    same(other, batches[6:])
    del state_of_other_length(states[0])["length"]


def state_of_other_length(state):
    loader = ours.to_loader(Noisy(), recipe(ours), 6)
    with pytest.raises(ValueError, match="with 3 batches, and this one has 2"):
        loader.load_state_dict(state)
    with pytest.raises(ValueError, match="has no batches, epoch"):
        loader.load_state_dict({"generator": 0, "sampler": 0, "length": 0})
    sampler = WeightedRandomSampler([1.0] * 12, 12)
    with pytest.raises(RuntimeError, match="Give the sampler a `generator`"):
        ours.to_loader(Noisy(), recipe(ours), 6, sampler=sampler).state_dict()
    with pytest.raises(RuntimeError, match="its data set is iterable"):
        ours.to_loader(Stream(), recipe(ours), 6).state_dict()
    return dict(state)


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_lie_in_memory_that_is_used_again_when_they_are_gone(workers):
    loader = ours.to_loader(Many(), BIG, 2, workers, prefetch_factor=1 if workers else None)
    held = list(loader)  # more than a worker lends
    wanted = [BIG(Many()[k][0]) for k in range(40)]
    for number, (images, labels) in enumerate(held):
        assert labels.tolist() == [2 * number, 2 * number + 1]
        assert torch.equal(images, torch.stack(wanted[2 * number : 2 * number + 2]))
    places = set()
    for number, (images, _) in enumerate(loader):
        views = images[1], images.numpy()[1:]  # either would keep the memory
        del images
        assert torch.equal(views[0], wanted[2 * number + 1])
        assert np.array_equal(views[1][0], wanted[2 * number + 1])
        places.add(views[0].data_ptr())
    assert len(places) <= max(workers, 1) * 4


class Many:
    def __len__(self):
        return 40

    def __getitem__(self, number):
        return PIL.Image.fromarray(np.full((9, 9, 3), number, np.uint8)), number


BIG = ours.Compose([ours.Resize((130, 140)), ours.PILToTensor()])


class Noisy(Photographs):
    """Its samples draw from all generators, too."""

    def __init__(self):
        super().__init__(alone)

    def __getitem__(self, number):
        image, label = super().__getitem__(number)
        noise = random.randrange(99), np.random.randint(99), int(torch.randint(99, ()))  # noqa: NPY002
        return PIL.Image.eval(image, lambda v: min(v, 155) + sum(noise) // 3), label


class Stream(IterableDataset):
    def __iter__(self):
        info = get_worker_info()
        begin, step = (0, 1) if info is None else (info.id, info.num_workers)
        data = Photographs(alone)
        yield from (data[k] for k in range(begin, 12, step))


class Pair(NamedTuple):
    picture: object
    number: int


def test_samples_of_several_structures_and_functions_of_users():
    image = PIL.Image.fromarray(pixels())
    for sample in (
        image,
        (image,),
        [image, 3],
        Pair(image, 3),
        {"image": image, "id": "a"},
        (image, {"n": 1.5}),
    ):
        got = list(ours.to_loader([sample] * 3, plain(ours), 2))
        wanted = list(DataLoader([plain(theirs)(sample)] * 3, 2))
        assert not differences(got, wanted)
    samples = [(PIL.Image.fromarray(pixels(height=30 + k)), k) for k in range(3)]
    keep = ours.Compose([ours.PILToTensor()], num_threads=2)
    (batch,) = ours.to_loader(samples, keep, 3, collate_fn=tuple)
    assert [tuple(x.shape) for x, _ in batch] == [(3, 30 + k, 45) for k in range(3)]
    steps = ours.Compose([*plain(ours).transforms, ours.RandomErasing(1.0)])  # ends step by step
    got = list(ours.to_loader(samples, steps, 3))
    assert got[0][0].shape == (3, 3, 18, 18)
    together = Together()
    got = list(ours.to_loader(together, plain(ours), 4))
    assert together.asked == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]
    same(got, ours.to_loader(Photographs(alone), plain(ours).transforms, 4))


class Together(Photographs):
    def __init__(self):
        super().__init__(alone)
        self.asked = []

    def __getitems__(self, numbers):
        self.asked.append(numbers)
        return [self[k] for k in numbers]


@pytest.mark.parametrize("workers", [0, 2])
def test_iterable_data_sets(workers):
    got = list(ours.to_loader(Stream(), plain(ours), 4, workers))
    wanted = list(DataLoader(Stream(), 4, num_workers=workers, collate_fn=list))
    for (images, labels), samples in zip(got, wanted, strict=True):
        assert labels.tolist() == [label for _, label in samples]
        made = torch.stack([plain(theirs)(image) for image, _ in samples])
        assert not differences(images, made)


@pytest.mark.parametrize(
    "method", ["fork", "spawn", pytest.param("forkserver", marks=pytest.mark.nightly)]
)
def test_ways_to_start_workers(method):
    options = {"multiprocessing_context": CONTEXTS[method], "worker_init_fn": tell}
    runs = [
        ours.to_loader(Told(alone), recipe(ours), 4, workers, generator=generator(), **more)
        for workers, more in ((1, options), (0, {}))
    ]
    same(*runs)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("folder")
    image = PIL.Image.fromarray(pixels(height=200, width=301))
    wide = {"exif": image.getexif()}
    wide["exif"][0x112] = 6
    made = {
        "a/420.jpg": (image, {"quality": 90}),
        "a/444.jpg": (image, {"subsampling": 0}),
        "a/progressive.jpg": (image, {"progressive": True}),
        "b/turned.jpg": (image, wide),
        "b/grey.jpg": (image.convert("L"), {}),
        "b/inks.jpg": (image.convert("CMYK"), {}),
        "c/lossless.png": (image.convert("RGBA"), {}),
        "c/palette.png": (image.convert("P"), {}),
    }
    for name, (picture, options) in made.items():
        (root / name).parent.mkdir(exist_ok=True)
        picture.save(root / name, **options)
    return root


def test_files_are_decoded_as_far_as_is_needed_to_the_same_pixels(folder):
    steps = [
        recipe(ours).transforms,
        plain(ours).transforms,
        [ours.RandomCrop(25), ours.RandomVerticalFlip(), ours.ToImage()],
        [ours.ToImage(), ours.RandomResizedCrop(30), ours.ColorJitter(0.3, 0.3, 0.3)],
        [ours.RandomRotation(20), ours.RandomCrop(30), ours.PILToTensor()],
    ]
    data = ImageFolder(folder)
    eager = [data[k] for k in range(len(data))]  # by Pillow, whole
    for each in steps:
        want = list(ours.to_loader(eager, each, 3, generator=generator()))
        same(want, ours.to_loader(data, each, 3, generator=generator()))
        both = ConcatDataset([Subset(data, range(3)), Subset(data, range(3, 8))])
        same(want, ours.to_loader(both, each, 3, generator=generator()))
    assert data.loader.__name__ == "default_loader"
    for path, _ in data.samples:
        image, wanted = open_rgb(path), PIL.Image.open(path).convert("RGB")
        assert (image.size, image.mode) == (wanted.size, wanted.mode)
        assert image.info.keys() == wanted.info.keys()
        assert dict(open_rgb(path).getexif()) == dict(wanted.getexif())
        for change in (np.asarray, lambda x: np.asarray(x.rotate(9)), pickle.dumps, copy.copy):
            found, expected = change(open_rgb(path)), change(wanted)
            if isinstance(found, np.ndarray):
                assert np.array_equal(found, expected)
            elif isinstance(found, bytes):
                assert np.array_equal(np.asarray(pickle.loads(found)), np.asarray(wanted))
            else:
                assert np.array_equal(np.asarray(found), np.asarray(wanted))
    for name in ("a/420.jpg", "b/grey.jpg", "b/turned.jpg"):
        for each in steps[1:]:
            results = []
            for load in (False, True):
                image = PIL.Image.open(folder / name)
                if load:
                    image.load()
                torch.manual_seed(5)
                results.append(ours.Compose(each)(image))
                assert np.asarray(image).shape[:2] == (200, 301)  # still good for others
            assert torch.equal(*results)


def broken(*value):
    raise KeyError("no such thing")


@pytest.mark.parametrize("workers", [0, 1])
def test_errors_name_sample_and_transform(folder, tmp_path, workers):
    def message(dataset, steps, kind, **options):
        loader = ours.to_loader(dataset, steps, 3, workers, **options)
        with pytest.raises(kind) as caught:
            list(loader)
        return "".join([str(caught.value), *getattr(caught.value, "__notes__", ())])

    data = ImageFolder(folder)
    text = message(data, [ours.Identity(), ours.RandomCrop(230)], ValueError)
    assert "in transform 2 of 2, RandomCrop(size=(230, 230)" in text
    assert "of sample 0 of `ImageFolder`, read from" in text
    assert "420.jpg" in text
    text = message(Subset(data, [4, 3]), [ours.Compose([broken])], KeyError)
    assert "no such thing" in text
    assert "a transform within others, <function broken" in text
    assert "of sample 0 of `Subset`, read from" in text
    assert "b/inks.jpg" in text
    (tmp_path / "a").mkdir()
    whole = (folder / "a/420.jpg").read_bytes()
    (tmp_path / "a/cut.jpg").write_bytes(whole[: len(whole) // 2])
    text = message(ImageFolder(tmp_path), plain(ours), OSError)
    assert "truncated" in text
    assert "of sample 0 of `ImageFolder`, read from" in text
    (tmp_path / "a/cut.jpg").write_bytes(b"nothing")
    text = message(ImageFolder(tmp_path), plain(ours), OSError)
    assert "in `__getitem__`, of sample 0" in text
    text = message(Photographs(alone), [ours.PILToTensor(), ours.Resize(20)], RuntimeError)
    assert "when a batch was made, of sample 0 of `Photographs` to sample 2 of" in text
    assert "one size, or give `to_loader` a `collate_fn`" in text
    text = message(data, [ours.Resize((9, 9))], TypeError)
    assert "one size, or give `to_loader` a `collate_fn`" in text


def test_arguments():
    for kind, pattern, arguments in (
        (TypeError, "`compose` of `to_loader` is a int", (3, 2)),
        (ValueError, "`batch_size` of `to_loader` is None", (recipe(ours), None)),
        (ValueError, "`GaussianBlur` has the seed 4", ([ours.GaussianBlur(3, seed=4)], 2)),
        (ValueError, "the seed 4", (ours.RandomOrder([ours.GaussianBlur(3, seed=4)]), 2)),
    ):
        with pytest.raises(kind, match=pattern):
            ours.to_loader(Photographs(alone), *arguments)
    with pytest.raises(TypeError, match="unexpected keyword argument 'speed'"):
        ours.to_loader(Photographs(alone), recipe(ours), 2, speed=3)
