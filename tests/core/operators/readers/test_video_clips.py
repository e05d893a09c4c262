"""What readers of videos have beyond DALI: rates, clips, named frames, and audio in step."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from headrace import errors, fn
from headrace.experimental import dynamic as ndd
from tests.core.operators.readers.test_video import pipeline, read, whole
from tests.support.videos import tone, write_video

pytest.importorskip("av")

FRAMES = 48
TIMES = np.cumsum([0, *([1, 3, 2, 6] * 12)])[:FRAMES]  # of 1/24 second
READERS = [
    pytest.param(fn.readers.video, id="plain"),
    pytest.param(fn.experimental.readers.video, id="experimental"),
]


@pytest.fixture(scope="module")
def steady(tmp_path_factory):
    return write_video(tmp_path_factory.mktemp("clips") / "a.mp4", frames=FRAMES, size=(32, 48))


@pytest.fixture(scope="module")
def varying(tmp_path_factory):
    path = tmp_path_factory.mktemp("clips") / "v.mp4"
    times = TIMES.tolist()
    return write_video(path, frames=FRAMES, size=(32, 48), times=times, time_base=Fraction(1, 24))


def numbers_of(path, reader=fn.readers.video, batch_size=1, iterations=1, **args):
    """Numbers of the frames of samples, whose pixels are checked."""
    args = {"filenames": [path], "sequence_length": 4, "enable_frame_num": "sequence", **args}
    found = read(reader, batch_size=batch_size, iterations=iterations, **args)
    videos, numbers = found[0], found[-1]
    frames = whole(path)
    for video, number in zip(videos, numbers, strict=True):
        np.testing.assert_array_equal(video[number >= 0], frames[number[number >= 0]])
        assert not video[number < 0].any()
    return [number.tolist() for number in numbers]


@pytest.mark.parametrize("reader", READERS)
def test_a_rate(steady, varying, reader):
    assert numbers_of(steady, reader, batch_size=4, fps=8.0) == [
        [0, 3, 6, 9], [12, 15, 18, 21], [24, 27, 30, 33], [36, 39, 42, 45],
    ]  # fmt: skip
    assert numbers_of(steady, reader, batch_size=2, fps=12.0, stride=3, step=2) == [
        [0, 6, 12, 18], [4, 10, 16, 22],
    ]  # fmt: skip
    (found,) = numbers_of(varying, reader, fps=6.0, **_lets_through(reader))
    assert found == [int(np.flatnonzero(t >= TIMES)[-1]) for t in range(0, 16, 4)]


def _lets_through(reader):
    return {"skip_vfr_check": True} if reader is fn.readers.video else {}


def test_a_rate_of_a_part_and_its_rest(steady, tmp_path):
    (tmp_path / "list.txt").write_text(f"{steady} 0 0.5 1.0\n")
    args = {"file_list": str(tmp_path / "list.txt"), "filenames": (), "fps": 6.0}
    assert numbers_of(steady, **args, sequence_length=3) == [[12, 16, 20]]
    padded = numbers_of(steady, **args, sequence_length=2, pad_sequences=True, batch_size=2)
    assert padded == [[12, 16], [20, -1]]


def test_clips_at_even_distances(steady):
    for clips, starts in ((1, [20]), (2, [0, 41]), (3, [0, 21, 41])):
        found = numbers_of(steady, clips_per_video=clips, batch_size=clips, stride=2)
        assert [numbers[0] for numbers in found] == starts
        assert all(np.diff(numbers).tolist() == [2] * 3 for numbers in found)
    assert numbers_of(steady, clips_per_video=2, sequence_length=50, pad_sequences=True,
        batch_size=2) == [[*range(48), -1, -1]] * 2  # fmt: skip
    with pytest.raises(errors.ArgumentValueError, match="number of input samples is 0"):
        numbers_of(steady, clips_per_video=2, sequence_length=50)


def test_random_clips(steady):
    args = {"clips_per_video": 3, "clip_starts": "random", "enable_frame_num": True}
    args |= {"filenames": [steady], "sequence_length": 6}
    first = [int(n[0]) for n in read(**args, batch_size=3, iterations=40)[1]]
    assert set(first) <= set(range(43))
    assert {0, 42} & set(first)
    assert len(set(first)) > 30
    args |= {"enable_checkpointing": True, "batch_size": 3}
    for workers in ("threads", "processes"):
        pipe = pipeline(**args, workers=workers)
        again = [int(np.array(n)[0]) for n in pipe.run()[1]]
        restored = pipeline(**args, workers=workers, checkpoint=pipe.checkpoint())
        assert [*again, *[int(np.array(n)[0]) for n in restored.run()[1]]] == first[:6]


@pytest.mark.parametrize("reader", READERS)
def test_named_frames(steady, varying, tmp_path, reader):
    assert numbers_of(steady, reader, frames=[9, 2, 2, 40]) == [[9, 2, 2, 40]]
    more = _lets_through(reader)
    for path, known in ((steady, np.arange(FRAMES)), (varying, TIMES)):
        want = [int(np.flatnonzero(known <= t * 24)[-1]) for t in (0.5, 1.01, 0, 1.9)]
        found = read(lambda **args: reader(**args, timestamps=fn.external_source(
            lambda: [np.float32([0.5, 1.01, 0.0, 1.9])])), filenames=[path], sequence_length=4,
            batch_size=1, enable_frame_num="sequence", **more)  # fmt: skip
        assert found[1][0].tolist() == want
    (tmp_path / "list.txt").write_text(f"{steady} 0 0.5 1.5\n")
    args = {"file_list": str(tmp_path / "list.txt"), "filenames": ()}
    assert numbers_of(steady, reader, frames=[0, 1, 5, 3], **args) == [[12, 13, 17, 15]]
    assert numbers_of(steady, reader, timestamps=[0, 0.25, 0.5, 0], **args) == [[12, 18, 24, 12]]
    with pytest.raises(errors.ArgumentValueError, match="out-of-bounds frame index 24"):
        numbers_of(steady, reader, frames=[0, 1, 24, 3], **args)
    pads = {"pad_sequences": True} if reader is fn.readers.video else {"pad_mode": "constant"}
    assert numbers_of(steady, reader, frames=[0, -1, 24, 3], **args, **pads) == [[12, -1, -1, 15]]


def test_dynamic_mode(steady):
    reader = ndd.readers.Video(
        filenames=[steady],
        sequence_length=3,
        fps=6.0,
        clips_per_video=2,
        enable_frame_num="sequence",
    )
    ((_, numbers),) = reader.next_epoch(batch_size=2)
    assert [np.array(n).tolist() for n in numbers] == [[0, 4, 8], [36, 40, 44]]


@pytest.mark.parametrize(
    ("args", "error", "said"),
    [
        ({"fps": 0.0}, errors.ArgumentValueError, "fps"),
        ({"clips_per_video": 0}, errors.ArgumentValueError, "clips_per_video"),
        ({"clips_per_video": 2, "step": 3}, errors.MisusedArgumentError, "step"),
        ({"clip_starts": "random"}, errors.MisusedArgumentError, "clips_per_video"),
        ({"frames": [1] * 4, "stride": 2}, errors.MisusedArgumentError, "stride"),
        ({"frames": [1] * 4, "timestamps": [1.0] * 4}, errors.MisusedArgumentError, "timestamps"),
        ({"timestamps": [1.0] * 4, "fps": 3.0}, errors.MisusedArgumentError, "fps"),
        ({"frames": [1, 2]}, errors.ArgumentValueError, "sequence_length"),
        ({"audio_rate": 16000.0}, errors.MisusedArgumentError, "enable_audio"),
        ({"enable_audio": True}, errors.BadSampleError, "no audio"),
        ({"enable_audio": True, "audio_rate": -1.0}, errors.ArgumentValueError, "audio_rate"),
    ],
    ids=str,
)  # fmt: skip
def test_what_does_not_go(steady, args, error, said):
    with pytest.raises(error, match=said):
        numbers_of(steady, **args)


# Container, codec, and how far decoded samples are from those that were encoded, on average; a
# shift by three samples is as far as 0.05.
SOUNDS = {
    "pcm.mkv": ("matroska", "pcm_s16le", 1e-4),
    "pcm.mov": ("mov", "pcm_s16le", 1e-4),
    "flac.mkv": ("matroska", "flac", 1e-4),
    "aac.mp4": ("mp4", "aac", 0.02),
    "aac.ts": ("mpegts", "aac", 0.02),
    "pcm.avi": ("avi", "pcm_s16le", 1e-4),
    "mp3.mkv": ("matroska", "libmp3lame", 0.02),
    "opus.webm": ("webm", "libopus", 0.02),
    "ac3.mkv": ("matroska", "ac3", 0.02),
}
RATE = 48000


def heard(path, **args):
    """Audio and first frames of all sequences, and when these begin."""
    args = {"filenames": [path], "sequence_length": 12, "enable_timestamps": True, **args}
    return read(**args, enable_audio=True, batch_size=4)


@pytest.fixture(scope="module", params=SOUNDS)
def sounding(request, tmp_path_factory):
    container, codec, far = SOUNDS[request.param]
    video = {"webm": "libvpx-vp9", "avi": "mpeg4"}.get(container, "libx264")
    path = tmp_path_factory.mktemp("sounds") / request.param
    write_video(path, frames=FRAMES, size=(32, 48), container=container, codec=video, sound=codec)
    return str(path), far


def distance(a, b):
    return float(np.sqrt(np.mean(np.square(a - b))))


def test_audio_is_in_step(sounding):
    """Each sequence has the tone of its time, at the rate of the file and at another."""
    path, far = sounding
    _, times, sounds, rates = heard(path)
    origin = times[0][0]  # in TS the clock begins earlier
    for time, sound, rate in zip(times, sounds, rates, strict=True):
        assert (sound.shape, sound.dtype, float(rate)) == ((RATE // 2, 2), np.float32, RATE)
        at = (np.arange(RATE // 2) + round(time[0] * RATE)) / RATE - origin
        inner = slice(4000, -4000)  # codecs blur beginning and end of a file
        assert distance(sound[inner], tone(at)[inner]) < far
    assert np.sqrt(np.mean(np.square(np.concatenate(sounds)[4000:-9000]))) > 0.2
    _, times, slower, rates = heard(path, audio_rate=16000.0, audio_downmix=True)
    for time, sound, rate in zip(times, slower, rates, strict=True):
        assert (sound.shape, float(rate)) == ((8000,), 16000)
        at = (np.arange(8000) + round(time[0] * 16000)) / 16000 - origin
        assert distance(sound[1500:-1500], tone(at).mean(1)[1500:-1500]) < far + 1e-3


def test_audio_does_not_depend_on_what_was_read_before(sounding):
    path, far = sounding
    want = np.concatenate(heard(path)[2])
    for sequence_length, step in ((6, 6), (3, 9)):
        sounds = read(filenames=[path], sequence_length=sequence_length, step=step,
            enable_audio=True, random_shuffle=True, initial_fill=9, enable_frame_num=True,
            batch_size=FRAMES // step)  # fmt: skip
        for number, sound in zip(sounds[1], sounds[2], strict=True):
            begin = int(number[0]) * RATE // 24
            assert distance(sound, want[begin : begin + len(sound)]) < far / 4


def test_audio_of_clips(tmp_path):
    path = write_video(tmp_path / "a.mov", frames=FRAMES, container="mov", sound="pcm_s16le")
    _, numbers, sounds, _ = read(
        filenames=[path], sequence_length=5, fps=10.0, clips_per_video=4, clip_starts="random",
        enable_frame_num="sequence", enable_audio=True, batch_size=4,
    )  # fmt: skip
    for number, sound in zip(numbers, sounds, strict=True):
        assert sound.shape == (RATE // 2, 2)
        first = round(number[0] / 2.4) / 10  # the frame before the time that is asked for
        at = np.arange(RATE // 2) / RATE
        far = [np.abs(sound - tone(at + first + late / 10)).max() for late in (0, 1)]
        assert min(far) < 1e-3
    # Behind the end there is silence, also where a part ends before the file.
    (tmp_path / "list.txt").write_text(f"{path} 0 1.0 1.25\n")
    args = {"sequence_length": 12, "pad_sequences": True, "enable_audio": True, "batch_size": 1}
    _, _, sounds, _ = read(file_list=str(tmp_path / "list.txt"), enable_frame_num=True, **args)[-4:]
    at = np.arange(RATE // 4) / RATE + 1
    np.testing.assert_allclose(sounds[0][: RATE // 4], tone(at), atol=1e-3)
    assert not sounds[0][RATE // 4 :].any()


def test_audio_of_encoded_videos(tmp_path):
    path = write_video(tmp_path / "a.mov", frames=FRAMES, container="mov", sound="pcm_s16le")
    data = np.fromfile(path, np.uint8)
    for args, begin, seconds in (
        ({}, 0, 2),
        ({"start_frame": 12, "sequence_length": 6, "stride": 2}, 0.5, 0.5),
        ({"fps": 8.0, "start_frame": 6, "sequence_length": 4}, 0.25, 0.5),
        ({"frames": [30, 24, 27]}, 1.0, 7 / 24),
        ({"timestamps": [1.5, 1.0]}, 1.0, 13 / 24),
    ):
        _, sound, rate = ndd.decoders.video(ndd.as_tensor(data), enable_audio=True, **args)
        assert float(np.array(rate)) == RATE
        at = np.arange(round(seconds * RATE)) / RATE + begin
        np.testing.assert_allclose(np.array(sound), tone(at), atol=1e-3)
