"""Videos by the decoders of a GPU: PyNvVideoCodec stood for by FFmpeg, all else as it is."""

from __future__ import annotations

import gc
import itertools
import shutil
import sys
from collections import deque

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types
from headrace.experimental import dynamic as ndd
from headrace.kernels.gpu.nvdec import session
from headrace.operators.support.video import fed_video
from headrace.operators.support.video.on_gpu import VideosToDevice
from headrace.pipeline import experimental
from headrace.tensors.gpu.runtime import get_runtime
from tests.support.gpu.nvdec import library
from tests.support.videos import turned, write_video

pytest.importorskip("av")

OPEN_GOP = {"x264-params": "open-gop=1:bframes=3:keyint=8:min-keyint=8"}
FILES = {
    "a.mp4": {"options": OPEN_GOP},
    "b.mkv": {"container": "matroska", "size": (32, 48), "seed": 1},
    "full.mp4": {"full_range": True, "pix_fmt": "yuvj420p"},
    "hd.mp4": {"colorspace": 1},
    "hevc.mp4": {"codec": "libx265", "options": {"x265-params": "log-level=none"}},
    "vp9.webm": {"codec": "libvpx-vp9", "container": "webm"},
    "vp8.webm": {"codec": "libvpx", "container": "webm"},
    "h264.ts": {"container": "mpegts", "options": OPEN_GOP},
}
ON_CPU = {
    "deep.mp4": {
        "codec": "libx265",
        "options": {"x265-params": "log-level=none"},
        "pix_fmt": "yuv420p10le",
    },
    "odd.webm": {"codec": "libvpx-vp9", "container": "webm", "size": (47, 61)},
    "mpeg4.mp4": {"codec": "mpeg4"},
    "wide.mp4": {"pix_fmt": "yuv444p"},
    "mjpeg.avi": {"codec": "mjpeg", "container": "avi", "pix_fmt": "yuvj420p"},
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("videos")
    every = {**FILES, **ON_CPU}
    return {name: write_video(root / name, frames=20, **every[name]) for name in every}


@pytest.fixture
def nvdec(monkeypatch):
    """The module, which tells what it was asked for."""
    found = library(get_runtime(0))
    monkeypatch.setitem(sys.modules, "PyNvVideoCodec", found)
    session._is_installed.cache_clear()
    session.library.cache_clear()
    yield found
    session._is_installed.cache_clear()
    session.library.cache_clear()


@pytest.fixture
def no_cpu(nvdec, monkeypatch):
    """Has hardware decode all, or fail."""

    def by_cpu(*_):
        raise AssertionError("the CPU decodes")

    monkeypatch.setattr(VideosToDevice, "_by_cpu", by_cpu)


def run(graph, device_id, iterations=1, **args):
    @pipeline_def(batch_size=4, num_threads=2, device_id=device_id, seed=1, **args)
    def p():
        found = graph("cpu" if device_id is None else "gpu")
        return tuple(found) if isinstance(found, (list, tuple)) else found

    pipe = p()
    return [
        [np.array(sample.as_cpu()) for sample in out]
        for _ in range(iterations)
        for out in pipe.run()
    ]


def same(graph, **args):
    want, got = run(graph, None, **args), run(graph, 0, **args)
    assert len(want) == len(got)
    for a, b in zip(want, got, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def read(reader, files, **args):
    args = {"filenames": list(files), "sequence_length": 3, **args}
    return lambda device: reader(device=device, **args)


@pytest.mark.parametrize("name", FILES)
def test_hardware_decodes_what_the_cpu_decodes(files, nvdec, no_cpu, name):
    same(read(fn.readers.video, [files[name]], labels=[3], enable_frame_num=True), iterations=2)
    assert nvdec.decoded
    if name == "hd.mp4":
        same(read(fn.readers.video, [files[name]], color_space="tag"))


@pytest.mark.parametrize("name", ON_CPU)
def test_the_cpu_decodes_what_hardware_does_not(files, nvdec, name):
    same(read(fn.readers.video, [files[name]]), iterations=2)
    assert not nvdec.decoded


def test_what_hardware_refuses_is_said_once(tmp_path, nvdec):
    options = {"svtav1-params": "lp=1"}
    path = write_video(tmp_path / "a.mp4", frames=12, codec="libsvtav1", options=options)
    graph = read(fn.readers.video, [path])
    want = run(graph, None, iterations=3)
    with pytest.warns(UserWarning, match=r"AV1 of 8 bits \(Codec not supported") as said:
        got = run(graph, 0, iterations=3)
    assert len(said) == 1
    np.testing.assert_array_equal(np.array(want), np.array(got))
    assert len(nvdec.made) <= 6


GRAPHS = {
    "floats": (fn.readers.video, {"dtype": types.FLOAT}),
    "normalized": (fn.readers.video, {"dtype": types.FLOAT, "normalized": True}),
    "gray": (fn.readers.video, {"image_type": types.GRAY, "random_shuffle": True}),
    "ycbcr": (fn.readers.video, {"image_type": types.YCbCr, "stride": 2, "step": 1}),
    "padded": (fn.readers.video, {"pad_sequences": True, "sequence_length": 7}),
    "filled": (
        fn.experimental.readers.video,
        {"pad_mode": "constant", "fill_value": [9, 8, 7], "sequence_length": 7},
    ),
    "edge": (fn.experimental.readers.video, {"pad_mode": "edge", "sequence_length": 7}),
    "uniform": (fn.experimental.readers.video, {"uniform_sample": True}),
    "clips": (fn.readers.video, {"fps": 7.0, "clips_per_video": 3, "clip_starts": "random"}),
    "timed": (fn.readers.video, {"enable_timestamps": True, "labels": []}),
}


@pytest.mark.parametrize("name", GRAPHS)
def test_every_way_to_read(files, no_cpu, name):
    reader, args = GRAPHS[name]
    same(read(reader, [files["a.mp4"], files["b.mkv"]], **args), iterations=3)


def test_resized(files, no_cpu):
    two = [files["a.mp4"], files["b.mkv"]]
    for args in (
        {"size": [20, 30]},
        {"resize_shorter": 20, "dtype": types.FLOAT},
        {"size": [20, 30], "dtype": types.FLOAT, "normalized": True},
    ):
        graph = read(fn.readers.video_resize, two, **args)
        for a, b in zip(*(run(graph, d, iterations=3) for d in (None, 0)), strict=True):
            for x, y in zip(a, b, strict=True):
                assert x.shape == y.shape
                assert x.dtype == y.dtype
                far = 1 if x.dtype == np.uint8 else 1e-4 if "normalized" in args else 0.6
                assert np.abs(x.astype(float) - y).max() <= far

    def graph(device):
        width = fn.random.uniform(range=[10, 40], seed=3)
        return read(fn.readers.video_resize, two, resize_x=width, resize_y=9)(device)

    shapes = [[x.shape for x in run(graph, device)[0]] for device in (None, 0)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("orientation", [2, 3, 6, 7, 8])
def test_turned(tmp_path, files, no_cpu, orientation):
    path = tmp_path / "turned.mp4"
    with open(files["a.mp4"], "rb") as file:
        path.write_bytes(turned(file.read(), orientation))
    two = [str(path), files["b.mkv"]]
    args = {"adjust_orientation": True, "pad_sequences": True, "sequence_length": 7}
    same(read(fn.readers.video, two, **args), iterations=2)
    data = np.fromfile(path, np.uint8)

    def graph(device):
        encoded = fn.external_source(lambda: [data] * 4)
        device = {"gpu": "mixed"}.get(device, device)
        return fn.decoders.video(encoded, device=device, adjust_orientation=True)

    same(graph)


def test_encoded_videos(files, nvdec):
    def graph(device, **args):
        names = ["a.mp4", "odd.webm", "mpeg4.mp4", "deep.mp4"]
        encoded = fn.external_source(lambda: [np.fromfile(files[n], np.uint8) for n in names])
        return fn.decoders.video(encoded, device={"gpu": "mixed"}.get(device, device), **args)

    same(graph)
    same(lambda device: graph(device, frames=[9, 3, 3, 40], fill_value=[1, 2, 3]))
    assert nvdec.decoded
    data = np.fromfile(files["a.mp4"], np.uint8)
    want, got = (
        np.array(ndd.decoders.video(ndd.as_tensor(data), device=d, frames=[3, 1]).cpu())
        for d in ("cpu", "gpu")
    )
    np.testing.assert_array_equal(want, got)


def fed(files, device_id, names, *, iterations, debug=False, **args):
    """Sequences of each iteration, of videos that are fed one after the other."""
    device = "cpu" if device_id is None else "mixed"

    @experimental.pipeline_def(
        batch_size=3, num_threads=1, device_id=device_id, prefetch_queue_depth=1
    )
    def p():
        return fn.experimental.inputs.video(name="in", device=device, **args)

    pipe = p(debug=debug)
    for name in names:
        pipe.feed_input("in", [np.fromfile(files[name], np.uint8)])
    return [[np.array(sample.as_cpu()) for sample in pipe.run()[0]] for _ in range(iterations)]


def assert_same_batches(want, got):
    assert [len(batch) for batch in want] == [len(batch) for batch in got]
    for a, b in zip(itertools.chain(*want), itertools.chain(*got), strict=True):
        np.testing.assert_array_equal(a, b)


def test_videos_that_are_fed(files, nvdec, no_cpu):
    """Each packet is decoded once, by one decoder, and what is over is gone."""
    args = {"sequence_length": 6, "iterations": 4, "names": ["a.mp4", "b.mkv"]}
    want = fed(files, None, **args)
    assert [[len(frames) for frames in batch] for batch in want] == [[6, 6, 6], [2]] * 2
    assert_same_batches(want, fed(files, 0, **args))
    assert len(nvdec.made) == 1
    assert nvdec.decoded <= 2 * 20 + 4  # and ends
    gc.collect()
    assert not fed_video._alive


@pytest.mark.parametrize("debug", [False, True])
def test_videos_that_are_fed_are_filled_and_turned(files, tmp_path, nvdec, no_cpu, debug):
    path = tmp_path / "turned.mp4"
    with open(files["hd.mp4"], "rb") as file:
        path.write_bytes(turned(file.read(), 6))
    args = {"sequence_length": 7, "last_sequence_policy": "pad", "color_space": "tag"}
    args |= {"adjust_orientation": True, "iterations": 1, "names": ["turned"]}
    want, got = (fed({"turned": path}, d, debug=debug, **args) for d in (None, 0))
    assert want[0][2].shape == (7, 64, 48, 3)
    assert_same_batches(want, got)
    assert nvdec.decoded


def test_the_cpu_decodes_what_is_fed_and_hardware_does_not_know(files, nvdec):
    args = {"sequence_length": 4, "iterations": 2, "names": ["odd.webm"]}
    assert_same_batches(fed(files, None, **args), fed(files, 0, **args))
    assert not nvdec.decoded


def test_what_is_fed_and_no_video_is_told(nvdec, tmp_path):
    (tmp_path / "text").write_text("no video")
    with pytest.raises(errors.BadSampleError, match="cannot be opened"):
        fed({"text": tmp_path / "text"}, 0, ["text"], sequence_length=2, iterations=1)


DYNAMIC = {
    "Video": (ndd.readers.Video, {"dtype": types.FLOAT, "normalized": True}),
    "filled": (
        ndd.experimental.readers.Video,
        {"pad_mode": "constant", "fill_value": [9, 8, 7], "sequence_length": 7},
    ),
    "VideoResize": (ndd.readers.VideoResize, {"size": (20, 30), "interp_type": types.INTERP_NN}),
}


@pytest.mark.parametrize("name", DYNAMIC)
def test_readers_in_dynamic_mode(files, nvdec, no_cpu, name):
    reader, args = DYNAMIC[name]
    args = {"filenames": [files["a.mp4"], files["b.mkv"]], "sequence_length": 3, **args}
    found = []
    for device in ("cpu", "gpu"):
        epoch = reader(device=device, labels=[4, 5], **args).next_epoch(batch_size=3)
        found.append(
            [[np.array(s.cpu()) for out in (video, labels) for s in out] for video, labels in epoch]
        )
    assert nvdec.decoded
    for a, b in zip(*found, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def mixed(files, device, **args):
    names = ["a.mp4"], ["b.mkv", "full.mp4"]
    readers = [
        fn.readers.video(
            filenames=[files[n] for n in own], labels=[], device=device, sequence_length=3, **args
        )
        for own in names
    ]
    return fn.readers.mix(readers, weights=[1, 2])


def test_mixed_readers(files, nvdec, no_cpu):
    same(lambda device: mixed(files, device), iterations=3)
    assert nvdec.decoded
    same(lambda device: mixed(files, device, dtype=types.FLOAT, image_type=types.GRAY))

    def resized(device):
        inner = mixed(files, device)
        last = fn.experimental.readers.video(
            filenames=[files["hd.mp4"]], labels=[9], device=device, sequence_length=3
        )
        return fn.readers.mix([inner[:2], last])

    same(resized, iterations=2)


def test_mixed_readers_in_dynamic_mode(files, nvdec, no_cpu):
    found = []
    for device in ("cpu", "gpu"):
        readers = [
            ndd.readers.Video(
                filenames=[files[n]],
                labels=[],
                sequence_length=3,
                image_type=types.GRAY,
                device=device,
            )
            for n in ("a.mp4", "b.mkv")
        ]
        epoch = ndd.readers.Mix(readers=readers).next_epoch(batch_size=3)
        found.append([np.array(s.cpu()) for outputs in epoch for out in outputs for s in out])
    assert nvdec.decoded
    for want, got in zip(*found, strict=True):
        np.testing.assert_array_equal(want, got)


def test_the_cpu_decodes_what_mixed_readers_want_in_different_ways(files, nvdec):
    """Frames of other colours, and frames that are not the first output."""

    def colours(device):
        readers = [
            fn.readers.video(
                filenames=[files["a.mp4"]], sequence_length=3, image_type=kind, device=device
            )
            for kind in (types.RGB, types.YCbCr)
        ]
        return fn.readers.mix(readers)

    def turned_round(device):
        video, label = mixed(files, device)[:2]
        return label, video

    def labels_first(device):
        readers = [
            fn.readers.video(filenames=[files[n]], labels=[], sequence_length=3, device=device)
            for n in ("a.mp4", "b.mkv")
        ]
        return fn.readers.mix([(label, video) for video, label in readers])

    same(colours)
    same(labels_first)
    assert not nvdec.decoded
    same(turned_round)
    assert nvdec.decoded


def test_what_is_also_wanted_on_the_cpu_is_decoded_there(files, nvdec):
    def graph(device):
        video = read(fn.readers.video, [files["a.mp4"]])(device)
        return video, video.cpu()

    both = run(graph, 0)
    np.testing.assert_array_equal(np.array(both[0]), np.array(both[1]))
    assert not nvdec.decoded


def test_a_switch_turns_hardware_off(files, nvdec, monkeypatch):
    monkeypatch.setenv("HEADRACE_VIDEO_DECODER", "cpu")
    same(read(fn.readers.video, [files["a.mp4"]]))
    args = {"sequence_length": 4, "iterations": 2, "names": ["a.mp4"]}
    assert_same_batches(fed(files, None, **args), fed(files, 0, **args))
    assert not nvdec.decoded


def test_decoders_are_used_again(files, nvdec, no_cpu):
    """Of a file that is read on, each packet is decoded once; another one needs no new decoder."""
    graph = read(fn.readers.video, [files["a.mp4"], files["b.mkv"], files["h264.ts"]])
    run(graph, 0, iterations=8)
    assert len(nvdec.made) <= 2
    assert nvdec.reconfigured


def test_a_damaged_file_is_a_bad_sample(files, nvdec, tmp_path):
    shutil.copy(files["a.mp4"], tmp_path / "gone.mp4")
    graph = read(fn.readers.video, [str(tmp_path / "gone.mp4"), files["b.mkv"]])

    @pipeline_def(batch_size=2, num_threads=2, device_id=0, prefetch_queue_depth=1)
    def p():
        return graph("gpu")

    pipe = p()
    pipe.build()
    pipe.run()
    (tmp_path / "gone.mp4").unlink()
    runs = (pipe.run() for _ in range(12))
    with pytest.raises(errors.BadSampleError, match=r"(?s)No such file.*gone\.mp4"):
        deque(runs, maxlen=0)
