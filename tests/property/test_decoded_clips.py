"""A window of decoded frames is the same whether the reader of the video knows of it or not."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.fn as fn
import headrace.types as types
from headrace import pipeline_def
from headrace.errors import BadSampleError
from tests.support.videos import turned, write_video

pytest.importorskip("av")

from headrace.kernels.cpu.video.colors import Colors

LOSSLESS = {"codec": "ffv1", "container": "matroska"}
FILES = {
    "420.mp4": {},
    "odd.webm": {"codec": "libvpx-vp9", "container": "webm", "size": (47, 61)},
    "even.mp4": {"size": (50, 90)},
    "422.mkv": {**LOSSLESS, "pix_fmt": "yuv422p", "size": (40, 70)},
    "444.mkv": {**LOSSLESS, "pix_fmt": "yuv444p", "size": (41, 75)},
    "410.mkv": {**LOSSLESS, "pix_fmt": "yuv410p", "size": (52, 68)},
    "deep.mkv": {**LOSSLESS, "pix_fmt": "yuv420p10le"},
    "gray.mkv": {**LOSSLESS, "pix_fmt": "gray"},
    "rgb.mkv": {**LOSSLESS, "pix_fmt": "bgr0"},
    "full.mp4": {"full_range": True, "pix_fmt": "yuvj420p"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("clips")
    found = {name: write_video(root / name, frames=9, **args) for name, args in FILES.items()}
    for orientation in (3, 6):
        path = root / f"turned{orientation}.mp4"
        path.write_bytes(turned(write_video(frames=9, size=(48, 80)), orientation))
        found[path.name] = str(path)
    return found


GRAPHS = {
    "crop": lambda x: fn.crop(x, crop=(24, 31), crop_pos_x=0.7, crop_pos_y=0.9),
    "cast": lambda x: fn.crop(x, crop=(24, 31), dtype=types.FLOAT),
    "padded": lambda x: fn.crop(x, crop=(70, 33), out_of_bounds_policy="pad", fill_values=9),
    "mirrored": lambda x: fn.crop(x, crop=(70, 33), out_of_bounds_policy="reflect"),
    "outside": lambda x: fn.slice(
        x, start=(-60, 3), shape=(50, 20), axis_names="HW", out_of_bounds_policy="pad"
    ),
    "slice": lambda x: fn.slice(x, rel_start=(0.1, 0.2), rel_shape=(0.5, 0.25), axis_names="HW"),
    "frames": lambda x: fn.slice(x, start=(1, 5), shape=(2, 11), axis_names="FW"),
    "one channel": lambda x: fn.slice(x, start=(1, 0), shape=(20, 1), axis_names="HC"),
    "one pixel": lambda x: fn.slice(x, start=(7, 8), shape=(1, 1), axis_names="HW"),
    "normalise": lambda x: fn.crop_mirror_normalize(
        x, crop=(21, 30), mirror=fn.random.coin_flip(), mean=[9.0], std=[7.0], output_layout="FCHW"
    ),
    "normalise all": lambda x: fn.crop_mirror_normalize(
        x, mirror=1, output_layout="FHWC", dtype=types.FLOAT16
    ),
    "normalise more": lambda x: fn.crop_mirror_normalize(
        x, crop=(90, 90), out_of_bounds_policy="pad", pad_output=True, output_layout="FCHW"
    ),
    "crop, normalise": lambda x: fn.crop_mirror_normalize(
        fn.crop(x, crop=(32, 33), crop_pos_x=1.0), crop=(20, 21), output_layout="CFHW"
    ),
    "flip": lambda x: fn.flip(x, horizontal=1, vertical=1),
    "resize": lambda x: fn.resize(x, size=(20, 25)),
    "resize a part": lambda x: fn.resize(
        x, size=(20, 25), roi_start=(0.2, 0.1), roi_end=(0.7, 0.8), roi_relative=True
    ),
    "slice, resize": lambda x: fn.resize(
        fn.slice(x, start=(3, 9), shape=(30, 33), axis_names="HW"), resize_shorter=17
    ),
    "resize to itself": lambda x: fn.crop(
        fn.resize(fn.crop(x, crop=(20, 21)), size=(20, 21)), crop=(5, 6)
    ),
    "random": lambda x: fn.random_resized_crop(x, size=16),
    "other": lambda x: fn.cast(x, dtype=types.FLOAT),
}


def run(path, graph, *, fuse, workers="threads", **args):
    args = {"sequence_length": 5, "stride": 2, "step": 3, "pad_mode": "constant"} | args

    @pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=3, fuse=fuse, workers=workers)
    def p():
        clip, *others = fn.experimental.readers.video(
            filenames=[path], labels=[7], fill_value=[90], enable_frame_num="sequence", **args
        )
        return graph(clip), *others

    pipe = p()
    return [
        [(np.array(out.at(i)), out.layout()) for i in range(3)]
        for _ in range(2)
        for out in pipe.run()
    ]


def same(path, graph, **args):
    fused, plain = (run(path, graph, fuse=fuse, **args) for fuse in (True, False))
    for one, other in zip(fused, plain, strict=True):
        for (a, layout), (b, expected) in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)
            assert layout == expected


@pytest.mark.parametrize("name", GRAPHS)
def test_windows(files, name):
    for path in files.values():
        same(path, GRAPHS[name])


@pytest.mark.parametrize("kind", [types.YCbCr, types.GRAY])
def test_colours(files, kind):
    for path in files.values():
        same(path, GRAPHS["crop"], image_type=kind)


@pytest.mark.parametrize("pad_mode", ["edge", "reflect"])
def test_frames_that_come_twice(files, pad_mode):
    for graph in ("crop", "normalise", "resize"):
        same(files["420.mp4"], GRAPHS[graph], pad_mode=pad_mode)


@pytest.mark.parametrize("sound", [False, True])
def test_clips_of_bytes(files, tmp_path, written, sound):
    """Of `decoders.video`, whose videos are opened once."""
    path = files["turned6.mp4"]
    if sound:
        path = write_video(tmp_path / "sound.mp4", frames=9, sound="aac")
    data = np.fromfile(path, np.uint8)

    def decoded(name, fuse):
        @pipeline_def(
            batch_size=3, num_threads=2, device_id=None, seed=3, fuse=fuse, workers="threads"
        )
        def p():
            found = fn.decoders.video(
                fn.external_source(source=lambda: [data] * 3),
                frames=[3, -1, 8, 3],
                pad_mode="constant",
                fill_value=[90],
                enable_audio=sound,
            )
            clip, *others = found if sound else [found]
            return GRAPHS[name](clip), *others

        return [[np.array(out.at(i)) for i in range(3)] for out in p().run()]

    for name in GRAPHS:
        for one, other in zip(decoded(name, fuse=True), decoded(name, fuse=False), strict=True):
            for a, b in zip(one, other, strict=True):
                np.testing.assert_array_equal(a, b)
    if sound:
        written.clear()
        decoded("crop, normalise", fuse=True)
        assert set(written) == {(20, 21)}


def test_processes(files):
    same(files["420.mp4"], GRAPHS["crop, normalise"], workers="processes")


def test_every_window_in_every_column(files):
    """Windows begin and end at each column: chroma is as wide as luma, or half, or neither."""
    for name in ("420.mp4", "odd.webm", "444.mkv", "410.mkv", "deep.mkv"):
        for width in (1, 2, 3, 16, 17, 40):
            starts = list(range(61 - width))

            def windows(x, starts=starts, width=width):
                start = fn.external_source(
                    source=lambda info: np.int32([5, starts[info.idx_in_epoch % len(starts)]]),
                    batch=False,
                )
                return fn.slice(x, start=start, shape=(4, width), axis_names="HW")

            same(files[name], windows, sequence_length=1, stride=1, step=1)


@pytest.fixture
def written(monkeypatch):
    """Extents of what is converted."""
    found = []
    write = Colors.write

    def counted(self, frame, out, *args):
        found.append(out.shape[:2])
        write(self, frame, out, *args)

    monkeypatch.setattr(Colors, "write", counted)
    return found


@pytest.mark.parametrize(
    ("name", "extents"),
    [
        ("crop", {(24, 31)}),
        ("slice", {(24, 16)}),
        ("frames", {(48, 11)}),
        ("normalise", {(21, 30)}),
        ("crop, normalise", {(20, 21)}),
        ("slice, resize", {(30, 33)}),
        ("resize a part", {(26, 47)}),
        ("other", {(48, 64)}),
    ],
)
def test_no_more_is_converted_than_is_read(files, written, name, extents):
    run(files["420.mp4"], GRAPHS[name], fuse=True)
    assert set(written) == extents


def test_a_clip_with_two_readers_is_decoded_once(files, written):
    run(files["420.mp4"], lambda x: fn.cat(fn.flip(x), x), fuse=True)
    assert set(written) == {(48, 64)}


def test_errors_are_those_of_the_reader(files, tmp_path):
    """Of what is found while another operator asks for frames."""
    path = tmp_path / "damaged.mp4"
    data = bytearray(write_video(frames=30, gop=30, size=(96, 96)))
    middle = data.index(b"mdat") + 2000
    data[middle : middle + 600] = bytes(600)
    path.write_bytes(data)

    @pipeline_def(batch_size=2, num_threads=2, device_id=None, on_bad_sample="skip")
    def p(names):
        clip = fn.experimental.readers.video(
            filenames=names, sequence_length=9, step=100, name="reader"
        )
        return fn.crop(clip, crop=(20, 20))

    good = files["420.mp4"]
    pipe = p([str(path), good])
    (clips,) = pipe.run()
    np.testing.assert_array_equal(clips.at(0), clips.at(1))
    (report,) = {(bad.source, bad.operator) for bad in pipe.bad_samples}
    assert report == (str(path), "fn.experimental.readers.video")

    raising = p.__wrapped__  # the same, without a policy
    pipe = pipeline_def(raising, batch_size=1, num_threads=1, device_id=None)([str(path)])
    with pytest.raises(BadSampleError, match=r"experimental\.readers\.video(.|\n)*damaged\.mp4"):
        pipe.run()
