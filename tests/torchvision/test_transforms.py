"""Every transform of torchvision v2, in samples of every structure, beside torchvision's own.

Random values are torchvision's, too: the same seed gives the same transform.
"""

from __future__ import annotations

import copy
import inspect
import pickle
import warnings

import numpy as np
import PIL.Image
import pytest
import torch

from tests.support.torchvision_inputs import (
    HEIGHT,
    WIDTH,
    annotations,
    differences,
    outcome,
    pil_images,
    pixels,
    tensors,
)

import headrace.experimental.torchvision as ours  # isort: skip
from torchvision import tv_tensors  # isort: skip
from torchvision.transforms import v2 as theirs  # isort: skip


def add_one(value):
    return value + 1


MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
CASES: dict[str, list[tuple]] = {
    "AugMix": [()],
    "AutoAugment": [(), (theirs.AutoAugmentPolicy.CIFAR10,), (theirs.AutoAugmentPolicy.SVHN,)],
    "CenterCrop": [(20,), ([50, 10],)],
    "ClampBoundingBoxes": [()],
    "ClampKeyPoints": [()],
    "ColorJitter": [(), (0.4, 0.4, 0.4, 0.1), (None, (0.5, 1.5))],
    "Compose": [],
    "ConvertBoundingBoxFormat": [("CXCYWH",), ("XYWH",)],
    "ConvertImageDtype": [()],
    "CutMix": [],
    "ElasticTransform": [(), (30.0, 3.0)],
    "FiveCrop": [(12,)],
    "GaussianBlur": [(3,), ([5, 7], (0.5, 1.5))],
    "GaussianNoise": [(), (0.1, 0.2, False)],
    "Grayscale": [(), (3,)],
    "Identity": [()],
    "JPEG": [(50,), ((20, 80),)],
    "Lambda": [(add_one, torch.Tensor)],
    "LinearTransformation": [
        (torch.eye(3 * HEIGHT * WIDTH) * 2, torch.zeros(3 * HEIGHT * WIDTH)),
    ],
    "MixUp": [],
    "Normalize": [(MEAN, STD), (MEAN, STD, True)],
    "PILToTensor": [()],
    "Pad": [(3,), ([1, 2], 5, "constant"), ([3, 4, 5, 6], 0, "reflect"), ([2], {"others": 3})],
    "RGB": [()],
    "RandAugment": [(), (3, 20)],
    "RandomAdjustSharpness": [(2,), (0.5, 1.0)],
    "RandomAffine": [(20,), ((0, 90), (0.1, 0.2), (0.8, 1.3), 10)],
    "RandomApply": [],
    "RandomAutocontrast": [(), (1.0,)],
    "RandomChannelPermutation": [()],
    "RandomChoice": [],
    "RandomCrop": [(20,), ((20, 60), None, True), (20, 4, False, 9), (20, 4, False, 0, "edge")],
    "RandomEqualize": [(), (1.0,)],
    "RandomErasing": [(1.0,), (1.0, (0.1, 0.3), (0.5, 2), "random")],
    "RandomGrayscale": [(), (1.0,)],
    "RandomHorizontalFlip": [(), (1.0,)],
    "RandomInvert": [(), (1.0,)],
    "RandomIoUCrop": [(), (0.5, 1.0)],
    "RandomOrder": [],
    "RandomPerspective": [(), (0.3, 1.0)],
    "RandomPhotometricDistort": [()],
    "RandomPosterize": [(3,), (3, 1.0)],
    "RandomResize": [(10, 40)],
    "RandomResizedCrop": [(20,), ((16, 30), (0.5, 0.9), (0.9, 1.1), "bicubic")],
    "RandomRotation": [(30,), ((10, 80), "bilinear", True)],
    "RandomShortestSize": [([10, 20, 30],), (30, 40)],
    "RandomSolarize": [(0.5,), (128, 1.0)],
    "RandomVerticalFlip": [(), (1.0,)],
    "RandomZoomOut": [(), (0, (1.0, 1.5), 1.0)],
    "Resize": [(20,), ([20, 30], "nearest"), (None, "bicubic", 50)],
    "SanitizeBoundingBoxes": [(2.0,), (1, 1, None)],
    "SanitizeKeyPoints": [(None,)],
    "ScaleJitter": [((30, 30),)],
    "SetClampingMode": [("hard",)],
    "TenCrop": [(12,), (12, True)],
    "ToDtype": [(torch.float32, True), ({tv_tensors.Image: torch.float32, "others": None}, True)],
    "ToImage": [()],
    "ToPILImage": [(), ("RGB",)],
    "ToPureTensor": [()],
    "ToTensor": [()],
    "Transform": [],
    "TrivialAugmentWide": [(), (5, "bilinear", 9)],
    "UniformTemporalSubsample": [(2,)],
}


def samples():
    """Single inputs, and structures in which annotations move with their image."""
    images, parts = {**pil_images(), **tensors()}, annotations()
    for name in ("pil RGB", "pil L", "pil RGBA", "u8", "u8 grey", "u8 batch", "f32", "i16"):
        yield name, images[name]
    yield from ((name, images[name]) for name in ("Image", "Video", "u8 of HWC", "gradient"))
    yield from parts.items()
    labels = torch.tensor([1, 2, 3])
    yield "classification", (images["pil RGB"], 3)
    yield "tensors", (images["u8"], labels, {"more": images["u8"]})
    for image in ("pil RGB", "Image", "f32"):
        for boxes in ("boxes XYXY", "boxes CXCYWH"):
            target = {
                "boxes": parts[boxes],
                "labels": labels,
                "mask": parts["Mask"],
                "points": parts["KeyPoints"],
                "name": "a.jpg",
                "none": None,
            }
            yield f"detection {image} {boxes}", (images[image], target)
    yield "dictionary", {"image": images["Image"], "boxes": parts["boxes XYWH"], "labels": labels}


def compare(make, sample, seed=3):
    """Differences of what a transform makes of a sample, and of the random state it leaves."""
    results = []
    for library in (ours, theirs):
        torch.manual_seed(seed)
        results.append((outcome(make(library), copy.deepcopy(sample)), torch.rand(1)))
    (got, left), (wanted, left_there) = results
    if isinstance(wanted, type) or isinstance(got, type):
        return [] if wanted is got else [f"{got} != {wanted}"]
    apart = [] if left == left_there else ["random state"]
    return [*apart, *differences(got, wanted, float_tolerance=5e-5)]


@pytest.mark.parametrize("name", [name for name, cases in CASES.items() if cases])
def test_transform_gives_torchvision_s_values(name):
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for arguments in CASES[name]:
            for kind, sample in samples():
                if name == "LinearTransformation" and isinstance(sample, dict | tuple):
                    continue
                apart = compare(lambda lib, a=arguments: getattr(lib, name)(*a), sample)
                found += [f"{arguments} on {kind}: {each}" for each in apart]
    assert found == []


CONTAINERS = {
    "apply": lambda lib: lib.RandomApply([lib.Resize(20), lib.RandomHorizontalFlip(1.0)], p=0.6),
    "choice": lambda lib: lib.RandomChoice([lib.Resize(20), lib.CenterCrop(9)], p=[0.4, 0.6]),
    "order": lambda lib: lib.RandomOrder([lib.Resize(20), lib.CenterCrop(9)]),
    "compose": lambda lib: lib.Compose([lib.Resize(20), lib.RandomCrop(12)]),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers(name):
    found = []
    for seed in range(4):
        for kind, sample in samples():
            apart = compare(CONTAINERS[name], sample, seed)
            found += [f"{kind}: {each}" for each in apart]
    assert found == []


@pytest.mark.parametrize("name", ["CutMix", "MixUp"])
def test_mixing_batches(name):
    batch = tensors()["f32 batch"], torch.tensor([1, 3])
    for arguments in ({"num_classes": 5}, {"num_classes": 5, "alpha": 0.3}):
        for seed in range(3):
            assert not compare(lambda lib, a=arguments: getattr(lib, name)(**a), batch, seed)


def test_every_transform_has_cases():
    names = {
        name
        for name, value in vars(theirs).items()
        if isinstance(value, type) and issubclass(value, theirs.Transform)
    }
    assert names == CASES.keys()
    assert set(dir(theirs)) - set(dir(ours)) <= {n for n in dir(theirs) if n.startswith("_")}


def test_signatures_are_torchvision_s_with_dali_s_after_them():
    extra = {}
    for name in CASES:
        if name == "Compose":
            continue
        mine = inspect.signature(getattr(ours, name)).parameters
        wanted = inspect.signature(getattr(theirs, name)).parameters
        assert [*mine][: len(wanted)] == [*wanted], name
        for key, parameter in wanted.items():
            assert mine[key].default is parameter.default or mine[key].default == parameter.default
        if len(mine) > len(wanted):
            extra[name] = [*mine][len(wanted) :]
    assert len(extra) == 16
    assert extra.pop("GaussianBlur") == ["device", "seed", "values"]
    assert all(each == ["device", "values"] for each in extra.values())


@pytest.mark.filterwarnings("ignore:The transform `ToTensor:UserWarning")
def test_transforms_are_printed_compared_and_pickled():
    for name, cases in CASES.items():
        for arguments in cases:
            if name == "LinearTransformation":
                continue
            mine = getattr(ours, name)(*arguments)
            assert repr(mine) == repr(getattr(theirs, name)(*arguments))
            assert isinstance(mine, getattr(theirs, name))
            again = pickle.loads(pickle.dumps(mine))
            assert again == mine
            assert copy.deepcopy(mine) == mine
            assert hash(again) == hash(mine)
    assert ours.Resize(20) != ours.Resize(21)
    assert ours.Resize(20) != ours.CenterCrop(20)
    matrix = torch.eye(3)
    assert ours.LinearTransformation(matrix, torch.zeros(3)) == ours.LinearTransformation(
        matrix.clone(), torch.zeros(3)
    )


def test_numpy_images_move_as_tensors_do():
    image = pixels()
    tensor = tv_tensors.Image(torch.from_numpy(image).permute(2, 0, 1))
    for make in (
        lambda lib: lib.Resize(20),
        lambda lib: lib.ColorJitter(0.3, 0.3, 0.3, 0.2),
        lambda lib: lib.RandAugment(),
        lambda lib: lib.RandomApply([lib.RandomResizedCrop(20)], p=1.0),
        lambda lib: lib.Compose([lib.Resize(20), lib.RandomCrop(12)]),
    ):
        torch.manual_seed(3)
        wanted, label = make(theirs)(tensor, 5)
        torch.manual_seed(3)
        got, same = make(ours)(image, 5)
        assert isinstance(got, np.ndarray)
        assert label == same == 5
        assert not differences(tv_tensors.Image(torch.from_numpy(got).permute(2, 0, 1)), wanted)
    sample = {"image": image, "embedding": np.zeros(7), "again": image}
    got = ours.Resize([9, 9])(sample)
    assert got["image"].shape == (9, 9, 3)
    assert got["embedding"] is sample["embedding"]
    assert got["again"] is image  # the first is the image, as with tensors
    assert type(ours.ToImage()(image)) is tv_tensors.Image
    assert isinstance(ours.ToPILImage()(image), PIL.Image.Image)
    assert ours.Resize([9, 9])(image[..., 0]).shape == (9, 9)


def test_transforms_of_users():
    class Shift(ours.Transform):
        def make_params(self, flat_inputs):
            _, width = theirs.query_size(flat_inputs)
            return {"by": int(torch.randint(1, width, ()))}

        def transform(self, inpt, params):
            if isinstance(inpt, PIL.Image.Image):
                return inpt
            return inpt.roll(params["by"], -1)

    tensor = tensors()["u8"]
    for image in (tensor, tv_tensors.Image(tensor), tensor.permute(1, 2, 0).numpy()):
        torch.manual_seed(0)
        shifted, label = ours.Compose([Shift(), ours.Identity()])(image, 4)
        torch.manual_seed(0)
        by = int(torch.randint(1, WIDTH, ()))
        assert isinstance(shifted, np.ndarray if isinstance(image, np.ndarray) else torch.Tensor)
        axis = 1 if isinstance(image, np.ndarray) else -1
        assert np.array_equal(np.asarray(shifted), np.roll(np.asarray(image), by, axis))
        assert label == 4


def test_cmyk_is_refused_with_the_way_out():
    image = PIL.Image.new("CMYK", (8, 9))
    for sample in (image, (image, 3), {"image": image}):
        with pytest.raises(ValueError, match=r"'CMYK'.*convert\('RGB'\)"):
            ours.Resize(4)(sample)
    assert ours.RGB()(image).mode == "RGB"
    assert ours.Compose([ours.RGB(), ours.Resize(4)])(image).mode == "RGB"


def test_dali_s_arguments():
    assert ours.Resize(20, "bilinear", None, True, "cpu") == ours.Resize(20, device="cpu")
    assert ours.GaussianBlur(3, (0.1, 2.0), "cpu", 5) == ours.GaussianBlur(3, seed=5)
    assert ours.RandomApply(op_list=[ours.Resize(4)], p=1.0)(pixels()).shape[0] == 4
    with pytest.raises(TypeError):
        ours.Resize(20, "bilinear", None, True, "cpu", 3)
    blur = [ours.GaussianBlur(7, seed=5) for _ in range(2)]
    image = pixels()
    first = [each(image) for each in blur]
    assert np.array_equal(*first)
    assert not np.array_equal(blur[0](image), first[0])
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="no GPU here"):
            ours.Resize(4, device="gpu")(tensors()["u8"])
