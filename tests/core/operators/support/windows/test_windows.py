from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ArgumentValueError, OutOfRangeError, ShapeError
from headrace.operators.support.operator import Operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.schema import Spec
from headrace.operators.support.windows.arguments import (
    CROP_ARGS,
    OUT_OF_BOUNDS_ARGS,
    SLICE_ARGS,
    CropWindow,
    OutOfBounds,
    SliceWindow,
    slices,
)
from headrace.operators.support.windows.arithmetic import round_each
from headrace.types import DALIDataType

IMAGE = Spec(DALIDataType.UINT8, 3, "HWC")


def operator(tensors: tuple[str, ...] = (), **arguments: Any) -> Operator:
    args = {a.name: a.default for a in (*CROP_ARGS, *SLICE_ARGS, *OUT_OF_BOUNDS_ARGS)}
    return Operator({**args, **arguments}, dict.fromkeys(tensors, Spec(DALIDataType.FLOAT, 0)))


def window_of(windows: Any, extents: tuple[int, ...], *positional: Any, **args: Any) -> Any:
    """Anchor and shape of the window in a sample."""
    context = PlanContext(SimpleNamespace(**args), {}, [0], 0, 0)
    sizes = np.array([extents], np.int64)
    found = windows.plan(context, sizes, *(np.array([row]) for row in positional))
    return tuple(tuple(each[0].tolist()) for each in found)


def crop(layout: str, extents: tuple[int, ...], **arguments: Any) -> Any:
    op = operator(**arguments)
    return window_of(CropWindow(op, layout), extents, **vars(op.args))


def test_halves_are_rounded_away_from_zero():
    values = [0.5, -0.5, 2.5, 0.49999999999999994, -2.4, 7.0, 2.0**53]
    assert round_each(np.array(values)).tolist() == [1, -1, 3, 0, -2, 7, 2**53]


def test_slices():
    assert slices((1, 0), (2, 3)) == (slice(1, 3), slice(0, 3))


@pytest.mark.parametrize(
    ("layout", "extents", "arguments", "window"),
    [
        ("HWC", (10, 8, 3), {"crop": (4, 6)}, ((3, 1, 0), (4, 6, 3))),
        ("CHW", (3, 10, 8), {"crop": (4, 6)}, ((0, 3, 1), (3, 4, 6))),
        ("HWC", (10, 8, 3), {"crop": (2, 4, 6)}, ((3, 1, 0), (4, 6, 3))),
        ("DHWC", (6, 10, 8, 3), {"crop": (2, 4, 6)}, ((2, 3, 1, 0), (2, 4, 6, 3))),
        ("FDHWC", (5, 6, 9, 8, 3), {"crop": (2, 4, 6)}, ((0, 2, 3, 1, 0), (5, 2, 4, 6, 3))),
        ("FHWC", (6, 10, 8, 3), {"crop": (2, 4, 6)}, ((2, 3, 1, 0), (2, 4, 6, 3))),
        ("FHWC", (6, 10, 8, 3), {"crop": (4, 6)}, ((0, 3, 1, 0), (6, 4, 6, 3))),
        ("HWC", (9, 8, 3), {"crop": (4, 6), "rounding": "truncate"}, ((2, 1, 0), (4, 6, 3))),
        ("HWC", (9, 8, 3), {"crop_h": 12.9, "crop_w": 0}, ((-2, 0, 0), (12, 8, 3))),
        ("HWC", (9, 8, 3), {}, ((0, 0, 0), (9, 8, 3))),
    ],
)
def test_crop_windows(layout, extents, arguments, window):
    assert crop(layout, extents, **arguments) == window


@pytest.mark.parametrize("extent", [float("nan"), float("inf")])
def test_extents_that_are_not_finite(extent):
    with pytest.raises(ArgumentValueError, match="`crop` must be finite"):
        CropWindow(operator(crop=(extent, 10)), "HWC")
    window = CropWindow(operator(("crop",)), "HWC")
    with pytest.raises(ArgumentValueError, match="`crop` must be finite"):
        window_of(window, (10, 8, 3), crop=(extent, 6.0), crop_pos_x=0.5, crop_pos_y=0.5)


def test_extents_of_a_sample_that_are_negative_keep_the_axis():
    window = CropWindow(operator(("crop",)), "HWC")
    found = window_of(window, (10, 8, 3), crop=(-5.0, 6.0), crop_pos_x=0.5, crop_pos_y=0.5)
    assert found == ((0, 1, 0), (10, 6, 3))


def test_crop_arguments_of_a_sample():
    window = CropWindow(operator(("crop", "crop_pos_x"), crop_pos_x=None), "DHWC")
    sizes = (6, 10, 8, 3)
    found = window_of(window, sizes, crop=(4.0, 6.0), crop_pos_x=1.0)
    assert found == ((0, 3, 2, 0), (6, 4, 6, 3))
    found = window_of(window, sizes, crop=(2.0, 4.0, 6.0), crop_pos_x=0.0)
    assert found == ((2, 3, 0, 0), (2, 4, 6, 3))
    with pytest.raises(ArgumentValueError, match="2 values"):
        window_of(window, sizes, crop=(2.0,), crop_pos_x=0.0)


@given(st.integers(1, 5000), st.integers(1, 5000), st.floats(0, 1, width=32), st.booleans())
def test_smaller_windows_are_inside(extent, size, position, truncate):
    size = min(size, extent)
    (start, _), _ = crop(
        "HW",
        (extent, 1),
        crop=(size, 1),
        crop_pos_y=position,
        rounding="truncate" if truncate else "round",
    )
    assert 0 <= start <= extent - size


def test_sizes_that_are_no_numbers():
    with pytest.raises(ArgumentValueError, match="crop"):
        crop("HWC", (9, 8, 3), crop=(float("nan"), 3))


def test_slices_of_data_of_unknown_rank():
    window = SliceWindow(operator(start=(1,), axes=(-1,)), Spec(DALIDataType.UINT8, None))
    assert window_of(window, (4, 5)) == ((0, 1), (4, 4))
    assert window_of(window, (4,)) == ((1,), (3,))
    with pytest.raises(OutOfRangeError, match="axes"):
        window_of(
            SliceWindow(operator(start=(1,), axes=(2,)), Spec(DALIDataType.UINT8, None)), (4, 5)
        )


def test_positional_slices():
    inputs = Spec(DALIDataType.FLOAT, 1), Spec(DALIDataType.FLOAT, 1)
    window = SliceWindow(operator(), IMAGE, *inputs)
    anchor, shape = np.float32([0.25, 0.5]), np.float32([0.5, 0.25])
    assert window_of(window, (8, 16, 3), anchor, shape) == ((4, 4, 0), (2, 8, 3))
    with pytest.raises(ShapeError, match="2 sliced axes"):
        window_of(window, (8, 16, 3), anchor[:1], shape)


def test_fractions_that_add_up_to_one_reach_the_end():
    for extent in range(1, 300):
        for part in (0.1, 1 / 3, 0.7):
            window = SliceWindow(operator(rel_start=(part,), rel_shape=(1 - part,)), IMAGE)
            (start, *_), (size, *_) = window_of(window, (extent, extent, 3))
            assert start + size == extent


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("trim_to_shape", ((0, 5), (4, 3), True)),
        ("pad", ((-2, 5), (6, 9), False)),
        ("wrap", ((-2, 5), (6, 9), False)),
    ],
)
def test_policies(policy, expected):
    bounds = OutOfBounds(operator(out_of_bounds_policy=policy))
    assert bounded(bounds, (-2, 5), (6, 9), (10, 8)) == expected
    assert bounded(bounds, (2, 5), (6, 3), (10, 8)) == ((2, 5), (6, 3), True)


def bounded(bounds, *window):
    """The window of one sample after the policy, and whether it lies inside."""
    *found, outside = bounds.plan(*(np.array([each], np.int64) for each in window))
    return (*(tuple(each[0].tolist()) for each in found), not outside[0])


def test_nothing_cannot_be_repeated():
    bounds = OutOfBounds(operator(out_of_bounds_policy="wrap"))
    with pytest.raises(ShapeError, match="constant"):
        bounded(bounds, (0, 0), (2, 3), (0, 3))
    assert bounded(bounds, (0, -1), (0, 3), (0, 3)) == ((0, -1), (0, 3), False)


def test_what_is_no_number_is_refused_without_a_warning():
    op = operator(rel_start=(float("inf"),), axes=(0,))
    with pytest.raises(ArgumentValueError, match="finite"):
        window_of(SliceWindow(op, IMAGE), (0, 5, 3))
