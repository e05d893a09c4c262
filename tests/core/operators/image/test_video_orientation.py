"""Videos that ask to be turned, beside the same ones as they are stored."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.experimental import dynamic as ndd
from headrace.kernels.cpu.decode.exif import upright
from headrace.kernels.cpu.video import pool as pools
from tests.core.operators.readers.test_video import read
from tests.support.videos import MATRICES, turned, write_video

pytest.importorskip("av")


@pytest.fixture(scope="module")
def stored():
    """The bytes of a video, and its frames."""
    data = write_video(frames=6, size=(48, 64))
    return data, np.array(ndd.decoders.video(ndd.as_tensor(np.frombuffer(data, np.uint8))))


def seen(frames, orientation):
    """The frames as they are meant to be seen."""
    return np.stack([upright(frame, orientation) for frame in frames])


@pytest.mark.parametrize("orientation", MATRICES)
def test_frames_are_turned_where_that_is_wanted(stored, tmp_path, orientation):
    data, frames = stored
    path = tmp_path / "a.mp4"
    path.write_bytes(turned(data, orientation))
    encoded = ndd.as_tensor(np.frombuffer(path.read_bytes(), np.uint8))
    want = seen(frames, orientation)
    for adjusts, expected in ((False, frames), (True, want)):
        got = ndd.decoders.video(encoded, adjust_orientation=adjusts)
        np.testing.assert_array_equal(np.array(got), expected)
        args = {"filenames": [str(path)], "sequence_length": 3, "batch_size": 2}
        for reader in (fn.readers.video, fn.experimental.readers.video):
            videos = read(reader, adjust_orientation=adjusts, **args)[0]
            np.testing.assert_array_equal(np.concatenate(videos), expected)
    np.testing.assert_array_equal(np.array(ndd.decoders.video(encoded)), frames)


def test_a_clockwise_quarter_puts_the_left_side_up(stored, tmp_path):
    """The matrix of a phone that is held upright: beside NumPy's own turn."""
    data, frames = stored
    encoded = ndd.as_tensor(np.frombuffer(turned(data, 6), np.uint8))
    got = np.array(ndd.decoders.video(encoded, adjust_orientation=True))
    np.testing.assert_array_equal(got, np.rot90(frames, -1, (1, 2)))


def test_turned_and_resized(stored, tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(turned(stored[0], 8))
    args = {"filenames": [str(path)], "sequence_length": 6, "adjust_orientation": True}
    for how in ({"resize_shorter": 20}, {"size": [30, 20]}):
        got = read(fn.readers.video_resize, batch_size=1, **args, **how)[0][0]
        want = read(lambda how=how, **a: fn.resize(fn.readers.video(**a), **how), batch_size=1,
                    **args)[0][0]  # fmt: skip
        np.testing.assert_array_equal(got, want)
    assert got.shape == (6, 30, 20, 3)


@pytest.mark.parametrize("args", [{"image_type": types.GRAY}, {"dtype": types.FLOAT}])
def test_turned_in_other_colors(stored, tmp_path, args):
    (tmp_path / "a.mp4").write_bytes(stored[0])
    (tmp_path / "b.mp4").write_bytes(turned(stored[0], 7))
    files = [str(tmp_path / name) for name in ("a.mp4", "b.mp4")]
    a, b = read(filenames=files, sequence_length=6, adjust_orientation=True, batch_size=2, **args)[
        0
    ]
    np.testing.assert_array_equal(b, seen(a, 7))


def test_a_fed_video(stored):
    data, frames = stored

    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def p():
        return fn.experimental.inputs.video(name="clip", sequence_length=3, adjust_orientation=True)

    pipe = p()
    pipe.feed_input("clip", [np.frombuffer(turned(data, 6), np.uint8)])
    got = np.concatenate([np.array(sample) for sample in pipe.run()[0]])
    np.testing.assert_array_equal(got, seen(frames, 6))


def test_the_turn_is_kept_with_the_index(stored, tmp_path, monkeypatch):
    """A later run decodes no frame for it, and takes none for upright."""
    path = tmp_path / "a.mp4"
    path.write_bytes(turned(stored[0], 6))
    kept = {}
    packed = pools.store()
    assert packed is not None
    args = {"filenames": [str(path)], "sequence_length": 6, "batch_size": 1}
    monkeypatch.setattr(pools, "is_settled", lambda key: True)
    pools.POOL.clear()
    for adjusts in (False, True, False, True):
        shape = read(adjust_orientation=adjusts, **args)[0][0].shape
        assert shape == ((6, 64, 48, 3) if adjusts else (6, 48, 64, 3))
        pools.POOL.clear()
        kept[adjusts] = packed.get(pools.key_of(str(path))).orientation
    assert kept == {False: 6, True: 6}


def test_a_remote_file(stored):
    fsspec = pytest.importorskip("fsspec")
    data, frames = stored
    fsspec.filesystem("memory").pipe("/turned/a.mp4", turned(data, 8))
    args = {"filenames": ["memory://turned/a.mp4"], "sequence_length": 6, "batch_size": 1}
    got = read(adjust_orientation=True, **args)[0][0]
    np.testing.assert_array_equal(got, seen(frames, 8))


def test_a_file_that_is_turned_meanwhile_is_bad(stored, tmp_path):
    from headrace import errors

    path = Path(tmp_path / "a.mp4")
    path.write_bytes(turned(stored[0], 6))

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def p():
        return fn.readers.video(filenames=[str(path)], sequence_length=6, adjust_orientation=True)

    pipe = p()
    pipe.build()
    path.write_bytes(write_video(frames=6, size=(64, 32)))
    with pytest.raises(errors.BadSampleError, match="the file has changed"):
        pipe.run()
