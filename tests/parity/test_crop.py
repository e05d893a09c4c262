"""`fn.crop` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

DTYPES = ("uint8", "int8", "uint16", "int16", "uint32", "int32", "uint64", "int64")
FLOATS = ("float16", "float32", "float64")
POLICIES = ("pad", "constant", "edge", "clamp", "reflect", "reflect_1001", "reflect_101", "wrap")


def numbered(*shape: int, dtype: str = "int32") -> np.ndarray:
    """Data whose elements tell where they came from."""
    return (
        (np.arange(np.prod(shape, dtype=int)) % 120 - 5 * (dtype[0] != "u"))
        .astype(dtype)
        .reshape(shape)
    )


def ragged(dtype: str = "uint8") -> list[np.ndarray]:
    return [numbered(*s, dtype=dtype) for s in ((12, 9, 3), (8, 15, 3), (7, 7, 3), (31, 8, 3))]


def exact(graph, *feeds, **options):
    assert_parity(graph, *feeds, max_levels=0, relative=0, absolute=0, **options)


@pytest.mark.parametrize("dtype", DTYPES + FLOATS)
def test_element_types(dtype):
    exact(
        lambda lib, x: (
            lib.fn.crop(x, crop=(7, 5)),
            lib.fn.crop(x, crop=(9, 5), out_of_bounds_policy="pad", fill_values=3.7),
        ),
        ragged(dtype),
        layouts="HWC",
    )


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        ("HWC", (9, 8, 3)),
        ("CHW", (3, 9, 8)),
        ("DHWC", (6, 9, 8, 3)),
        ("CDHW", (3, 6, 9, 8)),
        ("FHWC", (6, 9, 8, 3)),
        ("FCHW", (6, 3, 9, 8)),
        ("CFHW", (3, 6, 9, 8)),
        ("", (9, 8, 3)),
        ("", (6, 9, 8, 3)),
    ],
)
def test_layouts(layout, shape):
    def graph(lib, x):
        crop = lib.fn.crop
        return (
            crop(x),
            crop(x, crop=(4, 5)),
            crop(x, crop=(3, 4, 5)),
            crop(x, crop_h=4, crop_w=5),
            crop(x, crop_h=4, crop_w=5, crop_d=2, crop_pos_z=1.0),
            crop(x, crop=(4, 5), crop_pos_x=0.0, crop_pos_y=1.0, crop_pos_z=0.25),
            crop(x, crop=(2, 4, 5), crop_pos_x=0.3, crop_pos_y=0.9, crop_pos_z=0.7),
            crop(x, crop=(11, 12), out_of_bounds_policy="pad", fill_values=7),
            crop(x, crop=(7, 11, 3), out_of_bounds_policy="trim_to_shape", crop_pos_x=0.2),
        )

    exact(graph, [numbered(*shape)] * 2, layouts=layout)


@pytest.mark.parametrize(
    "extents",
    [{"crop": (-3, 2)}, {"crop": (-1, -1)}, {"crop_h": -0.5, "crop_w": 4}],
    ids=["height", "both", "crop_h"],
)
def test_negative_extents_keep_axes_whole(extents):
    def graph(lib, x):
        return lib.fn.crop(x, **extents), lib.fn.crop_mirror_normalize(x, **extents)

    exact(graph, [numbered(5, 6, 3)] * 2, layouts="HWC")


def test_negative_extents_of_samples_keep_axes_whole():
    def graph(lib, x):
        extents = lib.fn.random.uniform(range=[-9.0, -1.0], shape=2)
        return lib.fn.crop(x, crop=extents)

    exact(graph, [numbered(5, 6, 3)] * 2, layouts="HWC")


@pytest.mark.parametrize(
    "extents",
    [
        (3, 5),
        (4.4, 5.6),
        (4.5, 5.5),
        (3, 0),
        (0, 0),
        (0.4, 4),
        (0.6, 4),
        (7, 7),
    ],
)
def test_extents_drop_fractions_and_keep_the_axis_at_zero(extents):
    exact(
        lambda lib, x: (
            lib.fn.crop(x, crop=extents),
            lib.fn.crop(x, crop_h=extents[0], crop_w=extents[1]),
            lib.fn.crop(x, crop=(2, *extents)),
        ),
        ragged(),
        layouts="HWC",
    )


@pytest.mark.parametrize("rounding", ["round", "truncate"])
def test_positions_near_halves(rounding):
    rng = np.random.default_rng(3)
    count = 400
    height = rng.integers(1, 300, count)
    size = rng.integers(1, 300, count)
    room = np.abs(height - size)
    position = (rng.integers(0, 300, count) % np.maximum(room, 1) + 0.5) / np.maximum(room, 1)
    exact(
        lambda lib, x, p, s: lib.fn.crop(
            x,
            crop_h=s,
            crop_w=1,
            crop_pos_y=p,
            rounding=rounding,
            out_of_bounds_policy="pad",
            fill_values=-1,
        ),
        [np.arange(h, dtype=np.int32).reshape(-1, 1, 1) for h in height],
        [np.float32(min(p, 1)) for p in position],
        [np.float32(s) for s in size],
        layouts=("HWC", "", ""),
    )


def test_constant_positions_are_float32():
    data = [np.arange(n, dtype=np.int32).reshape(-1, 1, 1) for n in range(10, 200, 7)]
    exact(
        lambda lib, x: tuple(
            lib.fn.crop(x, crop=(5, 1), crop_pos_y=p) for p in (0.1, 0.3, 0.7, 0.9, 1 / 3)
        ),
        data,
        layouts="HWC",
    )


@pytest.mark.parametrize("values", [2, 3])
def test_crop_and_positions_for_each_sample(values):
    rng = np.random.default_rng(0)
    data = [numbered(6, *s) for s in ((9, 8, 2), (12, 7, 2), (8, 8, 2), (10, 15, 2))]
    exact(
        lambda lib, x, size, px, py, pz: lib.fn.crop(
            x, crop=size, crop_pos_x=px, crop_pos_y=py, crop_pos_z=pz
        ),
        data,
        [rng.integers(0, 6, values).astype(np.float32) for _ in data],
        *[[np.float32(rng.random()) for _ in data] for _ in range(3)],
        layouts=("DHWC", "", "", "", ""),
    )


def test_one_size_for_each_sample_and_one_constant():
    exact(
        lambda lib, x, h: lib.fn.crop(x, crop_h=h, crop_w=4),
        ragged(),
        [np.float32(v) for v in (3, 4.9, 0, 6)],
        layouts=("HWC", ""),
    )


@pytest.mark.sweep
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("size", [(9, 21), (40, 3), (4, 25)])
def test_policies(policy, size):
    exact(
        lambda lib, x: tuple(
            lib.fn.crop(
                x, crop=size, out_of_bounds_policy=policy, fill_values=(1, 2, 3), crop_pos_x=p
            )
            for p in (0.0, 0.4, 1.0)
        ),
        ragged(),
        layouts="HWC",
    )


def test_policies_of_planes_and_volumes():
    def graph(lib, planes, volume):
        return tuple(
            lib.fn.crop(
                x,
                crop=size,
                out_of_bounds_policy=policy,
                fill_values=fill,
            )
            for policy in POLICIES
            for x, size, fill in ((planes, (14, 12), (1, 2, 3)), (volume, (7, 5, 12), (4, 5)))
        )

    exact(graph, [numbered(3, 9, 8)], [numbered(4, 9, 8, 2)], layouts=("CHW", "DHWC"))


@pytest.mark.parametrize("dtype", [d for d in DTYPES + FLOATS if d != "uint64"])
def test_fill_values_drop_fractions_and_wrap(dtype):
    fills = (5.7, 2.5, 3.5, 0.3) + ((-1.5, 300.0, -300.0) if dtype[0] != "f" else (1e20, -1.5))
    exact(
        lambda lib, x: tuple(
            lib.fn.crop(x, crop=(3, 3), out_of_bounds_policy="pad", fill_values=v) for v in fills
        ),
        [np.ones((1, 1, 1), dtype)],
        layouts="HWC",
    )


@pytest.mark.sweep
@pytest.mark.parametrize("target", ["FLOAT", "FLOAT16", "UINT8"])
@pytest.mark.parametrize("source", DTYPES + FLOATS)
def test_conversion_drops_fractions_and_saturates(source, target):
    values = [
        0,
        1,
        2.5,
        3.5,
        99.9,
        127,
        128,
        254.6,
        255,
        256,
        300,
        -0.6,
        -1,
        -7.7,
        4096,
        70000,
        -7e4,
    ]
    with np.errstate(all="ignore"):
        if source[0] == "f":
            data = np.array([*values, 1e38, np.inf, -np.inf, np.nan, 1e-8], np.float64).astype(
                source
            )
        else:
            info = np.iinfo(source)
            data = np.array([v for v in map(int, values) if info.min <= v <= info.max], source)
    exact(
        lambda lib, x: (
            lib.fn.crop(x, dtype=getattr(lib.types, target)),
            lib.fn.crop(
                x, crop=(3, 9), dtype=getattr(lib.types, target), out_of_bounds_policy="pad"
            ),
            lib.fn.crop(
                x, crop=(1, 40), dtype=getattr(lib.types, target), out_of_bounds_policy="edge"
            ),
        ),
        [data.reshape(1, -1, 1)],
        layouts="HWC",
    )


@pytest.mark.filterwarnings("ignore")
def test_old_names():
    exact(
        lambda lib, x: (
            lib.fn.crop(x, crop=(3, 3), output_dtype=lib.types.FLOAT),
            lib.fn.crop(x, crop=(3, 3), image_type=lib.types.RGB),
        ),
        ragged(),
        layouts="HWC",
    )
    assert_both_raise(
        lambda lib, x: lib.fn.crop(x, output_dtype=lib.types.FLOAT, dtype=lib.types.UINT8),
        ragged(),
        layouts="HWC",
        match="dtype",
    )


def test_empty_and_tiny_samples():
    exact(
        lambda lib, x: (
            lib.fn.crop(x),
            lib.fn.crop(x, crop=(2, 4), out_of_bounds_policy="pad", fill_values=9),
            lib.fn.crop(x, crop=(2, 4), out_of_bounds_policy="trim_to_shape"),
            lib.fn.crop(x, crop=(1, 1), out_of_bounds_policy="trim_to_shape", crop_pos_x=1.0),
        ),
        [numbered(0, 8, 3), numbered(1, 1, 3), numbered(1, 9, 3), numbered(5, 5, 3)],
        layouts="HWC",
    )
    exact(lambda lib, x: lib.fn.crop(x, crop=(2, 4)), [numbered(5, 5, 0)], layouts="HWC")


def test_position_of_a_whole_axis_does_not_matter():
    exact(
        lambda lib, x: (
            lib.fn.crop(x, crop_pos_x=2.0),
            lib.fn.crop(x, crop=(0, 4), crop_pos_y=2.0),
            lib.fn.crop(x, crop=(3, 4), crop_pos_z=2.0),
        ),
        ragged(),
        layouts="HWC",
    )


def test_windows_in_a_row():
    exact(
        lambda lib, x: lib.fn.crop(
            lib.fn.flip(lib.fn.crop(x, crop=(6, 7)), horizontal=1, vertical=1),
            crop=(5, 9),
            crop_pos_x=0.1,
            out_of_bounds_policy="reflect_101",
        ),
        ragged(),
        layouts="HWC",
    )


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"crop_w": 4}, "crop_h"),
        ({"crop_d": 4}, "crop_d"),
        ({"crop": 5}, "crop"),
        ({"crop": (1, 2, 3, 4)}, "crop"),
        ({"crop": (3, 3), "crop_w": 3, "crop_h": 3}, "crop_h"),
        ({"crop": (3, 3), "crop_pos_x": 1.2}, "crop_pos_x"),
        ({"crop": (3, 3), "crop_pos_y": -0.1}, "crop_pos_y"),
        ({"crop": (3, 3), "rounding": "floor"}, "rounding"),
        ({"crop": (3, 3), "out_of_bounds_policy": "nearest"}, "out_of_bounds_policy"),
        ({"crop": (50, 3)}, "out_of_bounds_policy"),
        ({"crop": (50, 3), "out_of_bounds_policy": "pad", "fill_values": (1, 2)}, "fill_values"),
    ],
)
def test_errors(arguments, word):
    assert_both_raise(
        lambda lib, x: lib.fn.crop(x, **arguments), ragged(), layouts="HWC", match=word
    )


@pytest.mark.parametrize("dtype", ["INT16", "BOOL", "STRING", "FLOAT64"])
def test_types_that_are_no_target(dtype):
    assert_both_raise(
        lambda lib, x: lib.fn.crop(x, dtype=getattr(lib.types, dtype)),
        ragged(),
        layouts="HWC",
        match="dtype",
    )


@pytest.mark.parametrize(("shape", "layout"), [((4, 5), "HW"), ((4, 5), ""), ((4, 5, 3), "HWX")])
def test_layouts_that_are_not_taken(shape, layout):
    assert_both_raise(
        lambda lib, x: lib.fn.crop(x, crop=(3, 3)), [numbered(*shape)], layouts=layout
    )
