"""Frames by number, of every codec and container, beside PyAV's own in the order they come."""

from __future__ import annotations

import io
import os
from fractions import Fraction

import numpy as np
import pytest

from headrace.errors import BadSampleError
from tests.support.fuzz import mutants
from tests.support.videos import write_video

av = pytest.importorskip("av")

from headrace.kernels.cpu.video import kept_frames  # noqa: E402
from headrace.kernels.cpu.video.colors import Colors  # noqa: E402
from headrace.kernels.cpu.video.video import Video  # noqa: E402

os.environ.setdefault("SVT_LOG", "0")
OPEN_GOP = {"x264-params": "open-gop=1:bframes=3:keyint=8:min-keyint=8"}
FILES = {
    "h264.mp4": {},
    "h264-open.mp4": {"options": OPEN_GOP},
    "h264-open.mkv": {"options": OPEN_GOP, "container": "matroska"},
    "h264-open.ts": {"options": OPEN_GOP, "container": "mpegts"},
    "h264.raw": {"container": "h264"},
    "h264.avi": {"container": "avi"},
    "h264.flv": {"container": "flv"},
    "h264-late.mp4": {"container_options": {"movflags": "frag_keyframe+empty_moov"}},
    "hevc.mp4": {"codec": "libx265", "options": {"x265-params": "log-level=none"}},
    "vp8.webm": {
        "codec": "libvpx",
        "container": "webm",
        "options": {"auto-alt-ref": "1", "lag-in-frames": "10"},
    },
    "vp9.webm": {"codec": "libvpx-vp9", "container": "webm"},
    "av1.mp4": {"codec": "libsvtav1", "options": {"svtav1-params": "lp=1"}},
    "mpeg4.mp4": {"codec": "mpeg4", "options": {"bf": "2"}},
    "mpeg4.avi": {"codec": "mpeg4", "options": {"bf": "2"}, "container": "avi"},
    "mjpeg.avi": {"codec": "mjpeg", "container": "avi", "pix_fmt": "yuvj420p"},
    "ffv1.mkv": {"codec": "ffv1", "container": "matroska"},
    "varying.mp4": {
        "times": [0, 10, 90, 100, 250, 251, 300, 500, 505, 700, 900, 1000],
        "time_base": Fraction(1, 1000),
        "frames": 12,
    },
    "23.976.mp4": {"rate": Fraction(24000, 1001)},
    "one.mp4": {"frames": 1},
}


class Luma:
    """Takes the plane of luma as it is."""

    def write(self, frame, out):
        out[..., 0] = luma(frame)


def luma(frame):
    plane = frame.planes[0]
    rows = np.frombuffer(plane, np.uint8).reshape(-1, plane.line_size)
    return rows[: frame.height, : frame.width].copy()


def in_order(data):
    with av.open(io.BytesIO(data)) as container:
        return [luma(frame) for frame in container.decode(video=0)]


def read(video, numbers):
    out = np.zeros((len(numbers), video.height, video.width, 1), np.uint8)
    video.read(numbers, out, Luma())
    return out[..., 0]


def rgb(data, numbers=(0,), kind="RGB", dtype=np.uint8, scale=1.0):
    video = Video(np.frombuffer(data, np.uint8))
    colors = Colors(kind, scale)
    out = np.zeros((len(numbers), video.height, video.width, colors.channels), dtype)
    video.read(numbers, out, colors)
    return out


@pytest.mark.sweep
@pytest.mark.parametrize("on_disk", [False, True])
@pytest.mark.parametrize("name", FILES)
def test_frames_in_any_order(tmp_path, name, on_disk):
    data = write_video(**{"frames": 26, **FILES[name]})
    want = in_order(data)
    source = np.frombuffer(data, np.uint8)
    if on_disk:
        (tmp_path / name).write_bytes(data)
        source = str(tmp_path / name)
    video = Video(source)
    count = len(video.index)
    assert count == len(want)
    rng = np.random.default_rng(1)
    asked = [range(count), [count - 1], [0], range(count // 2, count), range(0, count, 3)]
    asked += [rng.integers(0, count, rng.integers(1, 5)).tolist() for _ in range(10)]
    for numbers in asked:
        for number, frame in zip(numbers, read(video, numbers), strict=True):
            np.testing.assert_array_equal(frame, want[number], f"{number} of {list(numbers)}")
    video.close()


@pytest.mark.parametrize("name", ["h264.mp4", "h264-open.mkv", "mpeg4.mp4"])
def test_what_is_read_on_is_decoded_once(monkeypatch, name):
    """Pictures behind a sequence are not left out, since the next one begins there."""
    video = Video(np.frombuffer(write_video(**{"frames": 40, **FILES[name]}), np.uint8))
    handed = []
    decode = Video._decode
    monkeypatch.setattr(Video, "_decode", lambda self, p: handed.append(p) or decode(self, p))
    for first in range(0, 40, 5):
        read(video, range(first, first + 5))
    assert len(handed) <= 41


@pytest.mark.parametrize("name", ["h264-open.mp4", "vp9.webm", "mpeg4.avi", "h264.ts"])
def test_sequences_that_overlap_decode_each_frame_once(monkeypatch, name):
    """Frames that are kept are those that are decoded, in whatever order sequences come."""
    options = FILES.get(name, {"container": "mpegts"})
    data = write_video(**{"frames": 40, **options})
    want = in_order(data)
    video = Video(np.frombuffer(data, np.uint8))
    video.keeps = True
    handed = []
    decode = Video._decode
    monkeypatch.setattr(Video, "_decode", lambda self, p: handed.append(p) or decode(self, p))
    for first in range(0, 30, 2):
        np.testing.assert_array_equal(
            read(video, range(first, first + 10)), want[first : first + 10]
        )
    assert len(handed) <= 44
    for first in np.random.default_rng(1).integers(0, 30, 20).tolist():
        np.testing.assert_array_equal(
            read(video, range(first, first + 10)), want[first : first + 10]
        )
    video.close()


def test_frames_are_kept_up_to_a_limit(monkeypatch):
    data = write_video(frames=40)
    want = in_order(data)
    video = Video(np.frombuffer(data, np.uint8))
    video.keeps = True
    monkeypatch.setattr(kept_frames, "LIMIT_BYTES", 5 * 48 * 64 * 2)
    rng = np.random.default_rng(1)
    for first in [*range(0, 30, 3), *rng.integers(0, 30, 20).tolist()]:
        np.testing.assert_array_equal(
            read(video, range(first, first + 10)), want[first : first + 10]
        )
        assert 0 < video.kept.nbytes <= 5 * 48 * 64 * 2
    video.close()
    assert video.kept.nbytes == 0


def test_times(tmp_path):
    video = Video(np.frombuffer(write_video(**FILES["varying.mp4"]), np.uint8))
    np.testing.assert_allclose(video.index.seconds * 1000, FILES["varying.mp4"]["times"])
    assert video.index.varies
    steady = Video(np.frombuffer(write_video(rate=Fraction(30000, 1001), container="webm",
        codec="libvpx-vp9"), np.uint8))  # fmt: skip
    assert not steady.index.varies  # times are rounded to milliseconds


def test_an_edit_list_hides_frames():
    """The first frames are not shown: the file says that it begins behind them."""
    data = write_video(times=range(-6, 18), time_base=Fraction(1, 24), options={"bf": "0"})
    want = in_order(data)
    video = Video(np.frombuffer(data, np.uint8))
    assert 0 < len(want) < 24
    assert len(video.index) == len(want)
    np.testing.assert_array_equal(read(video, range(len(want))), want)


SHAPES = [
    ("yuv420p", (48, 64)),
    ("yuv420p", (47, 61)),
    ("yuv422p", (47, 61)),
    ("yuv444p", (47, 61)),
    ("yuv420p10le", (48, 64)),
    ("yuv422p10le", (48, 64)),
    ("yuv444p10le", (48, 64)),
    ("gray", (48, 64)),
    ("gray10le", (48, 64)),
]


@pytest.mark.sweep
@pytest.mark.parametrize("full_range", [False, True])
@pytest.mark.parametrize(("pix_fmt", "size"), SHAPES)
def test_colors_of_every_format(pix_fmt, size, full_range):
    """Beside the equations in double precision."""
    data = write_video(
        frames=2,
        pix_fmt=pix_fmt,
        size=size,
        full_range=full_range,
        codec="ffv1",
        container="matroska",
    )
    with av.open(io.BytesIO(data)) as container:
        frame = next(container.decode(video=0))
    want = equations(frame, full_range)
    got = rgb(data)[0]
    assert np.abs(got - want).max() <= 0.51
    unrounded = rgb(data, dtype=np.float32, scale=1 / 255)[0]
    np.testing.assert_allclose(unrounded * 255, want, atol=1e-2)
    gray = rgb(data, kind="GRAY")[0]
    assert gray.shape == (*size, 1)


def equations(frame, full):
    layout = frame.format
    depth = layout.components[0].bits
    planes = []
    for k in range(3):
        if k >= len(layout.components):
            planes.append(np.full((frame.height, frame.width), 128.0))
            continue
        plane = frame.planes[k]
        kind = np.uint16 if depth > 8 else np.uint8
        rows = np.frombuffer(plane, kind).reshape(-1, plane.line_size // np.dtype(kind).itemsize)
        values = rows[: plane.height, : plane.width] / 2.0 ** (depth - 8)
        for axis, length in enumerate((frame.height, frame.width)):
            source = values.shape[axis]
            at = (np.arange(length) + 0.5) * source / length - 0.5
            enlarged = [np.interp(at, np.arange(source), v) for v in np.moveaxis(values, axis, -1)]
            values = np.moveaxis(np.array(enlarged), -1, axis)
        planes.append(values)
    y, u, v = planes
    if not full and not (len(layout.components) < 3 and frame.color_range != 1):
        y, u, v = (y - 16) * 255 / 219, (u - 128) * 255 / 224, (v - 128) * 255 / 224
    else:
        u, v = u - 128, v - 128
    found = np.stack([y + 1.402 * v, y - 0.344136 * u - 0.714136 * v, y + 1.772 * u], -1)
    return found.clip(0, 255)


def test_planes_of_red_green_and_blue():
    data = write_video(frames=2, codec="ffv1", container="matroska", pix_fmt="bgr0")
    with av.open(io.BytesIO(data)) as container:
        want = next(container.decode(video=0)).to_ndarray(format="rgb24")
    np.testing.assert_array_equal(rgb(data)[0], want)


@pytest.mark.parametrize("kept", [0.6, 0.8, 0.95])
def test_a_file_that_is_cut_off_is_told(tmp_path, kept):
    path = tmp_path / "whole.mp4"
    write_video(path, container_options={"movflags": "faststart"}, frames=24)
    data = path.read_bytes()
    video = Video(np.frombuffer(data[: int(len(data) * kept)], np.uint8))
    assert video.missing
    assert len(video.index) + video.missing == 24
    want = in_order(data)
    count = len(video.index)
    np.testing.assert_array_equal(read(video, range(count)), want[:count])


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "has no bytes"),
        (b"no video at all, but some text", "cannot be opened"),
        (write_video(frames=3)[:200], "cannot be opened"),
    ],
)
def test_what_is_no_video(data, said):
    with pytest.raises(BadSampleError, match=said):
        Video(np.frombuffer(data, np.uint8))


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", ["h264.mp4", "vp9.webm", "mjpeg.avi", "h264-open.ts"])
def test_damaged_files(name, count):
    """Each is decoded, or refused; what is decoded has the extents that were announced."""
    data = write_video(**{"frames": 12, **FILES[name]})
    refused = 0
    for mutant in mutants(data, count, seed=3):
        try:
            video = Video(np.frombuffer(mutant, np.uint8))
            if video.height * video.width * len(video.index) < 1 << 24:
                read(video, range(len(video.index)))
        except BadSampleError:
            refused += 1
    assert refused < count
