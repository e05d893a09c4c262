"""Calls of operators on typical data, as both libraries take them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.support.operator_feeds import HEIGHT, MEL_BANDS, WIDTH

Argument = Any
"""A value, the name of a member of `types`, or a function of the library that makes an edge."""


@dataclass(frozen=True)
class OperatorCall:
    """One operator, what it is fed, and its arguments."""

    operator: str
    feeds: tuple[str, ...] = ()
    args: dict[str, Argument] = field(default_factory=dict)
    note: str = ""
    """What tells it from others of this operator."""
    written: Callable[..., Any] | None = None
    """``written(lib, *inputs)`` for what is not called by the operator's name."""

    @property
    def name(self) -> str:
        """What tables call it."""
        return ", ".join(filter(None, [self.operator, self.note]))

    def outputs(self, lib: Any, *inputs: Any) -> tuple[Any, ...]:
        """The edges it makes of these in a pipeline of `lib`."""
        if self.written is not None:
            made = self.written(lib, *inputs)
        else:
            function = lib.fn
            for part in self.operator.split("."):
                function = getattr(function, part)
            args = {name: _value(lib, value) for name, value in self.args.items()}
            made = function(*inputs, **args)
        return tuple(made) if isinstance(made, (list, tuple)) else (made,)


def _value(lib: Any, given: Argument) -> Any:
    if callable(given):
        return given(lib)
    return getattr(lib.types, given, given) if isinstance(given, str) else given


def _call(operator: str, *feeds: str, note: str = "", **args: Argument) -> OperatorCall:
    return OperatorCall(operator, feeds, args, note)


def _written(operator: str, note: str, made: Callable[..., Any], *feeds: str) -> OperatorCall:
    return OperatorCall(operator, feeds, note=note, written=made)


def _drawn(*bounds: float) -> Argument:
    return lambda lib: lib.fn.random.uniform(range=list(bounds))


def _coin(lib: Any) -> Any:
    return lib.fn.random.coin_flip()


def _fed(lib: Any, data: Any) -> Any:
    return data


_ANCHORS = np.sort(np.random.default_rng(1).random((2000, 2, 2), np.float32), axis=1)
_MIDDLE = {"crop": [224, 224]}
_NORMALIZED = {"mean": [123.7, 116.3, 103.5], "std": [58.4, 57.1, 57.4]}

PIXELS = [
    _call("brightness", "images", brightness=1.2),
    _call("brightness_contrast", "images", brightness=1.2, contrast=0.8),
    _call("cast", "images", dtype="FLOAT"),
    _call("cast", "float images", note="to uint8", dtype="UINT8"),
    _call("clahe", "images", tiles_x=8, tiles_y=8, clip_limit=2.0),
    _call("color_space_conversion", "images", image_type="RGB", output_type="YCbCr"),
    _call("color_space_conversion", "images", note="grey", image_type="RGB", output_type="GRAY"),
    _call("color_twist", "images", hue=20.0, saturation=0.8, brightness=1.1, contrast=0.9),
    _call("color_twist", "images", note="drawn hue", hue=_drawn(-20, 20)),
    _call("contrast", "images", contrast=0.8),
    _call("copy", "images"),
    _call("crop", "images", **_MIDDLE),
    _call("crop", "images", note="drawn place", crop_pos_x=_drawn(0, 1), **_MIDDLE),
    _call("crop_mirror_normalize", "images", mirror=_coin, **_MIDDLE, **_NORMALIZED),
    _call("crop_mirror_normalize", "small images", note="32 x 32", mirror=_coin, **_NORMALIZED),
    _call("debayer", "grey images", blue_position=[0, 1]),
    _call("equalize", "images"),
    _call("erase", "images", anchor=[40, 60], shape=[80, 90], axes=[0, 1]),
    _call("experimental.warp_perspective", "images", "perspectives"),
    _call("filter", "images", "taps"),
    _call("flip", "images"),
    _call("flip", "images", note="vertical", horizontal=0, vertical=1),
    _call("flip", "small images", note="32 x 32, drawn", horizontal=_coin),
    _call("gaussian_blur", "images", sigma=1.5),
    _call("grid_mask", "images", tile=50, angle=0.3),
    _call("hsv", "images", hue=20.0, saturation=0.8, value=1.1),
    _call("hue", "images", hue=20.0),
    _call("jpeg_compression_distortion", "images", quality=50),
    _call("laplacian", "images", window_size=3),
    _call("lookup_table", "images", keys=[1], values=[3], dtype="UINT8"),
    _call("multi_paste", "images", "images", output_size=[HEIGHT, 2 * WIDTH]),
    _call("noise.gaussian", "middle images", stddev=10.0),
    _call("noise.salt_and_pepper", "middle images", prob=0.1),
    _call("noise.shot", "small images", factor=10.0),
    _call("normalize", "images", axes=[0, 1]),
    _call("pad", "images", shape=[HEIGHT + 20, WIDTH + 20, 3]),
    _call("paste", "images", ratio=1.5, fill_value=[1, 2, 3]),
    _call("random_resized_crop", "images", size=[224, 224]),
    _call("resize", "images", size=[224, 224]),
    _call("resize", "images", note="cubic", size=[224, 224], interp_type="INTERP_CUBIC"),
    _call("resize", "images", note="linear", size=[224, 224], antialias=False),
    _call("resize", "images", note="nearest", size=[224, 224], interp_type="INTERP_NN"),
    _call("resize", "images", note="larger", size=[540, 720]),
    _call("resize_crop_mirror", "images", resize_shorter=256.0, mirror=_coin, **_MIDDLE),
    _call("rotate", "images", angle=_drawn(-30, 30), fill_value=0.0),
    _call("saturation", "images", saturation=0.8),
    _call("slice", "images", start=[20, 30], shape=[224, 224], axes=[0, 1]),
    _call("sphere", "images"),
    _call("sphere", "images", note="linear", interp_type="INTERP_LINEAR"),
    _call("tensor_resize", "volumes", sizes=[16, 32, 32]),
    _call("transpose", "images", perm=[2, 0, 1]),
    _call("warp_affine", "images", "affine maps", fill_value=0.0),
    _call("water", "images"),
    _written("_arithmetic_generic_op", "x * 1.5 + 3", lambda lib, x: x * 1.5 + 3, "images"),
    _written("_arithmetic_generic_op", "x > 100", lambda lib, x: x > 100, "images"),
    _written("_arithmetic_generic_op", "numbers", lambda lib, x: x * 2 + 1, "numbers"),
    _written("_tensor_subscript", "x[20:200, ::2]", lambda lib, x: x[20:200, ::2], "images"),
]

FILES = [
    _call("decoders.image", "jpegs", note="JPEG"),
    _call("decoders.image", "jpegs", note="JPEG, grey", output_type="GRAY"),
    _call("decoders.image", "pngs", note="PNG"),
    _call("decoders.image", "bmps", note="BMP"),
    _call("decoders.image", "tiffs", note="TIFF"),
    _call("decoders.image", "webps", note="WebP"),
    _call("decoders.image", "jpeg 2000s", note="JPEG 2000"),
    _call("decoders.image_crop", "jpegs", **_MIDDLE),
    _call("decoders.image_random_crop", "jpegs"),
    _call("decoders.image_slice", "jpegs", start=[20, 30], shape=[224, 224]),
    _call("decoders.numpy", "arrays in files"),
    _call("peek_image_shape", "jpegs"),
    _call("io.file.read", "file names"),
    *(
        _call("decoders.audio", kind, note=kind)
        for kind in ("WAV", "WAV, 24 bits", "FLAC", "OGG, Vorbis", "OGG, Opus")
    ),
]

SOUNDS = [
    _call("audio_resample", "clips", in_rate=16000.0, out_rate=22050.0),
    _call("mel_filter_bank", "power spectra", nfilter=MEL_BANDS, sample_rate=16000.0),
    _call("mfcc", "mel spectra", n_mfcc=20),
    _call("nonsilent_region", "clips"),
    _call("power_spectrum", "clips", nfft=16000),
    _call("preemphasis_filter", "clips"),
    _call("spectrogram", "clips", nfft=512, window_length=400, window_step=160),
    _call("to_decibels", "mel spectra"),
    _call("slice", "clips", note="part of a clip", rel_start=[0.3], shape=[8000], axes=[0]),
]

SMALL = [
    _call("bb_flip", "boxes", ltrb=True, horizontal=_coin),
    _call("bbox_paste", "boxes", ratio=1.5, ltrb=True),
    _call("bbox_rotate", "boxes", "labels of boxes", angle=20.0, input_shape=[HEIGHT, WIDTH]),
    _call("box_encoder", "boxes", "labels of boxes", anchors=_ANCHORS.reshape(-1).tolist()),
    _call(
        "random_bbox_crop",
        *("boxes", "labels of boxes"),
        scaling=[0.3, 1.0],
        aspect_ratio=[0.5, 2.0],
        thresholds=[0.0, 0.1, 0.3],
        num_attempts=10,
    ),
    _call("random_crop_generator", "shapes"),
    _call("coord_flip", "landmarks"),
    _call("coord_transform", "landmarks", M=[0.9, 0.1, -0.1, 0.9], T=[0.1, 0.2]),
    _written(
        "coord_transform",
        "maps of samples",
        lambda lib, x, maps: lib.fn.coord_transform(x, MT=maps),
        *("landmarks", "affine maps"),
    ),
    _call("transforms.combine", "affine maps", "affine maps"),
    _call("transforms.crop", from_end=[4.0, 5.0]),
    _call("transforms.rotation", angle=_drawn(-30, 30)),
    _call("transforms.scale", scale=[2.0, 0.5]),
    _call("transforms.shear", shear=[0.1, 0.5]),
    _call("transforms.translation", offset=[1.0, 2.0]),
    _call("segmentation.random_mask_pixel", "masks", foreground=1),
    _call("segmentation.random_object_bbox", "masks", output_class=True),
    _call("segmentation.select_masks", "mask numbers", "polygons", "vertices"),
    _call("roi_random_crop", crop_shape=[5, 6], roi_start=[1, 2], roi_shape=[50, 60]),
    _call("one_hot", "labels", num_classes=10),
    _call("one_hot", "masks", note="masks", num_classes=21),
    _call("lookup_table", "labels", note="labels", keys=[1], values=[3], dtype="INT32"),
    _call("cast", "labels", note="labels", dtype="INT64"),
    _call("copy", "labels", note="labels"),
    _call("reshape", "labels", note="labels", shape=[]),
    _call("cat", "labels", "labels", note="labels", axis=0),
    _call("stack", "labels", "labels", note="labels"),
]

SHAPES = [
    _written("external_source", "images", _fed, "images"),
    _written("external_source", "labels", _fed, "labels"),
    _call("cast_like", "images", "float images"),
    _call("cat", "images", "images", note="rows", axis=0),
    _call("cat", "images", "images", note="columns", axis=1),
    _call("cat", "images", "images", note="channels", axis=2),
    _call("stack", "images", "images"),
    _call("element_extract", "videos", element_map=[0, 4]),
    _call("sequence_rearrange", "videos", new_order=[7, 6, 5, 4, 3, 2, 1, 0]),
    _call("expand_dims", "images", axes=[0]),
    _call("squeeze", "labels", axes=[0]),
    _call("full", "numbers", shape=[100, 100]),
    _call("full_like", "middle images", "numbers"),
    _call("get_property", "images", key="layout"),
    _call("ones", shape=[100, 100]),
    _call("ones_like", "middle images"),
    _call("zeros", shape=[100, 100]),
    _call("zeros_like", "middle images"),
    _call("per_frame", "affine maps"),
    _call("permute_batch", "images", indices=lambda lib: lib.fn.batch_permutation()),
    _call("batch_permutation"),
    _call("reinterpret", "images", dtype="INT8"),
    _call("reshape", "images", shape=[-1, 3]),
    *(
        _call(f"reductions.{name}", feed, note=note, axes=axes)
        for name in ("max", "min", "sum", "mean", "mean_square", "rms")
        for note, feed, axes in (
            ("of channels", "images", [0, 1]),
            ("of pixels", "float images", [2]),
            ("along time", "mel spectra", [1]),
            ("along the first axis", "mel spectra", [0]),
        )
    ),
    *(
        _call(f"reductions.{name}", "images", "means", axes=[0, 1], keep_dims=True)
        for name in ("std_dev", "variance")
    ),
]

DRAWS = [
    _call("random.beta", alpha=0.5, beta=2.0, shape=[1000]),
    _call("random.choice", "vectors", shape=[1000]),
    _call("random.coin_flip"),
    _call("random.coin_flip", note="100,000", shape=[100_000]),
    _call("random.normal"),
    _call("random.normal", note="100,000", shape=[100_000]),
    _call("random.uniform"),
    _call("random.uniform", note="100,000", shape=[100_000]),
]

CALLS = {call.name: call for call in (*PIXELS, *FILES, *SOUNDS, *SMALL, *SHAPES, *DRAWS)}
"""All of them by name."""

ELSEWHERE = {
    "readers": "bench:index, bench:sources and compare:run",
    "experimental.readers": "bench:video",
    "experimental.inputs": "bench:video",
    "decoders.video": "bench:video",
    "dump_image": "it writes files",
    "dl_tensor_python_function": "what it takes is its function's",
    "python_function": "what it takes is its function's",
}
"""Modules and operators of DALI's that are measured elsewhere or not at all, and the reason."""
