"""Wrong and unusual arguments, of every transform and function: errors are torchvision's own."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import torch

from tests.support.torchvision_inputs import (
    annotations,
    differences,
    outcome,
    pil_images,
    tensors,
)

import headrace.experimental.torchvision as ours  # isort: skip
from torchvision import tv_tensors  # isort: skip
from torchvision.transforms import v2 as theirs  # isort: skip

WRONG = {
    "Resize": [
        ((1, 2, 3),),
        ("a",),
        (None,),
        (10, "foo"),
        (10, "bilinear", 5),
        ([10, 20], "bilinear", 30),
        (-1,),
    ],
    "RandomResize": [(10,), ("a", "b")],
    "CenterCrop": [((1, 2, 3),), ("a",)],
    "RandomCrop": [
        ((1, 2, 3),),
        ([10, 12, 14],),
        (10, [1, 2, 3]),
        (10, "abc"),
        (10, None, False, 0, "abc"),
        ([500, 500],),
    ],
    "RandomResizedCrop": [((1, 2, 3),), (20, 0.5), (20, (0.1, 1.0), 123)],
    "Pad": [("abc",), ([-0.7, 0, 0.7],), ([1, 2, 3],), (12, "abc"), (12, 0, "abc")],
    "RandomZoomOut": [(0, (0.5, 2.0)), (0, 123), (0, (2.0, 4.0), 2.0)],
    "RandomRotation": [
        (-1,),
        ([1],),
        ("abc",),
        (20, "nearest", False, (1, 2, 3)),
        (20, "nearest", False, None, "abc"),
    ],
    "RandomAffine": [
        (-1,),
        ([1],),
        ((0, 1, 2),),
        (20, (-1, 1)),
        (20, (0.1,)),
        (20, "a"),
        (20, None, [0.0]),
        (20, None, (-1, 1)),
        (20, None, None, -5),
        (20, None, None, [1]),
        (20, None, None, None, "bilinear", "fill"),
    ],
    "RandomPerspective": [(-1,), ("a",), (2.0,)],
    "ElasticTransform": [("a",), ([1],), ((1, 2, 3),), (-1,), (1.0, "a"), (1.0, [1]), (1.0, -1.0)],
    "RandomErasing": [
        (0.5, (0, 1), "a"),
        (0.5, "a"),
        (0.5, (2, 1)),
        (0.5, (0.1, 0.2), (0.3, 3), "abc"),
        (2.0,),
        (0.5, (0.1, 0.2), (3, 0.3)),
        (-1.0,),
    ],
    "GaussianBlur": [
        (4,),
        (0,),
        ([1, 2],),
        (3, "a"),
        (3, (2.0, 1.0)),
        (3, -1.0),
        ((3, 3, 3),),
        (3, (1, 2, 3)),
        (3, 0),
    ],
    "GaussianNoise": [(0, -0.1)],
    "Normalize": [([0.5], [0.0]), ([0.1, 0.2], [0.1, 0.2])],
    "ColorJitter": [(-1,), ("a",), ((1, 0.5),), (0, 0, 0, 0.7), (0, 0, 0, (-0.6, 0.2)), ([1],)],
    "RandomIoUCrop": [(0.3, 1.0, 0.5, 2.0, 10)],
    "ScaleJitter": [("a",)],
    "RandomShortestSize": [("a",)],
    "Grayscale": [(2,)],
    "FiveCrop": [((1, 2, 3),), ("a",)],
    "TenCrop": [((1, 2, 3),)],
    "RandomApply": [(3,), ([],), (None, 2)],
    "RandomChoice": [(3,), ([torch.nn.Identity()], [0.5, 0.5]), ([],)],
    "RandomOrder": [(3,), ([],)],
    "Compose": [(3,), ([],), ({},)],
    "Lambda": [(3,), (abs,)],
    "LinearTransformation": [
        (torch.rand(3, 4), torch.rand(3)),
        (torch.rand(3, 3), torch.rand(4)),
        (torch.eye(3), torch.rand(3)),
    ],
    "SanitizeBoundingBoxes": [(0,), (1, 0), (1, 1, "bad"), (1, 1, 12)],
    "SanitizeKeyPoints": [("bad",), (12,)],
    "ConvertBoundingBoxFormat": [("abc",), (3,)],
    "ToDtype": [
        ({torch.Tensor: torch.float32},),
        ({tv_tensors.Image: torch.float32, torch.Tensor: torch.float32},),
        ("a",),
    ],
    "UniformTemporalSubsample": [(0,), ("a",)],
    "JPEG": [(0,), (101,), ((1,),), ("a",), ((20, 10),)],
    "RandAugment": [(-1,), (2, 9, 31, "foo"), (2, 40)],
    "AutoAugment": [("foo",)],
    "AugMix": [(0,), (11,)],
    "TrivialAugmentWide": [(0,), (31, "foo")],
    "CutMix": [
        (),
    ],
    "MixUp": [()],
    "RandomHorizontalFlip": [(2.0,), (-1.0,)],
    "RandomVerticalFlip": [(2.0,)],
    "RandomGrayscale": [(3.0,)],
    "RandomPosterize": [(9, 1.0), (-1, 1.0), ("a", 1.0)],
    "RandomSolarize": [(300, 1.0), (0.5, 1.0)],
    "RandomEqualize": [(1.0,)],
    "RandomAdjustSharpness": [(-1, 1.0), ("a", 1.0)],
    "SetClampingMode": [("foo",)],
    "RandomInvert": [(7.0,)],
}
NUMBERS = {
    "adjust_brightness": ["brightness_factor"],
    "adjust_contrast": ["contrast_factor"],
    "adjust_saturation": ["saturation_factor"],
    "adjust_hue": ["hue_factor"],
    "adjust_sharpness": ["sharpness_factor"],
    "adjust_gamma": ["gamma"],
    "solarize": ["threshold"],
    "posterize": ["bits"],
    "rotate": ["angle"],
    "rgb_to_grayscale": ["num_output_channels"],
    "gaussian_blur": ["kernel_size"],
    "to_dtype": ["dtype"],
    "horizontal_flip": [],
    "resize": ["size"],
    "center_crop": ["output_size"],
    "pad": ["padding"],
    "normalize": ["mean"],
    "equalize": [],
    "autocontrast": [],
    "invert": [],
    "crop": ["top"],
    "resized_crop": ["top"],
    "jpeg": ["quality"],
    "gaussian_noise": ["mean"],
    "erase": ["i"],
    "to_pil_image": ["mode"],
    "five_crop": ["size"],
}

REST = {
    "normalize": {"std": [0.1, 0.2, 0.3]},
    "crop": {"left": 1, "height": 3, "width": 3},
    "resized_crop": {"left": 1, "height": 3, "width": 3, "size": [4, 4]},
    "erase": {"j": 1, "h": 2, "w": 2, "v": torch.zeros(1)},
}
AT_THE_IMAGE = {"Resize", "RandomResizedCrop", "Grayscale"}
"""Transforms for whose arguments torchvision looks when it has an image, ours and DALI's before."""
VALUES = ["a", None, torch.tensor(1.2), np.float64(1.2), np.float32(0.3), 3, -0.5, [1.0], (3, 5)]


def samples():
    u8, boxes = tensors()["u8"], annotations()["boxes XYXY"]
    yield from (u8, tensors()["f32"], pil_images()["pil RGB"], tv_tensors.Image(u8), u8[0])
    yield from (annotations()["Mask"], boxes, annotations()["KeyPoints"], "text", [])
    yield {"image": pil_images()["pil RGB"], "boxes": boxes, "labels": torch.tensor([1, 2, 3])}


def apart(made):
    """Differences of what two libraries make, or of their errors."""
    got, wanted = made
    if isinstance(wanted, type) and isinstance(got, type):
        return [] if issubclass(got, wanted) else [f"{got} != {wanted}"]
    if isinstance(wanted, type) or isinstance(got, type):
        return [f"{got if isinstance(got, type) else 'a value'} != {wanted}"]
    return differences(got, wanted, float_tolerance=5e-5)


def test_transforms_refuse_what_torchvision_s_refuse():
    found, refused = [], 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, cases in WRONG.items():
            for arguments in cases:
                pair = [outcome(getattr(lib, name), *arguments) for lib in (ours, theirs)]
                early = name in AT_THE_IMAGE and isinstance(pair[0], type)
                if early and not isinstance(pair[1], type):
                    pair[1] = outcome(pair[1], pil_images()["pil RGB"])
                if any(isinstance(made, type) for made in pair):
                    found += [f"{name}{arguments}: {each}" for each in apart(pair)]
                    refused += 1
                    continue
                for sample in samples():
                    results = []
                    for transform in pair:
                        torch.manual_seed(1)
                        results.append(outcome(transform, copy.deepcopy(sample)))
                    where = f"{name}{arguments} of {type(sample).__name__}"
                    found += [f"{where}: {each}" for each in apart(results)]
    assert found == []
    assert refused > 80


def test_functions_take_and_refuse_numbers_as_torchvision_s():
    found = []
    images = [tensors()["u8"], tensors()["f32"], pil_images()["pil RGB"], tensors()["u8 grey"]]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, (parameter, *_) in ((n, p) for n, p in NUMBERS.items() if p):
            for value in VALUES:
                if name == "adjust_brightness" and isinstance(value, int):
                    continue  # see below
                for image in images:
                    results = []
                    for lib in (ours, theirs):
                        torch.manual_seed(0)
                        given = {parameter: value, **REST.get(name, {})}
                        call = getattr(lib.functional, name)
                        results.append(outcome(lambda c=call, i=image, g=given: c(i, **g)))
                    where = f"{name}({parameter}={value!r}) of {type(image).__name__}"
                    found += [f"{where}: {each}" for each in apart(results)]
    assert found == []


def test_brightness_by_an_integer_does_not_overflow():
    image = tensors()["u8"]
    got = ours.functional.adjust_brightness(image, 2)
    assert torch.equal(got, ours.functional.adjust_brightness(image, 2.0))
    assert not torch.equal(got, theirs.functional.adjust_brightness(image, 2))
