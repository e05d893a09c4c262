"""Every function of torchvision v2, with every kind of input, beside torchvision's own."""

from __future__ import annotations

import inspect
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

from headrace.experimental.torchvision.v2 import functional as ours  # isort: skip
from torchvision.transforms.v2 import functional as theirs  # isort: skip

M = theirs.InterpolationMode
MODES = (M.NEAREST, M.NEAREST_EXACT, M.BILINEAR, M.BICUBIC, M.LANCZOS, M.BOX, M.HAMMING)
CORNERS = [[0, 0], [44, 0], [44, 36], [0, 36]]
MOVED = [[3, 2], [40, 1], [43, 33], [2, 36]]

SLOPES = torch.linspace(-0.1, 0.1, HEIGHT * WIDTH * 2).reshape(1, HEIGHT, WIDTH, 2)

CASES: dict[str, list[dict]] = {
    "resize": [
        *({"size": [20, 31], "interpolation": mode} for mode in MODES),
        *({"size": [80, 50], "interpolation": mode} for mode in MODES),
        *({"size": [20, 70], "interpolation": mode, "antialias": False} for mode in MODES[2:5]),
        {"size": [24]},
        {"size": 24, "max_size": 26},
        {"size": None, "max_size": 60},
        {"size": [1, 1]},
        {"size": [HEIGHT, WIDTH]},
        {"size": [24], "antialias": None},
        {"size": [24], "interpolation": "bicubic"},
        {"size": [24], "interpolation": 2},
        {"size": [0, 4]},
        {"size": [10, 20], "max_size": 12},
    ],
    "resized_crop": [
        {"top": 3, "left": 5, "height": 20, "width": 30, "size": [16, 17]},
        {"top": -4, "left": -5, "height": 60, "width": 30, "size": [16, 40]},
        {
            "top": 0,
            "left": 0,
            "height": 9,
            "width": 9,
            "size": [30, 30],
            "interpolation": M.BICUBIC,
        },
        {"top": 3, "left": 5, "height": 20, "width": 30, "size": [16], "antialias": False},
    ],
    "crop": [
        {"top": 3, "left": 5, "height": 20, "width": 30},
        {"top": -3, "left": 25, "height": 50, "width": 30},
    ],
    "center_crop": [{"output_size": [20, 21]}, {"output_size": 50}, {"output_size": [60, 9]}],
    "horizontal_flip": [{}],
    "vertical_flip": [{}],
    "pad": [
        {"padding": [2]},
        {"padding": [1, 2, 3, 4], "fill": 7},
        {"padding": [3, 1], "fill": [1, 2, 3]},
        *({"padding": [5, 3], "padding_mode": mode} for mode in ("edge", "reflect", "symmetric")),
        {"padding": [-1, 2]},
    ],
    "adjust_brightness": [{"brightness_factor": f} for f in (0, 0.6, 1, 1.7, -1)],
    "adjust_contrast": [{"contrast_factor": f} for f in (0, 0.6, 1, 1.7, -1)],
    "adjust_saturation": [{"saturation_factor": f} for f in (0, 0.6, 1, 1.7, -1)],
    "adjust_hue": [{"hue_factor": f} for f in (-0.5, -0.1, 0, 0.07, 0.3, 0.5, 0.6)],
    "adjust_sharpness": [{"sharpness_factor": f} for f in (0, 0.5, 1, 2.5, -1)],
    "adjust_gamma": [{"gamma": 0.5}, {"gamma": 2, "gain": 1.3}, {"gamma": -1}],
    "rgb_to_grayscale": [{}, {"num_output_channels": 3}, {"num_output_channels": 2}],
    "to_grayscale": [{"num_output_channels": 3}],
    "grayscale_to_rgb": [{}],
    "posterize": [{"bits": 0}, {"bits": 3}, {"bits": 8}, {"bits": 9}],
    "solarize": [{"threshold": 0.4}, {"threshold": 128}, {"threshold": 256}],
    "autocontrast": [{}],
    "equalize": [{}],
    "invert": [{}],
    "permute_channels": [{"permutation": [2, 0, 1]}, {"permutation": [0]}],
    "gaussian_blur": [
        {"kernel_size": [3, 3]},
        {"kernel_size": 5, "sigma": 1.3},
        {"kernel_size": [7, 3], "sigma": [0.4, 2.0]},
        {"kernel_size": [23, 23], "sigma": [2.0]},
        {"kernel_size": [4, 3]},
        {"kernel_size": [3, 3], "sigma": 0.0},
    ],
    "normalize": [
        {"mean": [0.5, 0.4, 0.3], "std": [0.2, 0.3, 0.4]},
        {"mean": [0.5], "std": [0.25]},
        {"mean": [0.5], "std": [0.0]},
    ],
    "to_dtype": [
        {"dtype": d, "scale": s}
        for d in (torch.float32, torch.uint8, torch.float16, torch.int16)
        for s in (True, False)
    ],
    "rotate": [
        {"angle": 30.0},
        {"angle": -100.0, "interpolation": M.BILINEAR, "fill": 9},
        {"angle": 90, "expand": True},
        {"angle": 33.0, "expand": True, "interpolation": M.BILINEAR},
        {"angle": 10.0, "center": [5, 6], "interpolation": M.BICUBIC},
    ],
    "affine": [
        {"angle": 20.0, "translate": [3, 4], "scale": 1.2, "shear": [5.0, 3.0], "interpolation": m}
        for m in MODES[:4]
    ],
    "perspective": [
        {"startpoints": CORNERS, "endpoints": MOVED, "interpolation": m, "fill": f}
        for m in MODES[:4]
        for f in (None, 50)
    ],
    "elastic": [
        {
            "displacement": torch.linspace(-0.1, 0.1, HEIGHT * WIDTH * 2).reshape(
                1, HEIGHT, WIDTH, 2
            ),
            "interpolation": m,
        }
        for m in MODES[:4]
    ],
    "erase": [{"i": 3, "j": 4, "h": 5, "w": 6, "v": torch.zeros(3, 5, 6)}],
    "jpeg": [{"quality": 60}],
    "five_crop": [{"size": [10, 12]}, {"size": 40}],
    "ten_crop": [{"size": [10, 12]}, {"size": 12, "vertical_flip": True}],
    "uniform_temporal_subsample": [{"num_samples": 2}],
    "gaussian_noise": [{}, {"mean": 0.1, "sigma": 0.3, "clip": False}],
    "get_size": [{}],
    "get_dimensions": [{}],
    "get_num_channels": [{}],
    "get_image_size": [{}],
    "get_num_frames": [{}],
    "to_image": [{}],
    "to_pil_image": [{}],
    "pil_to_tensor": [{}],
    "to_tensor": [{}],
    "convert_image_dtype": [{}],
}
INPUTS = {**pil_images(), **tensors(), **annotations()}


@pytest.mark.parametrize("name", CASES)
def test_function_gives_torchvision_s_values(name):
    run, reference = getattr(ours, name), getattr(theirs, name)
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in CASES[name]:
            for kind, value in INPUTS.items():
                torch.manual_seed(1)
                wanted = outcome(lambda v, c=case: reference(v, **c), value)
                torch.manual_seed(1)
                got = outcome(lambda v, c=case: run(v, **c), value)
                if wanted is RuntimeError and case.get("size") == [1, 1]:
                    continue  # PyTorch's loop for bytes has too many weights for its vectors
                if isinstance(wanted, type) or isinstance(got, type):
                    apart = [] if wanted is got else [f"{got} != {wanted}"]
                else:
                    apart = differences(got, wanted)
                found += [f"{case} on {kind}: {each}" for each in apart]
    assert found == []


def test_every_function_has_cases():
    from torchvision.transforms.v2.functional._utils import _KERNEL_REGISTRY

    assert {function.__name__ for function in _KERNEL_REGISTRY} <= CASES.keys()


def test_names_and_signatures_are_torchvision_s():
    for name in dir(theirs):
        if name.startswith("_") or not callable(getattr(theirs, name)):
            continue
        mine = inspect.signature(getattr(ours, name)).parameters
        wanted = inspect.signature(getattr(theirs, name)).parameters
        assert [*mine][: len(wanted)] == [*wanted], name
        assert {*mine} - {*wanted} <= {"device", "input_layout", "values"}, name


def test_numpy_images_come_back_as_such():
    image = pixels()
    for name, arguments in (
        ("resize", {"size": [20, 20]}),
        ("horizontal_flip", {}),
        ("adjust_hue", {"hue_factor": 0.2}),
        ("rgb_to_grayscale", {}),
    ):
        wanted = getattr(theirs, name)(torch.from_numpy(image).permute(2, 0, 1), **arguments)
        for given in (image, image[::-1][::-1], np.stack([image, image])):
            got = getattr(ours, name)(given, **arguments)
            assert isinstance(got, np.ndarray)
            each = got if given.ndim == 4 else got[None]
            for one in each:
                assert not differences(torch.from_numpy(one).permute(2, 0, 1), wanted)
    assert ours.resize(image[..., 0], [5, 6]).shape == (5, 6)
    assert ours.get_size(image) == [HEIGHT, WIDTH]
    frozen = image.copy()
    frozen.setflags(write=False)
    assert np.array_equal(ours.vertical_flip(frozen), image[::-1])


def test_cmyk_is_refused_with_the_way_out():
    image = PIL.Image.new("CMYK", (8, 9))
    for call in (
        lambda: ours.resize(image, [3, 3]),
        lambda: ours.pil_to_tensor(image),
        lambda: ours.adjust_hue(image, 0.1),
    ):
        with pytest.raises(ValueError, match=r"'CMYK'.*convert\('RGB'\)"):
            call()
    assert ours.get_size(image) == [9, 8]
    assert ours.grayscale_to_rgb(image).mode == "RGB"


def test_device_is_checked():
    image = tensors()["u8"]
    assert ours.resize(image, [4, 4], device="cpu").shape == (3, 4, 4)
    assert ours.horizontal_flip(image, "cpu").shape == image.shape
    with pytest.raises(ValueError, match="'tpu'; it can be 'cpu' or 'gpu'"):
        ours.resize(image, [4, 4], device="tpu")
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="no GPU here"):
            ours.resize(image, [4, 4], device="gpu")


def test_users_types_have_their_own_kernels():
    from torchvision import tv_tensors

    class Depth(tv_tensors.TVTensor):
        pass

    @ours.register_kernel(ours.horizontal_flip, Depth)
    def flip(image):
        return (image.as_subclass(torch.Tensor) + 1).as_subclass(Depth)

    flipped = ours.horizontal_flip(torch.zeros(2, 2).as_subclass(Depth))
    assert type(flipped) is Depth
    assert flipped.sum() == 4


def test_tensors_on_other_devices_are_left_to_torchvision():
    image = torch.empty((3, 20, 30), dtype=torch.uint8, device="meta")
    for name, case in (
        ("resize", {"size": [5, 6]}),
        ("horizontal_flip", {}),
        ("rotate", CASES["rotate"][0]),
    ):
        assert getattr(ours, name)(image, **case).device.type == "meta"
