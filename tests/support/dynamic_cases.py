"""Calls of every operator that dynamic mode offers, compared with pipelines and DALI."""

from __future__ import annotations

import functools
import io
import os
import wave
from dataclasses import dataclass, field
from typing import Any

import cv2
import numpy as np

from headrace.experimental.dynamic.functions import is_offered
from headrace.operators.support.manifest import OPERATORS
from headrace.operators.support.registry import all_schemas
from headrace.operators.support.schema import OpSchema


@dataclass
class Case:
    """One call: for each input the samples and their layout; constants, and arguments by sample."""

    name: str
    inputs: list[tuple[list[np.ndarray], str]]
    args: dict[str, Any] = field(default_factory=dict)
    tensors: dict[str, list[Any]] = field(default_factory=dict)
    dali: bool = True
    """Whether DALI's dynamic mode takes the same call."""
    exact: bool = False

    @property
    def size(self) -> int:
        """Number of samples."""
        return len(self.inputs[0][0]) if self.inputs else 3

    def __str__(self) -> str:
        return "-".join([self.name, *self.args, *self.tensors])


def _random(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


def images() -> list[np.ndarray]:
    """Three images of different shapes, HWC."""
    draw = _random(1)
    shapes = ((40, 56, 3), (33, 31, 3), (48, 20, 3))
    return [draw.integers(0, 256, shape, dtype=np.uint8) for shape in shapes]


def clips() -> list[np.ndarray]:
    """Three mono clips of different lengths."""
    draw = _random(2)
    return [draw.normal(size=n).astype(np.float32) for n in (4000, 5017, 3000)]


def matrices() -> list[np.ndarray]:
    """Three small matrices of different shapes."""
    draw = _random(3)
    return [draw.normal(size=s).astype(np.float32) for s in ((4, 6), (1, 3), (5, 2))]


def affine_maps() -> list[np.ndarray]:
    """Three maps of planes."""
    draw = _random(4)
    return [draw.normal(size=(2, 3)).astype(np.float32) for _ in range(3)]


@functools.cache
def encoded() -> list[np.ndarray]:
    """Three JPEG files."""
    smooth = [cv2.GaussianBlur(image, (0, 0), 3) for image in images()]
    return [cv2.imencode(".jpg", image)[1].reshape(-1) for image in smooth]


@functools.cache
def wave_files() -> list[np.ndarray]:
    """Three WAV files, stereo."""
    found = []
    for clip in clips():
        file = io.BytesIO()
        pcm = (np.clip(clip, -3, 3) * 8000).astype("<i2")
        with wave.open(file, "wb") as writer:
            writer.setnchannels(2)
            writer.setsampwidth(2)
            writer.setframerate(16000)
            writer.writeframes(np.stack([pcm, pcm[::-1]], axis=1).tobytes())
        found.append(np.frombuffer(file.getvalue(), np.uint8).copy())
    return found


def spectra() -> list[np.ndarray]:
    """Three power spectra, ft."""
    draw = _random(4)
    return [np.abs(draw.normal(size=(129, n))).astype(np.float32) for n in (9, 5, 7)]


def _cases() -> list[Case]:
    hwc, plain = (images(), "HWC"), (matrices(), "")
    points = [np.ascontiguousarray(m[:, :2]) for m in affine_maps()], ""
    files = (encoded(), "")
    means = [m.mean(axis=0, keepdims=True) for m in matrices()], ""
    audio, power = (clips(), ""), (spectra(), "ft")
    frames = [np.stack([image] * 3) for image in images()], "FHWC"
    mosaics = [np.ascontiguousarray(image[:20, :30, 1]) for image in images()], "HW"
    boxes = [np.array([[0.1, 0.2, 0.5, 0.6]], np.float32)] * 3, ""
    labels = [np.array([k + 1], np.int32) for k in range(3)], ""
    waves = (wave_files(), "")
    found = [
        Case("_shape", [plain], dali=False),
        Case("audio_resample", [audio], {"in_rate": 16000.0, "out_rate": 11025.0}),
        Case("audio_resample", [audio], {}, {"scale": [0.5, 1.5, 2.0]}),
        Case("decoders.audio", [waves]),
        Case("decoders.audio", [waves], {"downmix": True, "dtype": "INT16"}),
        Case("bb_flip", [boxes], {"vertical": 1}, {"horizontal": [1, 0, 1]}, exact=True),
        Case("bbox_paste", [boxes], {"ratio": 1.5, "paste_x": 0.2, "paste_y": 0.7}),
        Case("bbox_rotate", [boxes, labels], {"angle": 30.0, "input_shape": [40, 50]}),
        Case("box_encoder", [boxes, labels], {"anchors": [0.1, 0.2, 0.5, 0.7]}),
        Case("brightness", [hwc], {"brightness": 1.5, "brightness_shift": 0.1}),
        Case("brightness", [hwc], {}, {"brightness": [0.5, 1.0, 2.0]}),
        Case("brightness_contrast", [hwc], {"brightness": 1.5, "contrast": 0.7}),
        Case("cast", [plain], {"dtype": "INT16"}),
        Case("cast_like", [plain, hwc]),
        Case("clahe", [hwc], {"tiles_x": 3, "tiles_y": 2, "clip_limit": 2.0}, exact=True),
        Case("color_space_conversion", [hwc], {"image_type": "RGB", "output_type": "YCbCr"}),
        Case("color_twist", [hwc], {"hue": 30.0, "saturation": 0.5, "contrast": 1.5}),
        Case("color_twist", [hwc], {}, {"brightness": [0.5, 1.0, 2.0]}),
        Case("contrast", [hwc], {"contrast": 1.5, "contrast_center": 100.0}),
        Case("copy", [hwc]),
        Case("crop", [hwc], {"crop": [16, 12]}),
        Case("crop", [hwc], {"crop": [16, 12]}, {"crop_pos_x": [0.0, 0.3, 1.0]}),
        Case("crop_mirror_normalize", [hwc], {"crop": [16, 12], "mean": [1.0, 2.0, 3.0]}),
        Case(
            "crop_mirror_normalize",
            [hwc],
            {"crop": [16, 12], "output_layout": "CHW", "std": [10.0]},
            {"mirror": [0, 1, 1]},
        ),
        Case("decoders.image", [files]),
        Case("decoders.image", [files], {"output_type": "GRAY"}),
        Case("decoders.image_crop", [files], {"crop": [10, 12]}),
        Case("decoders.image_slice", [files], {"start": [4, 5], "shape": [10, 9]}),
        Case("decoders.numpy", [([arrays_in_files()] * 3, "")]),
        Case("debayer", [mosaics], {"blue_position": [0, 1]}, exact=True),
        Case("element_extract", [frames], {"element_map": [2, 0]}),
        Case("expand_dims", [plain], {"axes": [0]}),
        Case("flip", [hwc], {"horizontal": 1}),
        Case("flip", [hwc], {"horizontal": 0}, {"vertical": [0, 1, 0]}),
        Case("full", [([np.float32(k) for k in range(3)], "")], {"shape": [2, 1]}),
        Case("full_like", [plain, ([np.float32(k) for k in range(3)], "")]),
        Case("gaussian_blur", [hwc], {"sigma": 1.5}),
        Case("gaussian_blur", [hwc], {}, {"window_size": [3, 5, 7]}),
        Case("get_property", [hwc], {"key": "layout"}),
        Case("hsv", [hwc], {"hue": 30.0, "saturation": 0.5, "value": 1.5}),
        Case("hue", [hwc], {}, {"hue": [0.5, 100.0, -20.0]}),
        Case("jpeg_compression_distortion", [hwc], {}, {"quality": [5, 50, 95]}),
        Case("io.file.read", [([np.frombuffer(os.fsencode(__file__), np.uint8)] * 3, "")]),
        Case("laplacian", [hwc], {"normalized_kernel": True}, {"window_size": [3, 5, 7]}),
        Case("mel_filter_bank", [power], {"nfilter": 20, "sample_rate": 16000.0}),
        Case("mfcc", [power], {"n_mfcc": 12}),
        Case("multi_paste", [hwc, hwc], {"output_size": [80, 90]}),
        Case("normalize", [plain]),
        Case("normalize", [plain], {"axes": [0], "mean": 0.5}, dali=False),
        Case("normalize", [plain], {"batch": True}),
        Case("ones", [], {"shape": [2, 3]}),
        Case("ones_like", [plain]),
        Case("paste", [hwc], {"ratio": 1.5, "fill_value": [1, 2, 3]}),
        Case("peek_image_shape", [files]),
        Case("per_frame", [plain]),
        Case("power_spectrum", [audio], {"nfft": 5100}),
        Case("permute_batch", [plain], {}, {"indices": [0, 0, 0]}),
        Case("reductions.std_dev", [plain, means], {"axes": [0], "keep_dims": True}),
        Case("reductions.variance", [plain, means], {"axes": [0], "keep_dims": True}),
        Case("reinterpret", [plain], {"dtype": "INT32"}),
        Case("reshape", [plain], {"shape": [-1]}),
        Case("reshape", [plain], {"layout": "HW"}),
        Case("resize", [hwc], {"size": [20, 24]}),
        Case("resize", [hwc], {"interp_type": "INTERP_LINEAR"}, {"resize_x": [10.0, 60.0, 31.0]}),
        Case("resize", [hwc], {"size": [20, 24], "save_attrs": True}),
        Case("resize_crop_mirror", [hwc], {"resize_shorter": 30.0, "crop": [20, 20]}),
        Case("rotate", [hwc], {"angle": 30.0}),
        Case("rotate", [hwc], {"fill_value": 0.0}, {"angle": [10.0, 90.0, 200.0]}),
        Case("saturation", [hwc], {"saturation": 0.3}),
        Case("sequence_rearrange", [frames], {"new_order": [2, 0]}),
        Case("slice", [hwc], {"start": [1, 2], "shape": [10, 9], "axes": [0, 1]}),
        Case(
            "slice",
            [plain],
            {"axes": [0], "rel_start": [0.0]},
            {"rel_shape": [[0.5], [1.0], [0.3]]},
        ),
        Case("spectrogram", [audio], {"nfft": 512, "window_step": 128}),
        Case("squeeze", [([m[None] for m in matrices()], "")], {"axes": [0]}, dali=False),
        Case("tensor_resize", [plain], {"sizes": [5.0, 4.0]}),
        Case("to_decibels", [power], {"multiplier": 10.0, "cutoff_db": -60.0}),
        Case("coord_flip", [points], {"center_y": 2.0}, {"flip_y": [1, 0, 1]}, exact=True),
        Case(
            "coord_transform",
            [points],
            {"M": [1.0, 2.0, 3.0, 4.0], "T": [5.0, 6.0]},
            dali=False,
        ),
        Case("coord_transform", [points], {}, {"T": [1.0, 2.0, 3.0]}),
        Case("transforms.combine", [(affine_maps(), ""), (affine_maps(), "")]),
        Case("transforms.crop", [], {"from_end": [4.0, 5.0]}),
        Case("transforms.rotation", [], {"center": [3.0, 4.0]}, {"angle": [10.0, 90.0, 200.0]}),
        Case("transforms.scale", [], {"scale": [2.0, 0.5]}),
        Case("transforms.shear", [], {"shear": [0.1, 0.5]}),
        Case("transforms.translation", [], {}, {"offset": [[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]}),
        Case("transpose", [hwc], {"perm": [2, 0, 1]}),
        Case(
            "segmentation.select_masks",
            [
                ([np.int32([2, 0])] * 3, ""),
                ([np.int32([[0, 0, 1], [1, 1, 1], [2, 0, 1]])] * 3, ""),
                plain,
            ],
            {"reindex_masks": True},
            exact=True,
        ),
        Case("sphere", [hwc], {"fill_value": 9.0, "interp_type": "INTERP_LINEAR"}),
        Case("water", [hwc], {"ampl_x": 3.0}, {"mask": [1, 0, 1]}),
        Case("warp_affine", [hwc], {"matrix": [0.9, 0.2, 3.0, -0.1, 1.2, -4.5]}, dali=False),
        Case("warp_affine", [hwc, (affine_maps(), "")], {"fill_value": 3.0}),
        Case(
            "experimental.warp_perspective",
            [hwc, ([np.float32([[1, 0.2, 3], [0, 1, 2], [0.001, 0, 1]])] * 3, "")],
            {"border_mode": "reflect"},
        ),
        Case("zeros", [], {"shape": [2], "dtype": "INT8"}),
        Case("zeros_like", [plain]),
    ]
    return found + _others({case.name for case in found})


def arrays_in_files() -> np.ndarray:
    file = io.BytesIO()
    np.save(file, np.arange(6, dtype=np.int16).reshape(2, 3))
    return np.frombuffer(file.getvalue(), np.uint8)


def _others(known: set[str]) -> list[Case]:
    """Cases for operators that the list above does not know, with whatever data they take."""
    found = []
    for schema in all_schemas():
        if schema.name not in OPERATORS:  # declared by a test
            continue
        if not is_offered(schema) or schema.hidden or schema.name in known or schema.random:
            continue
        if any(arg.required for arg in schema.args.values()):
            continue
        data = _data_for(schema)
        if data is not None:
            count = max(1, schema.min_inputs) if schema.inputs else 0
            found.append(Case(schema.name, [data] * count, dali=False))
    return found


def _data_for(schema: OpSchema) -> tuple[list[np.ndarray], str] | None:
    from headrace.executor.inputs import checked
    from headrace.operators.support.schema import Spec
    from headrace.types import to_dali_type

    if not schema.inputs:
        return [], ""
    args = {a.name: a.default for a in schema.args.values()}
    for data in ((images(), "HWC"), (matrices(), ""), (spectra(), "ft"), (clips(), "")):
        first = data[0][0]
        spec = Spec(to_dali_type(first.dtype), first.ndim, data[1])
        try:
            specs = [checked(schema, k, spec) for k in range(max(1, schema.min_inputs))]
            schema.cls(args, {}).infer(*specs)
        except Exception:
            continue
        return data
    return None


CASES = _cases()
