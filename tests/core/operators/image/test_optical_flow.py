"""`optical_flow`: a motion that is known is found."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from headrace import Pipeline, errors, fn, types
from headrace.experimental import dynamic as ndd
from tests.support.run_operator import run_operator

_rng = np.random.default_rng(0)
HEIGHT, WIDTH = 90, 121


def moved(count=3, by=(3.0, -2.0), channels=3):
    """Frames of a smooth picture that moves `by` columns and rows from one to the next."""
    noise = _rng.random((HEIGHT + 60, WIDTH + 60, channels)).astype(np.float32)
    picture = cv2.GaussianBlur(noise, (0, 0), 3).reshape(noise.shape)
    picture = (picture - picture.min()) / (picture.max() - picture.min()) * 255
    frames = []
    for k in range(count):
        shift = np.float32([[1, 0, k * by[0] - 30], [0, 1, k * by[1] - 30]])
        frame = cv2.warpAffine(picture, shift, (WIDTH, HEIGHT)).reshape(HEIGHT, WIDTH, channels)
        frames.append(np.rint(frame).astype(np.uint8))
    return np.stack(frames)


@pytest.mark.parametrize("grid", [1, 2, 4])
def test_where_pixels_were(grid):
    frames = moved()
    for preset in (0.0, 0.5, 1.0):
        flow = run_operator("optical_flow", frames, layout="FHWC", output_grid=grid, preset=preset)
        assert flow.dtype == np.float32
        assert flow.shape == (2, -(-HEIGHT // grid), -(-WIDTH // grid), 2)
        edge = 16 // grid
        inside = flow[:, edge:-edge, edge:-edge]
        far = np.abs(inside - np.float32([-3, 2])).max(axis=-1)
        assert np.mean(far) < 0.3
        assert np.mean(far > 1) < 0.05


def test_colors_and_the_mean_of_cells():
    frames = moved()
    fine, coarse = (
        run_operator("optical_flow", frames, layout="FHWC", output_grid=g) for g in (1, 4)
    )
    for y, x in ((0, 0), (22, 30), (22, 5), (3, 30)):
        cell = fine[:, 4 * y : 4 * y + 4, 4 * x : 4 * x + 4]
        np.testing.assert_allclose(coarse[:, y, x], cell.mean(axis=(1, 2)), rtol=1e-4, atol=1e-5)
    swapped = np.ascontiguousarray(frames[..., ::-1])
    same = run_operator("optical_flow", swapped, layout="FHWC", image_type=types.BGR)
    np.testing.assert_array_equal(same, coarse)
    grey = np.stack([cv2.cvtColor(f, cv2.COLOR_RGB2GRAY)[..., None] for f in frames])
    same = run_operator("optical_flow", grey, layout="FHWC", image_type=types.GRAY)
    np.testing.assert_array_equal(same, coarse)


def test_hints():
    """A motion too far for the search is found where it begins near."""
    frames = moved(2, (28.0, 0.0))
    shape = (1, -(-HEIGHT // 8), -(-WIDTH // 8), 2)
    near = np.full(shape, [-28, 0], np.float32)
    options = {"layout": "FHWC", "output_grid": 1, "preset": 1.0}
    far = {}
    for name, hint in (("near", near), ("first", np.concatenate([near * 0, near])), ("none", None)):
        inputs = (frames,) if hint is None else (frames, hint)
        given = {} if hint is None else {"enable_external_hints": True, "hint_grid": 8}
        flow = run_operator("optical_flow", *inputs, **options, **given)
        far[name] = np.abs(flow[0, 16:-16, 16:-45] - np.float32([-28, 0])).mean()
    assert far["near"] == far["first"] < 1 < far["none"] / 5
    steps = moved(3)
    alone, chained = (
        run_operator("optical_flow", steps, **options, enable_temporal_hints=on)
        for on in (False, True)
    )
    np.testing.assert_array_equal(alone[0], chained[0])
    pair = run_operator("optical_flow", steps[1:], **options)
    np.testing.assert_array_equal(alone[1], pair[0])
    assert not np.array_equal(alone[1], chained[1])


def test_in_pipelines_and_dynamic_mode():
    batch = [moved(count) for count in (2, 3)]
    pipe = Pipeline(batch_size=2, num_threads=2, device_id=None)
    with pipe:
        data = fn.external_source([batch], layout="FHWC")
        with pytest.warns(DeprecationWarning, match="output_grid"):
            flow = fn.optical_flow(data, output_format=2)
        pipe.set_outputs(flow)
    (found,) = pipe.run()
    assert found.layout() == "FHWC"
    for k, frames in enumerate(batch):
        wanted = run_operator("optical_flow", frames, layout="FHWC", output_grid=2)
        np.testing.assert_array_equal(found.at(k), wanted)
    got = ndd.optical_flow(ndd.as_tensor(batch[0], layout="FHWC"), output_grid=2)
    np.testing.assert_array_equal(np.asarray(got), found.at(0))


def test_hints_that_are_not_used():
    frames = moved(2)
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        data = fn.external_source([[frames]], layout="FHWC")
        pipe.set_outputs(fn.optical_flow(data, fn.external_source([[frames]], layout="FHWC")))
    with pytest.warns(UserWarning, match="Hints are not used without `enable_external_hints"):
        pipe.run()


@pytest.mark.parametrize(
    ("frames", "options", "words"),
    [
        ((1, 20, 20, 3), {}, "at least 2 frames, got 1"),
        ((2, 15, 20, 3), {}, "at least 16 x 16 pixels, got 15 x 20"),
        ((2, 20, 20, 1), {}, "RGB have 3 channels, got 1"),
        ((2, 20, 20, 3), {"image_type": types.GRAY}, "GRAY have 1 channel, got 3"),
        ((2, 20, 20, 3), {"image_type": types.YCbCr}, "RGB, BGR or GRAY, got YCbCr"),
        ((2, 20, 20, 3), {"preset": 1.5}, "`preset` must be from 0 to 1, got 1.5"),
        ((2, 20, 20, 3), {"output_grid": 3}, "Output grid size: 3 is not supported.*1, 2, 4"),
        ((2, 20, 20, 3), {"hint_grid": 3}, "Hint grid size: 3 is not supported.*1, 2, 4, 8"),
        ((2, 20, 20, 3), {"enable_external_hints": True}, "Expected: 2, Obtained: 1"),
    ],
)
def test_errors(frames, options, words):
    with pytest.raises(errors.HeadraceError, match=words):
        run_operator("optical_flow", np.zeros(frames, np.uint8), layout="FHWC", **options)


def test_wrong_hints():
    frames = np.zeros((2, 20, 20, 3), np.uint8)
    for hints, words in (
        (np.zeros((1, 5, 4, 2), np.float32), r"must have the shape \(1, 5, 5, 2\).*\(1, 5, 4, 2\)"),
        (np.zeros((3, 5, 5, 2), np.float32), r"got \(3, 5, 5, 2\)"),
        (np.zeros((1, 5, 5, 2), np.float16), "must be FLOAT, got FLOAT16"),
    ):
        with pytest.raises(errors.HeadraceError, match=words):
            run_operator("optical_flow", frames, hints, layout="FHWC", enable_external_hints=True)
