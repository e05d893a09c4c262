"""`crop_mirror_normalize` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import types
from tests.parity.support import assert_both_raise, assert_parity

MEAN = [123.675, 116.28, 103.53]
STD = [58.395, 57.12, 57.375]
OUT_TYPES = [types.FLOAT, types.FLOAT16, types.UINT8, types.INT8]
LAYOUTS = {
    "HWC": (12, 19, 3),
    "CHW": (3, 12, 19),
    "DHWC": (4, 12, 19, 3),
    "CDHW": (3, 4, 12, 19),
    "FHWC": (4, 12, 19, 3),
    "FCHW": (4, 3, 12, 19),
    "CFHW": (3, 4, 12, 19),
    "FDHWC": (2, 4, 12, 19, 3),
    "FCDHW": (2, 3, 4, 12, 19),
    "CFDHW": (3, 2, 4, 12, 19),
}


def _data(*shapes, dtype=np.uint8, seed=0):
    rng = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "f":
        return [rng.uniform(-50, 300, s).astype(dtype) for s in shapes]
    return [rng.integers(0, 120 if dtype == np.int8 else 256, s).astype(dtype) for s in shapes]


RAGGED = _data((40, 57, 3), (33, 31, 3), (64, 48, 3), (31, 16, 3))


def _normalize(**kwargs):
    return lambda lib, data: lib.fn.crop_mirror_normalize(data, **kwargs)


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("dtype", OUT_TYPES)
@pytest.mark.parametrize("layout", ["CHW", "HWC"])
@pytest.mark.parametrize("mirror", [0, 1])
@pytest.mark.parametrize("pad", [False, True])
def test_main_path(dtype, layout, mirror, pad):
    kwargs = {"mean": MEAN, "std": STD, "dtype": dtype, "mirror": mirror, "pad_output": pad}
    exact(_normalize(**kwargs, output_layout=layout), RAGGED, layouts="HWC")
    exact(_normalize(**kwargs, crop=(28, 16), output_layout=layout), RAGGED, layouts="HWC")
    exact(_normalize(**kwargs, crop=(9, 5), output_layout=layout), RAGGED, layouts="HWC")


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.uint16, np.int32, np.float16, np.float32])
@pytest.mark.parametrize("out", OUT_TYPES)
def test_types(dtype, out):
    data = _data((20, 31, 3), (17, 16, 3), (1, 1, 3), dtype=dtype)
    # Halfway between two float16 DALI rounds away from zero, and we as IEEE 754 does.
    relative = 1e-3 if out == types.FLOAT16 else 0
    for kwargs in ({"mean": [30], "std": [7.5]}, {"mirror": 1, "output_layout": "HWC"}):
        assert_parity(
            _normalize(**kwargs, dtype=out),
            data,
            layouts="HWC",
            max_levels=0,
            relative=relative,
            absolute=0,
        )


@pytest.mark.parametrize(
    "kwargs",
    [
        {"scale": 0.5},
        {"shift": 3.25},
        {"scale": 1 / 255, "shift": 0.1, "mean": MEAN, "std": STD},
        {"scale": 3.7, "shift": -1.3, "mean": MEAN, "std": STD},
        {"mean": MEAN, "std": [2.0]},
        {"mean": [2.0], "std": STD},
        {"scale": 40, "shift": 64, "mean": MEAN, "std": STD, "dtype": types.UINT8},
        {"scale": 40.1, "shift": -10, "mean": MEAN, "std": STD, "dtype": types.INT8},
        {"scale": 0.5, "dtype": types.UINT8},
        {"scale": 0.5, "shift": -30, "dtype": types.INT8},
        {"std": [0.0]},
        {"scale": 0.0},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:.*`std(dev)?` is 0")
def test_arithmetic(kwargs):
    exact(_normalize(**kwargs), RAGGED, layouts="HWC")


@pytest.mark.parametrize("layout", list(LAYOUTS))
def test_every_order_of_the_axes(layout):
    # Plain letters in all orders are many; these move each axis to each place.
    orders = {layout, layout[::-1]} | {layout[k:] + layout[:k] for k in range(len(layout))}
    data = _data(LAYOUTS[layout])
    for order in sorted(orders):
        for kwargs in ({}, {"mirror": 1, "crop": (7, 9)}, {"pad_output": True, "mirror": 1}):
            exact(
                _normalize(mean=MEAN, std=STD, output_layout=order, **kwargs),
                data,
                layouts=layout,
            )
    exact(_normalize(output_layout=""), data, layouts=layout)


@pytest.mark.sweep
@pytest.mark.parametrize("channels", [1, 2, 3, 4, 5, 9])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_channels(channels, layout):
    shape = (18, 21, channels) if layout == "HWC" else (channels, 18, 21)
    values = [10.0 + c for c in range(channels)]
    for kwargs in (
        {"output_layout": "CHW"},
        {"output_layout": "HWC"},
        {"output_layout": "HWC", "mirror": 1, "pad_output": True},
        {"output_layout": "CHW", "mirror": 1, "pad_output": True},
    ):
        exact(_normalize(mean=values, std=[3], **kwargs), _data(shape), layouts=layout)


@pytest.mark.sweep
@pytest.mark.parametrize(
    "window",
    [
        {"crop": (11, 13)},
        {"crop": (11.9, 13.2), "crop_pos_x": 0.13, "crop_pos_y": 0.77},
        {"crop_h": 11, "crop_w": 14, "crop_pos_x": 1.0},
        {"crop": (10, 14), "rounding": "truncate", "crop_pos_x": 0.9},
        {"crop": (0, 9)},
        {"crop": (3, 11, 13), "crop_pos_z": 0.9},
        {"crop_h": 9, "crop_w": 8, "crop_d": 2},
    ],
    ids=str,
)
@pytest.mark.parametrize("layout", ["HWC", "CHW", "DHWC", "FHWC", "CFHW"])
def test_windows(window, layout):
    exact(
        _normalize(**window, mirror=1, output_layout=layout),
        _data(LAYOUTS[layout]),
        layouts=layout,
    )


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("policy", ["pad", "constant", "trim_to_shape"])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("mirror", [0, 1])
def test_out_of_bounds(policy, layout, mirror):
    for fill in ([5.5], [1.0, 2.0, 3.5], [1.0, 2.0, 3.5, 9.0], []):
        kwargs = {
            "out_of_bounds_policy": policy,
            "fill_values": fill,
            "mirror": mirror,
            "output_layout": layout,
            "pad_output": len(fill) == 4,
            "mean": MEAN,
            "std": STD,
        }
        for window in (
            {"crop": (44, 13)},
            {"crop": (20, 70), "crop_pos_x": 0.2},
            {"crop": (70, 70), "crop_pos_y": 0.9},
        ):
            for dtype in (types.FLOAT, types.UINT8):
                exact(_normalize(**kwargs, **window, dtype=dtype), RAGGED, layouts="HWC")


def test_out_of_bounds_of_volumes():
    for layout in ("DHWC", "CDHW"):
        exact(
            _normalize(
                crop=(9, 10, 25),
                crop_pos_z=0.3,
                out_of_bounds_policy="pad",
                fill_values=[7],
                output_layout="DCHW",
                mirror=1,
            ),
            _data(LAYOUTS[layout]),
            layouts=layout,
        )


def test_fill_of_padded_channels():
    for policy in ("error", "pad", "trim_to_shape"):
        for layout in ("HWC", "CHW"):
            exact(
                _normalize(
                    pad_output=True,
                    fill_values=[7.25],
                    out_of_bounds_policy=policy,
                    output_layout=layout,
                    mean=[*MEAN, 1.0],
                    std=[*STD, 2.0],
                ),
                RAGGED,
                layouts="HWC",
            )


def test_arguments_by_sample():
    rng = np.random.default_rng(1)
    many = len(RAGGED)
    mirrors = [np.array(k % 2, np.int32) for k in range(many)]
    means = [rng.uniform(50, 150, 3).astype(np.float32) for _ in range(many)]
    stds = [rng.uniform(5, 50, 3).astype(np.float32) for _ in range(many)]
    places = [np.array(v, np.float32) for v in rng.uniform(0, 1, many)]
    crops = [np.array([5 + k, 16 - k], np.float32) for k in range(many)]

    def graph(lib, data, mirror, mean, std, place, crop):
        normalize = lib.fn.crop_mirror_normalize
        return (
            normalize(data, mirror=mirror, mean=mean, std=std),
            normalize(data, mirror=mirror, mean=mean, std=[3.0]),
            normalize(data, crop=crop, crop_pos_x=place, crop_pos_y=place, output_layout="HWC"),
            normalize(
                data,
                crop_h=9,
                crop_w=place * 10 + 1,
                mirror=lib.fn.cast(mirror, dtype=lib.types.INT32),
            ),
        )

    exact(
        graph,
        RAGGED,
        mirrors,
        means,
        stds,
        places,
        crops,
        layouts=["HWC", "", "", "", "", ""],
    )


def test_one_value_by_sample():
    means = [np.array(v, np.float32) for v in (3.0, 4.0, 5.0, 6.0)]
    exact(
        lambda lib, data, mean: lib.fn.crop_mirror_normalize(data, mean=mean),
        RAGGED,
        means,
        layouts=["HWC", ""],
    )


def test_layout_that_is_not_given():
    exact(_normalize(mean=MEAN), _data((5, 6, 3)))
    exact(_normalize(mean=MEAN, output_layout="CDHW"), _data((2, 5, 6, 3)))


def test_empty():
    for shape in ((0, 8, 3), (8, 0, 3), (0, 0, 3)):
        exact(_normalize(), _data(shape), layouts="HWC")
    exact(
        _normalize(crop=(2, 20), out_of_bounds_policy="pad", fill_values=[3]),
        _data((0, 0, 3)),
        layouts="HWC",
    )
    exact(_normalize(output_layout="FCHW"), _data((0, 4, 5, 3)), layouts="FHWC")


def test_special_values():
    values = np.array([np.nan, np.inf, -np.inf, 1e30, -1e30, 0.5], np.float32)
    data = [np.tile(values, 24).reshape(4, 12, 3)]
    for dtype in OUT_TYPES:
        exact(_normalize(dtype=dtype, mirror=1), data, layouts="HWC")


def test_deprecated_arguments():
    with pytest.warns(DeprecationWarning, match="output_dtype"):
        exact(_normalize(output_dtype=types.UINT8), RAGGED, layouts="HWC")
    with pytest.warns(DeprecationWarning, match="image_type"):
        exact(_normalize(image_type=types.RGB), RAGGED, layouts="HWC")


@pytest.mark.parametrize(
    "kwargs",
    [
        {"mean": [1.0, 2.0]},
        {"mean": [1.0, 2.0, 3.0, 4.0]},
        {"mean": [1.0, 2.0, 3.0], "std": [1.0, 2.0]},
        {"dtype": types.INT16},
        {"dtype": types.FLOAT64},
        {"output_layout": "HW"},
        {"output_layout": "HWD"},
        {"out_of_bounds_policy": "edge", "crop": (50, 50)},
        {"out_of_bounds_policy": "nonsense"},
        {"crop": (50, 5)},
        {"fill_values": [1.0, 2.0], "out_of_bounds_policy": "pad"},
        {"fill_values": [1.0, 2.0, 3.0], "out_of_bounds_policy": "pad", "pad_output": True},
        {"crop": (5, 5), "crop_h": 5, "crop_w": 5},
        {"crop_h": 5},
    ],
    ids=str,
)
def test_wrong_arguments(kwargs):
    assert_both_raise(_normalize(**kwargs), _data((20, 21, 3)), layouts="HWC")


@pytest.mark.parametrize("dtype", [np.int8, np.uint32, np.int64, np.float64, np.bool_])
def test_wrong_types(dtype):
    assert_both_raise(_normalize(), [np.zeros((8, 9, 3), dtype)], layouts="HWC", match="data")


def test_sequences_need_a_layout():
    assert_both_raise(_normalize(), _data((2, 8, 9, 3)), layouts="FHWC", match="output_layout")


BY_CHANNEL = [
    {"mean": [1.0, 2.0, 3.0]},
    {"std": [2.0, 3.0, 4.0]},
    {"mean": [5.0], "std": [1, 2, 4]},
]
FEWER = [
    *({**each, "fill_values": [9.0, 8.0, 7.0][:n]} for each in BY_CHANNEL for n in (2, 3)),
    {"mean": [1.0, 2.0, 3.0, 4.0], "fill_values": [9.0, 8.0, 7.0], "shift": 2.0},
]


@pytest.mark.sweep
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
@pytest.mark.parametrize("arguments", FEWER, ids=str)
def test_fewer_fill_values_than_channels(arguments, layout):
    """Where channels have numbers of their own, the last channels are filled with zeros."""
    sample = np.random.default_rng(2).integers(0, 256, (7, 9, 3), np.uint8)
    window = {"crop": [11, 12], "out_of_bounds_policy": "pad", "mirror": 1, "pad_output": True}
    for dtype in (types.FLOAT, types.UINT8):
        graph = _normalize(dtype=dtype, output_layout=layout, **window, **arguments)
        assert_parity(graph, [sample, sample[:4]], layouts="HWC")


def test_fewer_means_than_padded_channels():
    for channels, count in ((3, 2), (4, 2), (4, 3)):
        sample = np.full((5, 6, channels), 100, np.uint8)
        for name in ("mean", "std"):
            graph = _normalize(pad_output=True, **{name: [10.0, 20.0, 40.0][:count]})
            assert_parity(graph, [sample], layouts="HWC")


@pytest.mark.parametrize(
    ("channels", "arguments"),
    [
        (3, {"fill_values": [1.0, 2.0, 3.0], "pad_output": True}),
        (3, {"fill_values": [1.0, 2.0, 3.0], "pad_output": True, "mean": [1.0]}),
        (4, {"fill_values": [1.0, 2.0, 3.0]}),
        (3, {"fill_values": [1.0, 2.0, 3.0, 4.0], "mean": [1.0, 2.0, 3.0]}),
        (3, {"mean": [1.0, 2.0]}),
        (2, {"mean": [1.0, 2.0, 3.0], "pad_output": True}),
    ],
)
def test_numbers_that_do_not_fit(channels, arguments):
    sample = np.zeros((5, 6, channels), np.uint8)
    graph = _normalize(crop=[8, 8], out_of_bounds_policy="pad", **arguments)
    assert_both_raise(graph, [sample], layouts="HWC")
