"""Constants that are wrong whatever the data are told when the pipeline is built, as in DALI."""

from __future__ import annotations

import importlib
from itertools import repeat
from pathlib import Path

import numpy as np
import pytest

from headrace.errors import HeadraceError
from tests.parity.support import LIBRARIES, assert_parity

IMAGE = np.zeros((8, 9, 3), np.uint8)
SIGNAL = np.ones(400, np.float32)
SPECTRUM = np.ones((20, 5), np.float32)
TAR = str(Path(__file__).with_name("none.tar"))
BOXES, LABELS = np.float32([[0.1, 0.1, 0.5, 0.5]]), np.int32([1])

CASES = [
    ("to_decibels", [SPECTRUM], {"reference": 0.0}),
    ("spectrogram", [SIGNAL], {"window_step": 0}),
    ("spectrogram", [SIGNAL], {"window_length": 0}),
    ("spectrogram", [SIGNAL], {"window_length": 16, "window_fn": [1.0] * 8}),
    ("mel_filter_bank", [SPECTRUM], {"nfilter": 0}),
    ("mel_filter_bank", [SPECTRUM], {"sample_rate": 0.0}),
    ("mel_filter_bank", [SPECTRUM], {"freq_low": 9000.0, "freq_high": 100.0}),
    ("mel_filter_bank", [SPECTRUM], {"freq_high": 1e6, "sample_rate": 16000.0}),
    ("preemphasis_filter", [SIGNAL], {"border": "x"}),
    ("audio_resample", [SIGNAL], {}),
    ("audio_resample", [SIGNAL], {"scale": 2.0, "quality": 200.0}),
    ("audio_resample", [SIGNAL], {"scale": 2.0, "out_length": 4}),
    ("transpose", [IMAGE], {"perm": [0, 0, 1]}),
    ("lookup_table", [IMAGE], {"keys": [1], "values": [1.0, 2.0]}),
    ("lookup_table", [IMAGE], {"keys": [-1], "values": [1.0]}),
    ("box_encoder", [BOXES, LABELS], {"anchors": [0.1, 0.2, 0.3]}),
    ("box_encoder", [BOXES, LABELS], {"anchors": [0.1, 0.2, 0.3, 0.4], "criteria": 2.0}),
    ("random_resized_crop", [IMAGE], {"size": [4, 4], "random_area": [0.9, 0.1]}),
    ("random_resized_crop", [IMAGE], {"size": [4, 4, 4]}),
    ("decoders.image_random_crop", [IMAGE[0, 0]], {"random_area": [2.0, 1.0]}),
    ("crop", [IMAGE], {"crop": [1.0, 2.0, 3.0, 4.0]}),
    ("crop", [IMAGE], {"crop": [4.0, 4.0], "crop_h": 4.0, "crop_w": 4.0}),
    ("crop", [IMAGE], {"crop_h": 4.0}),
    ("crop", [IMAGE], {"crop_d": 4.0}),
    ("crop", [IMAGE], {"rounding": "x"}),
    ("resize_crop_mirror", [IMAGE], {"size": [9, 9], "crop_w": 4.0}),
    ("decoders.image_crop", [IMAGE[0, 0]], {"crop": [4.0]}),
    ("slice", [IMAGE], {"start": [0], "rel_start": [0.1], "axes": [0]}),
    ("slice", [IMAGE], {"end": [3], "rel_shape": [0.1], "axes": [0]}),
    ("slice", [IMAGE], {"end": [3], "axes": [0], "axis_names": "H"}),
    ("decoders.image_slice", [IMAGE[0, 0]], {"start": [0, 0], "rel_start": [0.1, 0.1]}),
    ("reshape", [IMAGE], {}),
    ("reshape", [IMAGE], {"shape": [-1], "rel_shape": [1.0]}),
    ("reshape", [IMAGE], {"shape": [0, 3]}),
    ("reshape", [IMAGE], {"rel_shape": []}),
    ("reinterpret", [IMAGE], {}),
    ("squeeze", [IMAGE], {}),
    ("squeeze", [IMAGE], {"axes": [0], "axis_names": "H"}),
    ("expand_dims", [IMAGE], {"axes": [0, 0]}),
    ("expand_dims", [IMAGE], {"axes": [0], "new_axis_names": "AB"}),
    ("tensor_resize", [IMAGE], {"sizes": [3.0], "scales": [0.5]}),
    ("transforms.shear", [], {}),
    ("transforms.shear", [], {"shear": [1.0, 1.0], "angles": [1.0, 1.0]}),
    ("coord_transform", [BOXES], {"MT": [1.0] * 20, "T": [1.0] * 4}),
    ("reductions.sum", [IMAGE], {"axes": [0], "axis_names": "H"}),
    ("reductions.std_dev", [IMAGE, IMAGE], {"axes": [0], "axis_names": "H"}),
    ("normalize", [IMAGE], {"axes": [0], "axis_names": "H"}),
    ("pad", [IMAGE], {"axes": [0], "axis_names": "H"}),
    ("cat", [IMAGE, IMAGE], {"axis": 0, "axis_name": "H"}),
    ("bbox_rotate", [BOXES], {"angle": 1.0, "input_shape": [4, 4], "mode": "x"}),
    ("bbox_rotate", [BOXES], {"angle": 1.0, "input_shape": [4, 4], "remove_threshold": 2.0}),
    ("debayer", [IMAGE], {"blue_position": [9]}),
    ("get_property", [IMAGE], {"key": "x"}),
    ("sequence_rearrange", [IMAGE], {"new_order": []}),
    ("mel_filter_bank", [SPECTRUM], {"freq_high": float("nan")}),
    ("one_hot", [LABELS], {"axis_name": "AB"}),
    ("dump_image", [IMAGE], {"input_layout": "CHW"}),
    ("roi_random_crop", [], {"crop_shape": [2], "roi_start": [0]}),
    ("random_crop_generator", [LABELS], {"random_area": [0.9, 0.1]}),
    ("segmentation.random_mask_pixel", [LABELS], {"value": 1, "threshold": 1.0}),
    ("segmentation.random_object_bbox", [LABELS], {"k_largest": 0}),
    ("power_spectrum", [SIGNAL], {"power": 3}),
    ("filter", [IMAGE, SPECTRUM], {"mode": "x"}),
    ("audio_resample", [SIGNAL], {"scale": 2.0, "dtype": "FLOAT64"}),
    ("peek_image_shape", [IMAGE[0, 0]], {"dtype": "UINT8"}),
    ("sphere", [IMAGE], {"interp_type": "INTERP_CUBIC"}),
    ("rotate", [IMAGE], {}),
    ("cast", [IMAGE], {}),
    ("readers.numpy", [], {"files": ["a.npy"], "roi_start": [0], "rel_roi_start": [0.1]}),
    ("readers.webdataset", [], {"paths": [TAR], "ext": ["jpg"], "dtypes": "BOOL"}),
]
LATE = [
    ("one_hot", [LABELS], {"dtype": "BOOL"}),
    ("crop_mirror_normalize", [IMAGE], {"dtype": "INT64"}),
    ("preemphasis_filter", [SIGNAL], {"dtype": "BOOL"}),
    ("normalize", [SIGNAL], {"dtype": "BOOL"}),
    ("spectrogram", [SIGNAL], {"power": 3}),
    ("rotate", [IMAGE], {"angle": 3.0, "interp_type": "INTERP_CUBIC"}),
    ("filter", [IMAGE, SPECTRUM], {"border": "x"}),
    ("color_space_conversion", [IMAGE], {"image_type": "ANY_DATA", "output_type": "RGB"}),
]
NAMES = [f"{name}-{k}" for k, (name, _, _) in enumerate(CASES)]


def defined(lib, name, data, arguments):
    layouts = {4: "FHWC", 3: "HWC", 2: "ft" if name == "mel_filter_bank" else ""}
    arguments = {
        k: getattr(lib.types, v)
        if isinstance(v, str) and v.isupper() and hasattr(lib.types, v)
        else v
        for k, v in arguments.items()
    }
    pipe = lib.Pipeline(2, 1, None)
    with pipe:
        sources = [
            lib.fn.external_source(repeat([d] * 2), batch=True, layout=layouts.get(d.ndim))
            for d in data
        ]
        function = lib.fn
        for part in name.split("."):
            function = getattr(function, part)
        found = function(*sources, **arguments)
        pipe.set_outputs(*(found if isinstance(found, (list, tuple)) else [found]))
    return pipe


@pytest.mark.sweep
@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("name", "data", "arguments"), CASES, ids=NAMES)
def test_at_build(library, name, data, arguments):
    pipe = defined(LIBRARIES[library], name, data, arguments)
    with pytest.raises(HeadraceError if library == "headrace" else RuntimeError) as caught:
        pipe.build()
    if library == "headrace":
        assert f"fn.{name}" in str(caught.value)
        assert "test_when_errors_arise.py" in str(caught.value)


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("name", "data", "arguments"), LATE, ids=[case[0] for case in LATE])
def test_with_the_first_data(library, name, data, arguments):
    pipe = defined(LIBRARIES[library], name, data, arguments)
    pipe.build()
    with pytest.raises(HeadraceError if library == "headrace" else RuntimeError, match=name):
        pipe.run()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_permutation_of_a_batch_needs_its_size(library):
    ndd = importlib.import_module(f"{LIBRARIES[library].__name__}.experimental.dynamic")
    with pytest.raises(ValueError, match="`batch_size` must be specified"):
        ndd.batch_permutation()
    assert sorted(int(np.asarray(x)) for x in ndd.batch_permutation(batch_size=3)) == [0, 1, 2]


def test_any_integer_is_a_flag_and_any_number_a_probability():
    def graph(lib):
        boxes = lib.types.Constant(BOXES, device="cpu")
        flips = [lib.fn.random.coin_flip(probability=p, shape=9) for p in (3.0, -1.0)]
        return lib.fn.bb_flip(boxes, ltrb=3), lib.fn.bb_flip(boxes, ltrb=-1), *flips

    assert_parity(graph)
