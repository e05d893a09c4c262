"""Operators with arguments drawn at random, for comparisons of any two ways to run them.

Each generator is named like its operator and draws data, their layout and arguments: constants, or
a `PerSample` of one array a sample. What is drawn is meant to be valid, mostly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace import types

INTERP = [
    types.INTERP_NN,
    types.INTERP_LINEAR,
    types.INTERP_CUBIC,
    types.INTERP_LANCZOS3,
    types.INTERP_TRIANGULAR,
    types.INTERP_GAUSSIAN,
]
_SHAPES = {
    "HWC": lambda d, f, h, w, c: (h, w, c),
    "CHW": lambda d, f, h, w, c: (c, h, w),
    "HW": lambda d, f, h, w, c: (h, w),
    "FHWC": lambda d, f, h, w, c: (f, h, w, c),
    "DHWC": lambda d, f, h, w, c: (d, h, w, c),
}
_LARGEST = 1 << 20
"""Of integers: float32, in which much is computed, has them all."""


class PerSample(NamedTuple):
    """An argument that differs from sample to sample."""

    rows: list[np.ndarray]


class Case(NamedTuple):
    """One call of an operator."""

    name: str
    data: list[np.ndarray]
    layout: str
    args: dict[str, Any]


class Draw:
    """What is drawn from: a generator with the words of arguments."""

    def __init__(self, seed: Sequence[int]) -> None:
        self.rng = np.random.default_rng(seed)
        self.size = int(self.rng.integers(1, 5))

    def maybe(self, chance: float = 0.5) -> bool:
        return bool(self.rng.random() < chance)

    def one(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(len(choices)))]

    def integer(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high))

    def number(self, low: float, high: float) -> float:
        return float(np.float32(self.rng.uniform(low, high)))

    def scalar(self, low: float, high: float) -> Any:
        """A number, or one for each sample."""
        if self.maybe():
            return self.number(low, high)
        return PerSample([np.float32(self.number(low, high)) for _ in range(self.size)])

    def flag(self) -> Any:
        """0 or 1, or one for each sample."""
        if self.maybe():
            return self.integer(0, 2)
        return PerSample([np.int32(self.integer(0, 2)) for _ in range(self.size)])

    def vector(self, count: int, low: float, high: float) -> Any:
        """A list of numbers, or one for each sample."""

        def values() -> list[float]:
            return [self.number(low, high) for _ in range(count)]

        if self.maybe():
            return values()
        return PerSample([np.array(values(), np.float32) for _ in range(self.size)])

    def values(self, shape: tuple[int, ...], dtype: str) -> np.ndarray:
        kind = np.dtype(dtype)
        if kind.kind == "f":
            return self.rng.normal(0, 100, shape).astype(kind)
        if kind.kind == "b":
            return self.rng.integers(0, 2, shape).astype(kind)
        limits = np.iinfo(kind)
        low, high = max(limits.min, -_LARGEST), min(limits.max, _LARGEST)
        return self.rng.integers(low, high, shape, endpoint=True).astype(kind)

    def images(
        self,
        layouts: Sequence[str] = ("HWC", "HWC", "CHW", "FHWC", "DHWC"),
        dtypes: Sequence[str] = ("uint8", "uint8", "int16", "float32"),
        channels: int | None = None,
    ) -> tuple[list[np.ndarray], str]:
        """Images, ragged or of one shape, some of them very flat, with their layout."""
        layout, dtype = self.one(layouts), self.one(dtypes)
        count = channels or self.one((1, 3, 3, 4))
        shapes = []
        for _ in range(self.size):
            extents = self.integer(1, 40), self.integer(1, 40)
            if self.maybe(0.2):
                extents = self.integer(1, 4), self.integer(1, 70)
            shapes.append(_SHAPES[layout](self.integer(1, 6), self.integer(1, 4), *extents, count))
        if self.maybe(0.4):
            shapes = shapes[:1] * self.size
        return [self.values(shape, dtype) for shape in shapes], layout

    def signals(self) -> list[np.ndarray]:
        """Walks at random, 50 to 3000 steps long."""
        return [
            np.cumsum(self.rng.normal(0, 0.1, self.integer(50, 3000))).astype(np.float32)
            for _ in range(self.size)
        ]

    def matrices(self, ndim: int) -> list[np.ndarray]:
        """Affine maps not far from the identity, ``(ndim, ndim + 1)``."""
        found = []
        for _ in range(self.size):
            matrix = np.eye(ndim, ndim + 1) + self.rng.normal(0, 0.5, (ndim, ndim + 1))
            matrix[:, ndim] = self.rng.normal(0, 8, ndim)
            found.append(matrix.astype(np.float32))
        return found

    def some(self, chance: float = 0.5, /, **choices: Callable[[], Any]) -> dict[str, Any]:
        """Some of the arguments."""
        return {name: make() for name, make in choices.items() if self.maybe(chance)}


def _space(layout: str) -> int:
    return 3 if "D" in layout else 2


def resize(d: Draw) -> Case:
    data, layout = d.images()
    ndim = _space(layout)
    args: dict[str, Any] = d.one(
        (
            lambda: {"size": d.vector(ndim, 1, 45)},
            lambda: {"resize_x": d.scalar(1, 50)},
            lambda: {"resize_y": d.scalar(1, 50)},
            lambda: {"resize_x": d.scalar(1, 50), "resize_y": d.scalar(1, 50)},
            lambda: {"resize_shorter": d.scalar(1, 50)},
            lambda: {"resize_longer": d.scalar(1, 50)},
        )
    )()
    if not {"resize_shorter", "resize_longer"} & set(args) and d.maybe():
        args["mode"] = d.one(("default", "stretch", "not_larger", "not_smaller"))
    args |= d.some(
        0.3,
        interp_type=lambda: d.one(INTERP),
        mag_filter=lambda: d.one(INTERP[1:]),
        min_filter=lambda: d.one(INTERP[1:]),
        antialias=d.maybe,
        subpixel_scale=d.maybe,
        max_size=lambda: d.number(5, 40),
        dtype=lambda: types.FLOAT,
    )
    if args.get("interp_type") == types.INTERP_NN:
        # Where one axis takes the nearest and others do not, DALI 2.4 shifts regions twice.
        args = {k: v for k, v in args.items() if k not in ("mag_filter", "min_filter")}
    if d.maybe(0.3):
        ends = [[d.number(0, 0.4) for _ in range(ndim)], [d.number(0.5, 1) for _ in range(ndim)]]
        if d.maybe(0.3):
            ends.reverse()
        args |= {"roi_relative": True, "roi_start": ends[0], "roi_end": ends[1]}
    return Case("resize", data, layout, args)


def crop(d: Draw) -> Case:
    data, layout = d.images(dtypes=("uint8", "int16", "float32", "float16", "int64"))
    names = ("crop_h", "crop_w", "crop_d")[: _space(layout)]
    if d.maybe():
        args: dict[str, Any] = {"crop": [d.number(1, 20) for _ in names]}
    else:
        args = {name: d.scalar(1, 4 if name == "crop_d" else 20) for name in names}
    args |= d.some(
        crop_pos_x=lambda: d.scalar(0, 1),
        crop_pos_y=lambda: d.scalar(0, 1),
        out_of_bounds_policy=lambda: d.one(("pad", "trim_to_shape")),
        fill_values=lambda: d.number(0, 200),
        dtype=lambda: d.one((types.UINT8, types.FLOAT, types.FLOAT16)),
        rounding=lambda: d.one(("round", "truncate")),
    )
    return Case("crop", data, layout, args)


def crop_mirror_normalize(d: Draw) -> Case:
    data, layout = d.images(
        ("HWC", "HWC", "CHW", "FHWC"), ("uint8", "int16", "float32", "int32", "uint16")
    )
    channels = data[0].shape[layout.index("C")]
    frames = "F" if layout == "FHWC" else ""
    args = d.some(
        crop=lambda: [d.integer(1, 20), d.integer(1, 20)],
        crop_pos_x=lambda: d.scalar(0, 1),
        crop_pos_y=lambda: d.scalar(0, 1),
        fill_values=lambda: d.number(0, 120),  # of INT8, too
        mean=lambda: [d.number(0, 200) for _ in range(d.one((1, channels)))],
        std=lambda: [d.number(1, 90) for _ in range(d.one((1, channels)))],
        scale=lambda: d.number(0.1, 3),
        shift=lambda: d.number(-3, 3),
        mirror=d.flag,
        dtype=lambda: d.one((types.FLOAT, types.FLOAT16, types.UINT8, types.INT8)),
        output_layout=lambda: frames + d.one(("CHW", "HWC")),
        pad_output=d.maybe,
    )
    args["out_of_bounds_policy"] = d.one(("pad", "trim_to_shape"))
    return Case("crop_mirror_normalize", data, layout, args)


def flip(d: Draw) -> Case:
    data, layout = d.images(dtypes=("uint8", "int16", "float32", "int64"))
    return Case("flip", data, layout, d.some(horizontal=d.flag, vertical=d.flag, depthwise=d.flag))


def rotate(d: Draw) -> Case:
    data, layout = d.images(("HWC", "FHWC", "DHWC"), ("uint8", "int16", "float32"))
    angles = (lambda: d.scalar(-400, 400), lambda: float(d.one((0, 90, 180, 270, -90, 45))))
    args: dict[str, Any] = {"angle": d.one(angles)()}
    if layout == "DHWC":
        args["axis"] = [d.number(-1, 1) for _ in range(3)]
    args |= d.some(
        fill_value=lambda: d.number(-10, 300),
        interp_type=lambda: d.one(INTERP[:2]),
        dtype=lambda: types.FLOAT,
    )
    args |= d.one(
        (
            dict,
            lambda: {"keep_size": d.maybe()},
            lambda: {"size": [d.number(1, 40) for _ in range(_space(layout))]},
        )
    )()
    return Case("rotate", data, layout, args)


def warp_affine(d: Draw) -> Case:
    data, layout = d.images(("HWC", "HWC", "FHWC", "DHWC"), ("uint8", "int16", "float32"))
    ndim = _space(layout)
    matrices = d.matrices(ndim)
    whole = matrices[0].ravel().tolist()
    args: dict[str, Any] = {"matrix": whole if d.maybe() else PerSample(matrices)}
    args |= d.some(
        fill_value=lambda: d.number(-10, 300),
        interp_type=lambda: d.one(INTERP[:2]),
        inverse_map=d.maybe,
        size=lambda: d.vector(ndim, 1, 40),
        dtype=lambda: types.FLOAT,
    )
    return Case("warp_affine", data, layout, args)


def brightness_contrast(d: Draw) -> Case:
    data, layout = d.images(("HWC", "FHWC", "DHWC"), ("uint8", "int16", "float32"))
    args = d.some(
        brightness=lambda: d.scalar(-1, 3),
        brightness_shift=lambda: d.scalar(-1, 1),
        contrast=lambda: d.scalar(-1, 3),
        contrast_center=lambda: d.scalar(-1, 300),
        dtype=lambda: d.one((types.UINT8, types.INT16, types.FLOAT)),
    )
    return Case("brightness_contrast", data, layout, args)


def hsv(d: Draw) -> Case:
    data, layout = d.images(("HWC", "FHWC", "DHWC"), channels=3)
    args = d.some(
        hue=lambda: d.scalar(-400, 400),
        saturation=lambda: d.scalar(0, 3),
        value=lambda: d.scalar(0, 2),
        dtype=lambda: d.one((types.UINT8, types.INT16, types.FLOAT)),
    )
    return Case("hsv", data, layout, args)


def color_twist(d: Draw) -> Case:
    data, layout = d.images(("HWC", "FHWC", "DHWC"), channels=3)
    args = d.some(
        hue=lambda: d.scalar(-400, 400),
        saturation=lambda: d.scalar(0, 3),
        brightness=lambda: d.scalar(0, 2),
        contrast=lambda: d.scalar(0, 2),
        dtype=lambda: d.one((types.UINT8, types.INT16, types.FLOAT)),
    )
    return Case("color_twist", data, layout, args)


def color_space_conversion(d: Draw) -> Case:
    spaces = {types.RGB: 3, types.BGR: 3, types.GRAY: 1, types.YCbCr: 3}
    given, wanted = d.one(list(spaces)), d.one(list(spaces))
    data, layout = d.images(("HWC", "FHWC", "DHWC"), ("uint8",), spaces[given])
    return Case(
        "color_space_conversion", data, layout, {"image_type": given, "output_type": wanted}
    )


def gaussian_blur(d: Draw) -> Case:
    data, layout = d.images()
    ndim = _space(layout)
    sigmas = (lambda: d.scalar(0.1, 4), lambda: [d.number(0.1, 4) for _ in range(ndim)])
    sizes = (lambda: d.one((1, 3, 5, 9)), lambda: [d.one((1, 3, 5, 9)) for _ in range(ndim)])
    args = d.some(
        sigma=lambda: d.one(sigmas)(),
        window_size=lambda: d.one(sizes)(),
        dtype=lambda: types.FLOAT,
    )
    if not {"sigma", "window_size"} & set(args):
        args["sigma"] = d.number(0.1, 3)
    return Case("gaussian_blur", data, layout, args)


def normalize(d: Draw) -> Case:
    data, layout = d.images(("HWC", "CHW", "HW"), ("uint8", "int16", "float32"))
    ndim = data[0].ndim
    args = d.some(
        0.3,
        mean=lambda: d.number(-10, 100),
        stddev=lambda: d.number(1, 100),
        scale=lambda: d.number(0.1, 60),
        shift=lambda: d.number(-10, 100),
        dtype=lambda: d.one((types.UINT8, types.INT16, types.FLOAT)),
    )
    args["epsilon"] = d.number(0.01, 1)
    if d.maybe(0.6):
        axes = d.rng.choice(ndim, d.integer(1, ndim + 1), replace=False)
        args["axes"] = sorted(axes.tolist())
    return Case("normalize", data, layout, args)


def slice_(d: Draw) -> Case:
    data, layout = d.images(("HWC", "CHW", "HW"), ("uint8", "int16", "float32", "float16"))
    axes = d.one(([0, 1], [1], [0]))
    count = len(axes)
    args: dict[str, Any] = d.one(
        (
            lambda: {
                "start": [d.integer(0, 5) for _ in axes],
                "shape": [d.integer(1, 12) for _ in axes],
            },
            lambda: {"rel_start": d.vector(count, 0, 0.5), "rel_end": d.vector(count, 0.5, 1)},
            lambda: {"rel_start": d.vector(count, -0.2, 0.5), "rel_shape": d.vector(count, 0.1, 1)},
            lambda: {
                "start": [d.integer(-2, 5) for _ in axes],
                "end": [d.integer(5, 20) for _ in axes],
            },
        )
    )()
    args |= {"axes": axes, "out_of_bounds_policy": d.one(("pad", "trim_to_shape"))}
    args |= d.some(0.3, fill_values=lambda: d.number(0, 100), dtype=lambda: types.FLOAT)
    return Case("slice", data, layout, args)


def pad(d: Draw) -> Case:
    data, layout = d.images(("HWC", "CHW", "HW"), ("uint8", "int16", "float32", "int64"))
    args = d.some(fill_value=lambda: d.number(-3, 100), align=lambda: [d.one((1, 4, 16))])
    if d.maybe():
        args["axes"] = d.one(([0, 1], [1]))
        if d.maybe():
            args["shape"] = [d.one((-1, 50)) for _ in args["axes"]]
    return Case("pad", data, layout, args)


def transpose(d: Draw) -> Case:
    data, layout = d.images(("HWC", "CHW", "HW", "FHWC"), ("uint8", "int16", "float32", "int64"))
    args = d.some(transpose_layout=d.maybe)
    args["perm"] = d.rng.permutation(data[0].ndim).tolist()
    return Case("transpose", data, layout, args)


def cast(d: Draw) -> Case:
    kinds = ("uint8", "int8", "uint16", "int16", "int32", "int64", "float16", "float32", "float64")
    data, layout = d.images(("HWC", "HW"), kinds)
    wanted = d.one([types.DALIDataType(k) for k in range(12)])
    return Case("cast", data, layout, {"dtype": wanted})


def spectrogram(d: Draw) -> Case:
    nfft = d.one((16, 64, 100, 256))
    args = d.some(
        power=lambda: d.integer(1, 3),
        center_windows=d.maybe,
        reflect_padding=d.maybe,
        layout=lambda: d.one(("ft", "tf")),
    )
    args |= {
        "nfft": nfft,
        "window_length": min(nfft, d.one((8, 16, 33, 50))),
        "window_step": d.one((3, 8, 20)),
    }
    return Case("spectrogram", d.signals(), "", args)


def mel_filter_bank(d: Draw) -> Case:
    data = [
        np.abs(d.rng.normal(0, 1, (33, d.integer(1, 40)))).astype(np.float32) for _ in range(d.size)
    ]
    args = d.some(
        freq_low=lambda: d.number(0, 500),
        freq_high=lambda: d.number(1000, 4000),
        normalize=d.maybe,
        mel_formula=lambda: d.one(("slaney", "htk")),
    )
    args |= {"nfilter": d.integer(2, 20), "sample_rate": d.number(8000, 44100)}
    return Case("mel_filter_bank", data, "ft", args)


def audio_resample(d: Draw) -> Case:
    args: dict[str, Any] = d.one(
        (
            lambda: {"in_rate": d.scalar(100, 200), "out_rate": d.scalar(50, 400)},
            lambda: {"scale": d.scalar(0.3, 3)},
            lambda: {"out_length": d.integer(10, 2000)},
        )
    )()
    args |= d.some(quality=lambda: d.number(0, 100))
    return Case("audio_resample", d.signals(), "", args)


def preemphasis_filter(d: Draw) -> Case:
    args = d.some(
        preemph_coeff=lambda: d.scalar(0, 1),
        border=lambda: d.one(("zero", "clamp", "reflect")),
    )
    return Case("preemphasis_filter", d.signals(), "", args)


GENERATORS: dict[str, Callable[[Draw], Case]] = {
    make.__name__.rstrip("_"): make
    for make in (
        audio_resample,
        brightness_contrast,
        cast,
        color_space_conversion,
        color_twist,
        crop,
        crop_mirror_normalize,
        flip,
        gaussian_blur,
        hsv,
        mel_filter_bank,
        normalize,
        pad,
        preemphasis_filter,
        resize,
        rotate,
        slice_,
        spectrogram,
        transpose,
        warp_affine,
    )
}


def draw(name: str, *seed: int) -> Case:
    """A case of operator `name`, always the same for a seed."""
    return GENERATORS[name](Draw(seed))
