"""GIF and animated WebP as videos, beside Pillow."""

from __future__ import annotations

import io

import numpy as np
import pytest

from headrace import errors, types
from headrace.experimental import dynamic as ndd
from tests.core.operators.readers.test_video import read
from tests.support.fuzz import mutants
from tests.support.videos import picture

Image = pytest.importorskip("PIL.Image")
pytest.importorskip("av")

DURATIONS = [40, 80, 40, 100, 60, 40]


def encoded(kind):
    """Six frames, of which only parts change, and those of Pillow."""
    frames = []
    for number in range(len(DURATIONS)):
        pixels = picture(0, 40, 56)
        pixels[:20] = picture(number, 40, 56)[:20]
        frames.append(Image.fromarray(pixels))
    buffer = io.BytesIO()
    options = {"lossless": True} if kind == "WEBP" else {}
    frames[0].save(
        buffer, kind, save_all=True, append_images=frames[1:], duration=DURATIONS, loop=0, **options
    )
    with Image.open(buffer) as image:
        want = []
        for number in range(image.n_frames):
            image.seek(number)
            want.append(np.asarray(image.convert("RGB")))
    return np.frombuffer(buffer.getvalue(), np.uint8), np.stack(want)


@pytest.mark.parametrize("kind", ["GIF", "WEBP"])
def test_all_frames_in_any_order(kind, tmp_path):
    data, want = encoded(kind)
    assert len(want) == len(DURATIONS)
    np.testing.assert_array_equal(np.array(ndd.decoders.video(ndd.as_tensor(data))), want)
    for frames in ([5, 0, 3, 3], [1], [4, 2]):
        found = ndd.decoders.video(ndd.as_tensor(data), frames=frames)
        np.testing.assert_array_equal(np.array(found), want[frames])
    shown = ndd.decoders.video(ndd.as_tensor(data), timestamps=[0.0, 0.05, 0.13, 0.25])
    np.testing.assert_array_equal(np.array(shown), want[[0, 1, 2, 3]])
    path = tmp_path / f"a.{kind.lower()}"
    path.write_bytes(data.tobytes())

    args = {"filenames": [str(path)], "sequence_length": 3, "skip_vfr_check": True}
    video, times = read(**args, enable_timestamps=True, batch_size=2)
    np.testing.assert_array_equal(np.concatenate(video), want)
    begins = np.cumsum([0, *DURATIONS])[:-1] / 1000
    np.testing.assert_allclose(np.concatenate(times), begins, atol=1e-3)
    gray = read(**args, image_type=types.GRAY, batch_size=2)[0]
    assert gray[0].shape == (3, 40, 56, 1)
    first = ndd.decoders.image(ndd.as_tensor(data), device="cpu")
    np.testing.assert_array_equal(np.array(first), want[0])


@pytest.mark.parametrize("count", [40, pytest.param(1000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("kind", ["GIF", "WEBP"])
def test_damaged(kind, count):
    data, _ = encoded(kind)
    whole = 0
    for mutant in mutants(data.tobytes(), count, seed=4):
        try:
            found = np.array(ndd.decoders.video(ndd.as_tensor(np.frombuffer(mutant, np.uint8))))
        except errors.HeadraceError:
            continue
        whole += 1
        assert found.ndim == 4
    assert 0 < whole < count


def test_a_picture_that_does_not_move_is_no_animation():
    buffer = io.BytesIO()
    Image.fromarray(picture(0, 8, 8)).save(buffer, "WEBP")
    data = np.frombuffer(buffer.getvalue(), np.uint8)
    assert np.array(ndd.decoders.video(ndd.as_tensor(data))).shape == (1, 8, 8, 3)
