from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.errors import ArgumentValueError, DataTypeError, OperatorError, ShapeError
from headrace.types import DALIDataType, DALIInterpType
from tests.support.run_operator import run_operator

FLOATS = DALIDataType.FLOAT


def rotate(image, layout="HWC", **arguments):
    return run_operator("rotate", image, layout=layout, **arguments)


def noise(*shape, dtype="uint8"):
    return np.random.default_rng(0).integers(0, 200, shape).astype(dtype)


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("shape", [(1, 1), (4, 7), (300, 5), (7, 600)])
@pytest.mark.parametrize("interpolation", list(DALIInterpType)[:2])
@pytest.mark.parametrize("channels", [1, 3, 4])
def test_quarter_turns_move_pixels(shape, interpolation, channels):
    image = noise(*shape, channels)
    for turns in range(-4, 5):
        turned = rotate(image, angle=90.0 * turns, interp_type=interpolation)
        np.testing.assert_array_equal(turned, np.rot90(image, turns))


@pytest.mark.parametrize("direction", [1, -1])
def test_volume_turns_by_the_right_hand_rule(direction):
    volume = noise(3, 4, 5, 1)
    turned = rotate(volume, "DHWC", angle=90.0, axis=(0, 0, 2.0 * direction))
    # x goes to y, so rows become columns; y points down, where np.rot90 takes it to point up.
    np.testing.assert_array_equal(turned, np.rot90(volume, -direction, axes=(1, 2)))


def test_axis_of_any_length():
    volume = noise(3, 4, 5, 1)
    expected = rotate(volume, "DHWC", angle=33.0, axis=(1, 2, 3))
    for length in (1e-30, 1e30):
        axis = tuple(v * length for v in (1, 2, 3))
        np.testing.assert_array_equal(rotate(volume, "DHWC", angle=33.0, axis=axis), expected)


def test_vectors_give_what_the_general_loop_gives():
    image = noise(90, 110, 3)
    four = np.concatenate([image, image[..., :1]], axis=-1)
    for angle in np.linspace(0, 360, 23):
        for given in ({}, {"fill_value": 55}, {"keep_size": True}):
            np.testing.assert_array_equal(
                rotate(image, angle=angle, **given), rotate(four, angle=angle, **given)[..., :3]
            )


def test_nothing_is_written_behind_the_output():
    from headrace.kernels.cpu.warp import Warp

    image = noise(9, 11, 3)
    matrix = np.array([[1, 0.1, 0], [-0.1, 1, 0]], np.float32)
    for nearest in (False, True):
        memory = np.full(9 * 11 * 3 + 64, 123, np.uint8)
        warp = Warp(image.dtype, image.dtype, nearest=nearest, fill=None)
        warp(image, memory[32:-32].reshape(9, 11, 3), matrix)
        assert (memory[:32] == 123).all()
        assert (memory[-32:] == 123).all()


def test_views_are_read_in_place():
    image = noise(40, 50, 3)
    for view in (image[5:20, 3:40], image[::-1], image[:, ::-1], image.transpose(1, 0, 2)):
        np.testing.assert_array_equal(
            rotate(view, angle=20.0), rotate(np.ascontiguousarray(view), angle=20.0)
        )


@pytest.mark.parametrize("name", ["rotate", "gaussian_blur", "brightness_contrast"])
def test_elements_may_begin_at_any_byte(name):
    image = noise(8, 9, 3).astype(np.float32)
    elsewhere = np.empty(image.nbytes + 1, np.uint8)[1:].view(np.float32).reshape(image.shape)
    elsewhere[...] = image
    assert not elsewhere.flags.aligned
    given = {"rotate": {"angle": 20.0}, "gaussian_blur": {"sigma": 1.0}}
    arguments = given.get(name, {"brightness": 1.5})
    for odd, even in ((elsewhere, image), (elsewhere[1:6, 2:7], image[1:6, 2:7])):
        out = run_operator(name, odd, layout="HWC", **arguments)
        np.testing.assert_array_equal(
            out, run_operator(name, even.copy(), layout="HWC", **arguments)
        )


def test_inputs_may_be_read_only_and_stay_as_they_are():
    image = noise(8, 9, 3)
    image.flags.writeable = False
    before = image.copy()
    rotate(image, angle=20.0)
    np.testing.assert_array_equal(image, before)


@pytest.mark.parametrize("shape", [(0, 4, 3), (4, 0, 3), (4, 4, 0)])
def test_empty_images(shape):
    empty = np.zeros(shape, np.uint8)
    assert rotate(empty, angle=30.0, keep_size=True).shape == shape
    filled = rotate(empty, angle=30.0, size=(2, 5), fill_value=7)
    np.testing.assert_array_equal(filled, np.full((2, 5, shape[2]), 7))
    if shape[2]:
        with pytest.raises(ShapeError, match="fill_value"):
            rotate(empty, angle=30.0, size=(2, 5))


@pytest.mark.parametrize("angle", [np.nan, np.inf, 1e39])
def test_angle_has_to_be_finite(angle):
    with pytest.raises(ArgumentValueError, match="`angle`"):
        rotate(noise(3, 3, 1), angle=angle)


@pytest.mark.parametrize("axis", [(0, 0, np.nan), (0, 0, 0), (1e-60, 0, 0), (0, 1)])
@pytest.mark.parametrize("keep_size", [False, True])
def test_axis_has_to_be_finite(axis, keep_size):
    with pytest.raises(ArgumentValueError, match="`axis` must be 3 finite"):
        rotate(noise(3, 3, 3, 1), "DHWC", angle=3.0, axis=axis, keep_size=keep_size)


@pytest.mark.parametrize(("wrong", "argument"), [(np.inf, "angle"), (-1.0, "size")])
def test_a_sample_that_cannot_be_rotated_is_named(wrong, argument):
    samples = [np.array([3.0, 3.0], np.float32)] * 3 + [np.array([wrong, 3.0], np.float32)]
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        value = fn.external_source(source=lambda: samples)
        given = {argument: value[0] if argument == "angle" else value}
        images = types.Constant(noise(3, 3, 1), layout="HWC")
        pipe.set_outputs(fn.rotate(images, **{"angle": 30.0, **given}))
    with pytest.raises(OperatorError, match=f"`{argument}` must") as caught:
        pipe.run()
    assert caught.value.where.sample == 3


def test_frames_of_one_sequence_share_a_canvas_and_sequences_do_not():
    sequences = [np.ones((3, 4, 10, 1), np.uint8), np.ones((3, 4, 20, 1), np.uint8)]
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        images = fn.external_source(source=lambda: sequences, layout="FHWC")
        angles = fn.per_frame(types.Constant([0.0, 90.0, 90.0]))
        pipe.set_outputs(fn.rotate(images, angle=angles, fill_value=0))
    assert [tuple(out.shape()) for out in pipe.run()[0]] == [(3, 10, 10, 1), (3, 20, 20, 1)]


def test_errors_name_the_argument():
    with pytest.raises(DataTypeError, match=r"`dtype` is INT16.*UINT8 or FLOAT"):
        rotate(noise(3, 3, 1), angle=3.0, dtype=DALIDataType.INT16)
    with pytest.raises(ArgumentValueError, match="`size` must not be negative"):
        rotate(noise(3, 3, 1), angle=3.0, size=np.array([-2, 3], np.float32))


def test_integers_beyond_single_precision_are_moved_as_they_are():
    image = np.array([[[2**30 + 1], [2**31 - 1]]], np.int32)
    turned = rotate(image, angle=180.0, interp_type=DALIInterpType.INTERP_NN)
    np.testing.assert_array_equal(turned, image[::-1, ::-1])
