"""`fn.rotate` against DALI."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

ANGLES = (0, 30, 45, 90, 180, 270, -90, 123.4, -7, 360, 1e-3, 720.5, 44.9999, 135)
TYPES = ("uint8", "int16", "int32", "float32")
DALI_NAME = {"uint8": "UINT8", "int16": "INT16", "int32": "INT32", "float32": "FLOAT"}


def noise(*shape: int, dtype: str = "uint8", seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    if dtype == "float32":
        return rng.random(shape, np.float32) * 255
    low, high = (0, 256) if dtype == "uint8" else (-30000, 30000)
    return rng.integers(low, high, shape).astype(dtype)


def scalars(values) -> list[np.ndarray]:
    return [np.array(v, np.float32) for v in values]


def by_angle(image: np.ndarray, layout: str, angles=ANGLES, **arguments):
    """Compare a rotation by each angle."""
    arguments.setdefault("differing", 0.0002)
    options = {k: arguments.pop(k) for k in ("differing", "relative") if k in arguments}
    names = {
        k: arguments.pop(k) for k in ("dtype", "interp_type", "output_dtype") if k in arguments
    }
    assert_parity(
        lambda lib, x, angle: lib.fn.rotate(
            x,
            angle=angle,
            **arguments,
            **{k: getattr(lib.types, v) for k, v in names.items()},
        ),
        [image] * len(angles),
        scalars(angles),
        layouts=[layout, ""],
        **options,
    )


@pytest.mark.sweep
@pytest.mark.parametrize("fill", [None, 77.6, -3, 300])
@pytest.mark.parametrize("interpolation", ["INTERP_NN", "INTERP_LINEAR"])
@pytest.mark.parametrize("shape", [(60, 70, 3), (33, 47, 1), (20, 31, 4), (9, 600, 3)])
def test_angles(shape, interpolation, fill):
    given = {} if fill is None else {"fill_value": fill}
    by_angle(noise(*shape), "HWC", interp_type=interpolation, **given)


@pytest.mark.parametrize(
    "shape", [(1, 1), (1, 2), (2, 1), (2, 2), (2, 3), (1, 7), (5, 1), (3, 3), (100, 7)]
)
def test_tiny_images(shape):
    # A handful of pixels: one that differs is a large fraction.
    for given in ({}, {"fill_value": 9}, {"keep_size": True}):
        by_angle(noise(*shape, 3), "HWC", differing=0.01, **given)


def test_canvas_of_many_sizes_and_angles():
    rng = np.random.default_rng(3)
    images, angles = [], []
    for height, width in rng.integers(1, 90, (150, 2)):
        images.append(np.zeros((height, width, 1), np.uint8))
        angles.append(rng.choice([*ANGLES, *rng.uniform(-360, 360, 10)]))
    assert_parity(
        lambda lib, x, angle: lib.fn.rotate(x, angle=angle),
        images,
        scalars(angles),
        layouts=["HWC", ""],
    )


@pytest.mark.sweep
@pytest.mark.parametrize("source", TYPES)
@pytest.mark.parametrize("target", TYPES)
def test_element_types(source, target):
    allowed = source == target or "float32" in (source, target)
    for interpolation, fill in itertools.product(("INTERP_NN", "INTERP_LINEAR"), (None, 77.6)):

        def graph(lib, x, interpolation=interpolation, fill=fill):
            given = {} if fill is None else {"fill_value": fill}
            return lib.fn.rotate(
                x,
                angle=33,
                dtype=getattr(lib.types, DALI_NAME[target]),
                interp_type=getattr(lib.types, interpolation),
                **given,
            )

        feed = [noise(19, 28, 3, dtype=source)]
        if allowed:
            assert_parity(graph, feed, layouts="HWC")
        else:
            assert_both_raise(graph, feed, layouts="HWC", match="`dtype`")


@pytest.mark.parametrize("dtype", ["int8", "uint16", "float16", "float64", "bool"])
def test_other_element_types_are_refused(dtype):
    assert_both_raise(
        lambda lib, x: lib.fn.rotate(x, angle=1), [np.ones((4, 4, 1), dtype)], layouts="HWC"
    )


def test_halves_are_rounded_away_from_zero():
    steps = np.arange(-9, 9, dtype=np.int16)[None, :, None]
    assert_parity(
        lambda lib, x: lib.fn.rotate(x, angle=0, size=(1, 19)),
        [steps],
        layouts="HWC",
        differing=0,
    )


@pytest.mark.parametrize("size", [(33.4, 40.5), (7, 9), (0.3, 100), (1.5, 2.5)])
def test_size(size):
    by_angle(noise(20, 31, 3), "HWC", size=size, keep_size=True)


def test_size_of_each_sample_drops_fractions():
    sizes = [np.array(s, np.float32) for s in ((5.5, 3.7), (20, 40), (30.99, 1.01))]
    assert_parity(
        lambda lib, x, size: lib.fn.rotate(x, angle=40, size=size),
        [noise(20, 31, 3)] * 3,
        sizes,
        layouts=["HWC", ""],
        differing=0.01,
    )


@pytest.mark.sweep
@pytest.mark.parametrize("interpolation", ["INTERP_NN", "INTERP_LINEAR"])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("given", [{}, {"fill_value": 11.5}, {"keep_size": True}], ids=str)
def test_volumes(given, dtype, interpolation):
    rng = np.random.default_rng(5)
    axes = rng.normal(size=(12, 3)).astype(np.float32)
    axes[:6] = np.concatenate([np.eye(3), -3 * np.eye(3)])
    assert_parity(
        lambda lib, x, angle, axis: lib.fn.rotate(
            x,
            angle=angle,
            axis=axis,
            interp_type=getattr(lib.types, interpolation),
            **given,
        ),
        [noise(6, 11, 15, 2, dtype=dtype)] * 12,
        scalars(ANGLES[:12]),
        list(axes),
        layouts=["DHWC", "", ""],
    )


def test_canvas_of_volumes():
    rng = np.random.default_rng(6)
    feeds: tuple[list, list, list] = ([], [], [])
    for _ in range(60):
        feeds[0].append(np.zeros((*rng.integers(1, 9, 3), 1), np.uint8))
        feeds[1].append(np.float32(rng.choice([0, 30, 45, 60, 90, 180, 270, -90])))
        axis = rng.integers(-1, 2, 3).astype(np.float32)
        feeds[2].append(axis if axis.any() else np.ones(3, np.float32))
    assert_parity(
        lambda lib, x, angle, axis: lib.fn.rotate(x, angle=angle, axis=axis),
        feeds[0],
        [np.array(a) for a in feeds[1]],
        feeds[2],
        layouts=["DHWC", "", ""],
    )


def test_long_rows_of_volumes_restart_their_coordinates():
    assert_parity(
        lambda lib, x: lib.fn.rotate(x, angle=3, axis=(0.2, 0.3, 1), size=(3, 4, 700)),
        [noise(3, 4, 700, 1, dtype="float32")],
        layouts="DHWC",
    )


@pytest.mark.parametrize("keep_size", [False, True])
def test_sequences_share_their_angle_or_have_one_for_each_frame(keep_size):
    rng = np.random.default_rng(7)
    clips, angles = [], []
    for _ in range(12):
        height, width = rng.integers(1, 40, 2)
        frames = rng.integers(1, 5)
        clips.append(noise(frames, height, width, 3))
        angles.append(rng.choice([0, 90, 45, 30, 17, 200], frames).astype(np.float32))
    assert_parity(
        lambda lib, x, angle: (
            lib.fn.rotate(x, angle=30, keep_size=keep_size),
            lib.fn.rotate(x, angle=lib.fn.per_frame(angle), keep_size=keep_size),
        ),
        clips,
        angles,
        layouts=["FHWC", ""],
    )


def test_sequences_of_volumes():
    rng = np.random.default_rng(8)
    clips, angles, axes = [], [], []
    for _ in range(6):
        clips.append(noise(3, *rng.integers(1, 12, 3), 2))
        angles.append(rng.choice([0, 90, 45, 30], 3).astype(np.float32))
        axes.append(rng.integers(1, 4, (3, 3)).astype(np.float32))
    assert_parity(
        lambda lib, x, angle, axis: lib.fn.rotate(
            x, angle=lib.fn.per_frame(angle), axis=lib.fn.per_frame(axis)
        ),
        clips,
        angles,
        axes,
        layouts=["FDHWC", "", ""],
    )


def test_four_axes_without_a_layout_are_frames():
    assert_parity(lambda lib, x: lib.fn.rotate(x, angle=90), [noise(2, 5, 6, 3)])


def test_former_name_of_dtype():
    with pytest.warns(DeprecationWarning, match="output_dtype"):
        by_angle(noise(9, 8, 3), "HWC", output_dtype="FLOAT")


def test_views_are_read_in_place():
    assert_parity(
        lambda lib, x: lib.fn.rotate(lib.fn.crop(lib.fn.flip(x), crop=(20, 24)), angle=20),
        [noise(40, 50, 3)],
        layouts="HWC",
    )


@pytest.mark.parametrize(
    ("arguments", "layout", "match"),
    [
        ({"size": (3, 4, 5)}, "HWC", "`size`"),
        ({"size": (0, 4)}, "HWC", "`size`"),
        ({"size": (-3, 4)}, "HWC", "`size`"),
        ({}, "DHWC", "`axis`"),
        ({"axis": (0, 1)}, "DHWC", "`axis`"),
        ({"axis": (0, 0, 0)}, "DHWC", "`axis`"),
        ({}, "CHW", "HWC"),
    ],
)
def test_errors(arguments, layout, match):
    shape = (2, 3, 4, 1) if layout == "DHWC" else (3, 4, 1)
    assert_both_raise(
        lambda lib, x: lib.fn.rotate(x, angle=30, **arguments),
        [np.ones(shape, np.uint8)],
        layouts=layout,
        match=match,
    )


def test_cubic_interpolation_is_refused():
    assert_both_raise(
        lambda lib, x: lib.fn.rotate(x, angle=30, interp_type=lib.types.INTERP_CUBIC),
        [noise(3, 3, 3)],
        layouts="HWC",
        match="interp_type",
    )


def test_data_without_a_layout_is_a_sequence_if_it_can_be():
    for shape in ((6, 5, 3), (2, 6, 5, 3), (2, 3, 6, 5, 3)):
        assert_parity(
            lambda lib, x: lib.fn.rotate(x, angle=30, axis=(0, 0, 1)), [noise(*shape)], layouts=""
        )


@pytest.mark.parametrize("angle", [6.1, 10.9, -13, 14.6, 166.9])
def test_angles_whose_sine_c_does_not_round_to_the_nearest(angle):
    assert_parity(
        lambda lib, x: (
            lib.fn.rotate(x, angle=angle, keep_size=True, fill_value=0),
            lib.fn.rotate(x, angle=angle),
        ),
        [noise(97, 130, 3, dtype="float32")],
        relative=0,
        absolute=0,
        layouts="HWC",
    )
    assert_parity(
        lambda lib, x: lib.fn.rotate(x, angle=angle, axis=(0, 0, 1), keep_size=True),
        [noise(9, 31, 40, 2, dtype="float32")],
        layouts="DHWC",
    )
