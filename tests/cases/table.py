"""The one table of cases of operators, for every suite that runs all of them.

Written by hand is what no declaration tells. Derived from it: where a case runs, its form as a
sequence (`Case`), and further element types and layouts (`variants`).
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from headrace import types
from headrace.errors import HeadraceError
from headrace.executor.inputs import checked
from headrace.experimental.dynamic.functions import is_offered
from headrace.operators.support.manifest import OPERATORS
from headrace.operators.support.registry import all_schemas
from headrace.operators.support.schema import OpSchema, Spec
from headrace.types import to_dali_type
from tests.cases.case import Case
from tests.cases.data import (
    affine_maps,
    arrays_in_files,
    clips,
    encoded,
    floats,
    images,
    labels,
    matrices,
    spectra,
    volumes,
    wave_files,
)
from tests.cases.draws import DRAWS
from tests.cases.internal import INTERNAL
from tests.cases.reading import READING
from tests.support.lz4_blocks import lz4_block

# A name is data of the case: it is as long wherever the repository is.
_CLIP = str(Path(__file__).parents[1] / "data/audio/mono_u8.wav").rjust(200, "/")


def _called() -> list[Case]:
    hwc, plain = (images(), "HWC"), (matrices(), "")
    points = [np.ascontiguousarray(m[:, :2]) for m in affine_maps()], ""
    files = (encoded(), "")
    means = [m.mean(axis=0, keepdims=True) for m in matrices()], ""
    audio, power = (clips(), ""), (spectra(), "ft")
    frames = [np.stack([image] * 3) for image in images()], "FHWC"
    mosaics = [np.ascontiguousarray(image[:20, :30, 1]) for image in images()], "HW"
    box = [np.array([[0.1, 0.2, 0.5, 0.6]], np.float32)] * 3, ""
    label = [np.array([k + 1], np.int32) for k in range(3)], ""
    waves = (wave_files(), "")
    chw = [np.ascontiguousarray(image.transpose(2, 0, 1)) for image in images()], "CHW"
    real, grey = (floats(), "HWC"), ([image[..., 1].copy() for image in images()], "HW")
    file_names = [np.frombuffer(_CLIP.encode(), np.uint8)] * 3, ""
    solids, labelled = (volumes(), "DHWC"), (labels(), "")
    taps = [np.float32([[0.1, 0.2, -0.3], [0.4, 0.5, 0.1]])] * 3, ""
    found = [
        Case("_shape", [plain], dali=False),
        Case("audio_resample", [audio], {"in_rate": 16000.0, "out_rate": 11025.0}),
        Case("audio_resample", [audio], {}, {"scale": [0.5, 1.5, 2.0]}),
        Case("decoders.audio", [waves]),
        Case("decoders.audio", [waves], {"downmix": True, "dtype": "INT16"}),
        Case("bb_flip", [box], {"vertical": 1}, {"horizontal": [1, 0, 1]}, exact=True),
        Case("bbox_paste", [box], {"ratio": 1.5, "paste_x": 0.2, "paste_y": 0.7}),
        Case("bbox_rotate", [box, label], {"angle": 30.0, "input_shape": [40, 50]}),
        Case("box_encoder", [box, label], {"anchors": [0.1, 0.2, 0.5, 0.7]}),
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
        Case(
            "decoders.inflate",
            [([lz4_block(row.tobytes()) for row in plain[0]], "")],
            {"dtype": "FLOAT"},
            {"shape": [list(row.shape) for row in plain[0]]},
            dali=False,
        ),
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
        Case("io.file.read", [file_names]),
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
        Case("reinterpret", [plain], {"layout": "HW"}),
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
        Case("experimental.dilate", [hwc], {"iterations": 2}, dali=False),
        Case(
            "experimental.erode",
            [hwc],
            {"anchor": [0, 2], "border_mode": "wrap"},
            {"mask_size": [[3, 5], [1, 3], [4, 4]]},
            dali=False,
        ),
        Case("experimental.median_blur", [hwc], {"window_size": [3, 7]}, dali=False),
        Case("optical_flow", [frames], {"output_grid": 2, "preset": 1.0}, dali=False, gpu=False),
        Case(
            "experimental.remap",
            [hwc, *[([m[k] for m in _places()], "HW") for k in (0, 1)]],
            {"pixel_origin": "center"},
            dali=False,
        ),
        Case("experimental.resize", [hwc], {"size": [20, 24]}, dali=False),
        Case("zeros", [], {"shape": [2], "dtype": "INT8"}),
        Case("zeros_like", [plain]),
        Case("cat", [plain, plain], {"axis": 1}),
        Case("crop", [chw], {"crop": [16, 12]}),
        Case("crop", [hwc], {"crop": [60, 12], "out_of_bounds_policy": "pad", "dtype": "FLOAT"}),
        Case("crop", [solids], {"crop": [2, 4, 3]}),
        Case("crop_mirror_normalize", [real], {"mean": [10.0, 2.0, 3.0], "dtype": "FLOAT16"}),
        Case("crop_mirror_normalize", [frames], {"crop": [9, 8], "output_layout": "FCHW"}),
        Case("color_space_conversion", [hwc], {"image_type": "RGB", "output_type": "GRAY"}),
        Case("color_space_conversion", [hwc], {"image_type": "BGR", "output_type": "RGB"}),
        Case("equalize", [hwc]),
        Case("equalize", [grey]),
        Case(
            "erase",
            [hwc],
            {"shape": [5.0, 6.0], "fill_value": [9.0, 8.0, 7.0], "axes": [0, 1]},
            {"anchor": [[1.0, 2.0], [20.0, 3.0], [-2.0, 9.0]]},
        ),
        Case("filter", [hwc, taps], {"anchor": [0, 1], "border": "clamp"}, dali=False),
        Case("filter", [real, taps], {"mode": "valid"}, dali=False),
        Case("flip", [chw], {}, {"horizontal": [1, 0, 1]}),
        Case("flip", [solids], {"depthwise": 1}),
        Case("gaussian_blur", [real], {"sigma": 0.8, "window_size": 5}),
        Case("gaussian_blur", [solids], {"sigma": [0.5, 1.0, 1.5]}),
        Case("grid_mask", [hwc], {"tile": 8, "ratio": 0.4}, {"angle": [0.0, 0.3, 1.0]}),
        Case("lookup_table", [labelled], {"keys": [7, 9], "values": [0.5, 3.0]}),
        Case("mel_filter_bank", [power], {"nfilter": 8, "mel_formula": "htk", "normalize": False}),
        Case("nonsilent_region", [audio], {"cutoff_db": -20.0, "window_length": 256}),
        Case("normalize", [hwc], {"axes": [0, 1], "dtype": "FLOAT", "stddev": 3.0}, dali=False),
        Case("normalize", [hwc], {"axis_names": "HW", "scale": 60.0, "dtype": "UINT8"}),
        Case("one_hot", [labelled], {"num_classes": 10, "dtype": "FLOAT"}),
        Case("pad", [hwc], {"axes": [0, 1], "shape": [60, -1], "fill_value": 3.0}),
        Case(
            "preemphasis_filter", [audio], {"border": "reflect"}, {"preemph_coeff": [0.9, 0.5, 0.0]}
        ),
        Case("reductions.max", [plain], {"axes": [1]}),
        Case("reductions.mean", [hwc], {"axes": [0, 1], "keep_dims": True}),
        Case("reductions.sum", [hwc], {"axes": [2]}),
        Case("reductions.sum", [hwc], {"axes": [0, 1], "dtype": "UINT64"}),
        Case("resize", [chw], {"size": [20, 24]}),
        Case("resize", [real], {"size": [50, 18], "interp_type": "INTERP_CUBIC"}),
        Case("resize", [hwc], {"resize_shorter": 24.0, "antialias": False, "dtype": "FLOAT"}),
        Case("resize", [hwc], {"size": [31, 17], "interp_type": "INTERP_LANCZOS3"}),
        Case("resize", [hwc], {"size": [31, 17], "interp_type": "INTERP_NN"}),
        Case("resize", [solids], {"size": [4, 7, 9]}),
        Case("resize", [frames], {"size": [20, 24]}),
        Case(
            "resize",
            [hwc],
            {
                "size": [20, 24],
                "roi_relative": True,
                "roi_start": [0.1, 0.2],
                "roi_end": [0.9, 0.6],
            },
        ),
        Case("rotate", [real], {"angle": 77.0, "keep_size": True, "interp_type": "INTERP_NN"}),
        Case("rotate", [solids], {"angle": 30.0, "axis": [0.0, 0.0, 1.0]}),
        Case(
            "slice",
            [hwc],
            {"rel_start": [0.2, 0.3], "rel_shape": [0.9, 0.4], "axis_names": "HW"}
            | {"out_of_bounds_policy": "pad", "fill_values": [1.0, 2.0, 3.0]},
        ),
        Case("slice", [audio], {"start": [100], "end": [2000], "axes": [0], "dtype": "FLOAT16"}),
        Case(
            "spectrogram",
            [audio],
            {"nfft": 300, "window_length": 256, "power": 1, "layout": "tf", "window_step": 97},
        ),
        Case("stack", [plain, plain], {"axis": 1}),
        Case(
            "warp_affine",
            [real],
            {"matrix": [0.9, 0.2, 3, -0.1, 1.2, -4.5], "size": [20, 30]},
            dali=False,
        ),
        Case("water", [real], {"freq_x": 0.2, "phase_y": 1.0, "interp_type": "INTERP_NN"}),
    ]
    return found + _others({case.name for case in found})


def _places() -> list[list[np.ndarray]]:
    """Columns and rows of the pixels of a picture in waves, for each image."""
    grids = [np.mgrid[: i.shape[0], : i.shape[1]].astype(np.float32) for i in images()]
    return [[x + 4 * np.sin(y / 9), y + x / 16] for y, x in grids]


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
        if schema.name in ("decoders.text", "decoders.json"):  # of side data; see test_table.py
            continue
        data = _data_for(schema)
        if data is not None:
            count = max(1, schema.min_inputs) if schema.inputs else 0
            found.append(Case(schema.name, [data] * count, dali=False))
    return found


def _data_for(schema: OpSchema) -> tuple[list[np.ndarray], str] | None:
    if not schema.inputs:
        return [], ""
    for data in ((images(), "HWC"), (matrices(), ""), (spectra(), "ft"), (clips(), "")):
        if _is_taken(Case(schema.name, [data] * max(1, schema.min_inputs))):
            return data
    return None


def _is_taken(case: Case) -> bool:
    """Whether the operator knows what comes out of such inputs."""
    schema = case.schema
    args = {a.name: a.default for a in schema.args.values()}
    kind = to_dali_type(np.float32)
    tensors = {name: Spec(kind, np.ndim(v[0])) for name, v in case.tensors.items()}
    try:
        for name, value in case.constants(types).items():
            args[name] = schema.args[name].type.constant(value)
        specs = [
            checked(schema, k, Spec(to_dali_type(rows[0].dtype), rows[0].ndim, layout))
            for k, (rows, layout) in enumerate(case.inputs)
        ]
        args |= dict.fromkeys(tensors)
        op = schema.cls.for_arguments(args)(args, tensors)
        op.check_known(len(specs))
        op.infer(*specs)
    except HeadraceError:
        return False
    return True


def variants(case: Case) -> Iterator[Case]:
    """Other element types of a case's first input, its other layout, and samples of one shape."""
    if not case.inputs or case.written or case.inputs[0][0][0].ndim < 2:
        return
    rows, layout = case.inputs[0]

    def fed(rows: list[np.ndarray], layout: str, note: str) -> Case:
        inputs = [(rows, layout), *case.inputs[1:]]
        return replace(case, inputs=inputs, note=note, derived=True)

    for dtype in ("uint8", "int16", "float32", "float16", "int64"):
        if rows[0].dtype != dtype and rows[0].dtype.kind != "b":
            factor = 30 if rows[0].dtype.kind == "f" else 0.4
            yield fed([(np.abs(row) * factor).astype(dtype) for row in rows], layout, "as")
    if layout == "HWC" and "CHW" in case.schema.inputs[0].layouts:
        yield fed([np.ascontiguousarray(row.transpose(2, 0, 1)) for row in rows], "CHW", "as")
    half = len(rows[0]) // 2
    if len(case.inputs) == 1 and half > 1:
        yield fed([rows[0][::step][:half].copy() for step in (1, -1, 1)], layout, "alike")


def _with_variants(cases: list[Case]) -> list[Case]:
    seen, found = set(), list(cases)
    for case in cases:
        if case.name not in seen and not case.schema.reader:
            seen.add(case.name)
            found += filter(_is_taken, variants(case))
    return found


@functools.cache
def all_cases() -> list[Case]:
    """Every case, those that are derived among them."""
    cases = _with_variants([*_called(), *DRAWS, *INTERNAL])
    return [*cases, *READING]


CASES = _called()
"""Calls of what dynamic mode offers, without those that draw random numbers."""
