"""Videos, beside DALI where its CPU decodes: VP8, VP9 and Motion JPEG."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from tests.parity.support import LIBRARIES, Output, assert_both_raise, run_graph
from tests.support.videos import write_video

pytest.importorskip("av")

VP9 = {"codec": "libvpx-vp9", "container": "webm", "options": {"deadline": "realtime"}}
KINDS = {
    "vp9": VP9,
    "vp9 full": {**VP9, "full_range": True},
    "vp9 odd": {**VP9, "size": (47, 61)},
    "vp9 422": {**VP9, "pix_fmt": "yuv422p", "size": (47, 61)},
    "vp9 444": {**VP9, "pix_fmt": "yuv444p"},
    "vp8": {"codec": "libvpx", "container": "webm"},
    "mjpeg": {"codec": "mjpeg", "container": "matroska", "pix_fmt": "yuvj420p"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with two classes, of 20 and 13 frames."""
    root = tmp_path_factory.mktemp("videos")
    for folder, frames in (("x", 20), ("y", 13)):
        (root / folder).mkdir()
        write_video(root / folder / "a.webm", frames=frames, seed=frames, **VP9)
    return root


def names(files):
    return [str(files / "x" / "a.webm"), str(files / "y" / "a.webm")]


def same(graph, *feeds, iterations=1, **args):
    """That both make the same: frames to within a level."""
    dali, ours = (
        run_graph(library, graph, *feeds, iterations=iterations, **args)
        for library in ("dali", "headrace")
    )
    for wanted, got in zip(dali, ours, strict=True):
        assert len(wanted) == len(got)
        for a, b in zip(wanted, got, strict=True):
            assert (a.layout, a.dtype, len(a.samples)) == (b.layout, b.dtype, len(b.samples))
            for want, found in zip(a.samples, b.samples, strict=True):
                assert want.shape == found.shape
                limit = 1 if want.dtype == np.uint8 else 0
                assert np.abs(want.astype(float) - found).max(initial=0) <= limit
                assert want.dtype != np.uint8 or want.size == 0 or (want == found).mean() > 0.98


def read(**args):
    def graph(lib):
        found = lib.fn.experimental.readers.video(device="cpu", **args)
        return tuple(found) if isinstance(found, (list, tuple)) else found

    return graph


@pytest.mark.parametrize("kind", KINDS)
def test_colors(kind):
    data = np.frombuffer(write_video(frames=5, **KINDS[kind]), np.uint8)
    same(lambda lib, encoded: lib.fn.decoders.video(encoded), [data])


DECODED = [
    {},
    {"start_frame": 3, "end_frame": 9},
    {"start_frame": 3, "sequence_length": 4, "stride": 2},
    {"start_frame": 10, "sequence_length": 6},
    {"start_frame": 10, "sequence_length": 6, "fill_value": [1, 2, 3]},
    {"start_frame": -3},
    {"end_frame": 40},
    {"stride": 3},
    {"sequence_length": 0},
    {"frames": [3, 1, 1, 7]},
    {"frames": [0, 15, -1, 3], "fill_value": 9},
    {"frames": []},
    {"build_index": False, "frames": [3, 1]},
]
PADDED = ["none", "edge", "repeat", "reflect_1001", "symmetric", "reflect_101", "reflect"]
DECODED += [{"start_frame": 10, "sequence_length": 6, "pad_mode": mode} for mode in PADDED]
DECODED += [{"frames": [0, 15, 30], "pad_mode": mode} for mode in PADDED[1:]]


@pytest.mark.parametrize("args", DECODED, ids=str)
def test_which_frames_are_decoded(files, args):
    data = [np.fromfile(name, np.uint8) for name in names(files)]
    same(lambda lib, encoded: lib.fn.decoders.video(encoded, **args), data)


def test_frames_by_sample(files):
    data = [np.fromfile(name, np.uint8) for name in names(files)]
    starts = [np.array(s, np.int32) for s in (2, 7)]
    modes = [np.frombuffer(m, np.uint8) for m in (b"edge", b"edge")]
    same(
        lambda lib, encoded, start: lib.fn.decoders.video(
            encoded, start_frame=start, sequence_length=3
        ),
        data,
        starts,
    )
    assert len(modes) == 2


@pytest.mark.parametrize(
    "args",
    [
        {"frames": [0, 15], "pad_mode": "none"},
        {"start_frame": 40},
        {"start_frame": 6, "end_frame": 5},
        {"end_frame": -3},
        {"stride": -1},
        {"sequence_length": -1},
        {"frames": [1], "stride": 2},
        {"end_frame": 9, "sequence_length": 3},
        {"pad_mode": "nonsense"},
        {"start_frame": 10, "sequence_length": 6, "fill_value": [1, 2]},
    ],
    ids=str,
)
def test_what_decoding_refuses(files, args):
    data = [np.fromfile(name, np.uint8) for name in names(files)]
    assert_both_raise(lambda lib, encoded: lib.fn.decoders.video(encoded, **args), data)


READ = [
    {"enable_frame_num": "scalar", "enable_timestamps": True},
    {"labels": [5, 6], "enable_frame_num": True},
    {"enable_frame_num": "sequence", "step": 3},
    {"enable_frame_num": "sequence", "step": 3, "pad_mode": "edge"},
    {"enable_frame_num": "sequence", "stride": 2, "step": 3, "pad_mode": "constant"},
    {"enable_frame_num": "sequence", "stride": 2, "fill_value": [3, 2, 1], "pad_mode": "constant"},
    {"enable_frame_num": "sequence", "uniform_sample": True},
    {"enable_frame_num": "scalar", "shard_id": 1, "num_shards": 2},
    {"enable_frame_num": "scalar", "shard_id": 1, "num_shards": 2, "stick_to_shard": True},
    {"enable_frame_num": "scalar", "pad_mode": "edge", "pad_last_batch": True, "num_shards": 2},
]
READ += [
    {"enable_frame_num": "sequence", "enable_timestamps": True, "pad_mode": mode}
    for mode in (*PADDED[1:], "constant")
]


@pytest.mark.parametrize("args", READ, ids=str)
def test_sequences(files, args):
    graph = read(filenames=names(files), sequence_length=8, **args)
    same(graph, batch_size=3, iterations=3)


def test_classes_are_folders(files):
    same(read(file_root=str(files), sequence_length=9, enable_frame_num="scalar"), batch_size=4)


def test_shuffled(files):
    args = {"enable_frame_num": "scalar", "random_shuffle": True, "initial_fill": 4}
    dali, ours = (
        run_graph(lib, read(filenames=names(files), sequence_length=2, labels=[0, 1], **args),
            batch_size=15, iterations=1)
        for lib in ("dali", "headrace")
    )  # fmt: skip
    for found in (dali, ours):
        drawn = {
            (int(a[0]), int(b[0])) for a, b in zip(*[o.samples for o in found[0][1:]], strict=True)
        }
        assert len(drawn) == 15


LINES = [
    ("{a} 5\n{b} 6\n", {}),
    ("{a} 5 2 11\n", {"file_list_format": "frames"}),
    ("{a} 5 2 11\n", {"file_list_format": "frames", "file_list_include_end": False}),
    ("{a} 5 -8 -1\n", {"file_list_format": "frames"}),
    ("{a} 5 2 30\n", {"file_list_format": "frames"}),
    ("{a} 5 1.5 8\n", {"file_list_format": "frames"}),
    ("{a} 5 0 14\n", {"file_list_format": "frames", "uniform_sample": True}),
    ("\n{a} 5 0.06 0.26\n\n", {}),
    ("{a} 5 0.083 0.167\n", {}),
    ("{a} 5 0.25 0.5\n", {}),
]
LINES += [
    ("{a} 5 0.06 0.26\n", {"file_list_rounding": rounding})
    for rounding in ("start_up_end_down", "all_up", "all_down")
]
LINES += [
    ("{a} 5 2 11\n", {"file_list_format": "frames", "sequence_length": 4, "pad_mode": mode})
    for mode in ("edge", "constant", "reflect_101", "reflect_1001")
]


@pytest.mark.parametrize(("text", "args"), LINES, ids=str)
def test_parts_of_videos(files, tmp_path, text, args):
    a, b = names(files)
    (tmp_path / "list.txt").write_text(text.format(a=a, b=b))
    args = {"sequence_length": 3 if "uniform_sample" in args else 1, **args}
    graph = read(file_list=str(tmp_path / "list.txt"), enable_frame_num="sequence", **args)
    same(graph, batch_size=20)


def test_times_of_a_varying_rate(tmp_path):
    times = [0, 30, 70, 160, 170, 400]
    path = write_video(
        tmp_path / "a.webm", frames=6, times=times, time_base=Fraction(1, 1000), **VP9
    )
    same(read(filenames=[path], sequence_length=6, enable_timestamps=True), batch_size=1)


@pytest.mark.parametrize(
    "args",
    [
        {},
        {"filenames": []},
        {"filenames": ["{a}"], "file_root": "/"},
        {"filenames": ["{a}"], "labels": [1, 2]},
        {"filenames": ["{a}"], "pad_mode": "nonsense"},
        {"filenames": ["{a}"], "sequence_length": 50},
        {"filenames": ["{a}"], "pad_mode": "constant", "fill_value": [1, 2]},
        {"filenames": ["{a}"], "pad_mode": "constant", "fill_value": 300},
        {"file_list": "/nothing"},
    ],
    ids=str,
)
def test_what_reading_refuses(files, args):
    if args.get("filenames"):
        args = {**args, "filenames": [names(files)[0]]}
    assert_both_raise(read(**{"sequence_length": 9, **args}))


def fed(library, name, batches, batch_size, device="cpu", **args):
    lib = LIBRARIES[library]
    pipe = lib.pipeline.Pipeline(
        batch_size=batch_size, num_threads=1, device_id=None, prefetch_queue_depth=1
    )
    with pipe:
        pipe.set_outputs(lib.fn.experimental.inputs.video(name="in", device=device, **args))
    pipe.build()
    for _ in range(2):
        pipe.feed_input("in", np.fromfile(name, np.uint8)[np.newaxis])
    return [Output(pipe.run()[0]) for _ in range(batches)]


@pytest.mark.parametrize(
    ("batches", "batch_size", "args"),
    [
        (4, 2, {"sequence_length": 6}),
        (4, 2, {"sequence_length": 6, "last_sequence_policy": "pad"}),
        (3, 3, {"sequence_length": 4}),
        (2, 40, {"sequence_length": 1}),
    ],
    ids=str,
)
def test_videos_that_are_fed(files, batches, batch_size, args):
    want, got = (
        fed(library, names(files)[0], batches, batch_size, **args)
        for library in ("dali", "headrace")
    )
    for a, b in zip(want, got, strict=True):
        assert (a.layout, a.dtype, len(a.samples)) == (b.layout, b.dtype, len(b.samples))
        for x, y in zip(a.samples, b.samples, strict=True):
            assert x.shape == y.shape
            assert np.abs(x.astype(int) - y).max() <= 1


@pytest.mark.parametrize("kind", ["input", "source"])
def test_nothing_was_fed(files, kind):
    """Programs loop until there is no more, and know by the class of the error."""
    for lib in LIBRARIES.values():
        pipe = lib.pipeline.Pipeline(1, 1, None, prefetch_queue_depth=1)
        with pipe:
            if kind == "input":
                node = lib.fn.experimental.inputs.video(
                    name="in", device="cpu", sequence_length=200, blocking=False
                )
                error: type[Exception] = RuntimeError
            else:
                node, error = lib.fn.external_source(name="in", device="cpu"), IndexError
            pipe.set_outputs(node)
        pipe.build()
        pipe.feed_input("in", [np.fromfile(names(files)[0], np.uint8)])
        pipe.run()
        with pytest.raises(error):
            pipe.run()
