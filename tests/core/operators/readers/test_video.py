"""Readers of videos: what is beside DALI's CPU in tests/parity/test_video.py is not here."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import deque
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types
from headrace.kernels.cpu.video import pool as pools
from headrace.kernels.cpu.video import scanner
from tests.support.fuzz import outcomes
from tests.support.videos import write_video

av = pytest.importorskip("av")

FRAMES = 20


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("videos")
    write_video(root / "a.mp4", frames=FRAMES)
    write_video(root / "b.mkv", frames=13, seed=1, container="matroska", size=(32, 48))
    return [str(root / "a.mp4"), str(root / "b.mkv")]


def pipeline(reader=fn.readers.video, batch_size=4, device_id=None, workers="threads", **args):
    on = {
        k: args.pop(k)
        for k in ("on_bad_sample", "enable_checkpointing", "checkpoint", "exec_dynamic")
        if k in args
    }

    @pipeline_def(
        batch_size=batch_size, num_threads=2, device_id=device_id, seed=3, workers=workers, **on
    )
    def p():
        found = reader(name="videos", **args)
        return tuple(found) if isinstance(found, (list, tuple)) else found

    pipe = p()
    pipe.build()
    return pipe


def read(*args, iterations=1, **kwargs):
    """Samples of each output, of all iterations behind one another."""
    pipe = pipeline(*args, **kwargs)
    outputs = [pipe.run() for _ in range(iterations)]
    return [
        [np.array(sample) for batch in batches for sample in batch]
        for batches in zip(*outputs, strict=True)
    ]


def whole(path):
    """All frames, decoded by the operator for encoded ones."""

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def p():
        encoded = fn.external_source(source=lambda: [np.fromfile(path, np.uint8)])
        return fn.decoders.video(encoded)

    return np.array(p().run()[0][0])


def test_frames_are_those_of_the_file(files):
    a, b = map(whole, files)
    videos, labels, numbers, times = read(
        filenames=files, labels=[], sequence_length=5, stride=2, step=1,
        enable_frame_num="sequence", enable_timestamps=True, batch_size=8, iterations=2,
    )  # fmt: skip
    for video, label, number, time in zip(videos, labels, numbers, times, strict=True):
        np.testing.assert_array_equal(video, (a, b)[int(label[0])][number])
        np.testing.assert_allclose(time, number / 24, atol=1e-3)


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_workers_read_the_same(files, workers):
    args = {"filenames": files, "sequence_length": 4, "random_shuffle": True, "initial_fill": 5}
    args |= {"enable_frame_num": True, "iterations": 3}
    want = read(batch_size=3, **args)
    for a, b in zip(want, read(batch_size=3, workers=workers, **args), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_a_tail_is_left_out_or_filled(files):
    args = {"filenames": files[:1], "sequence_length": 8, "enable_frame_num": "sequence"}
    _, numbers = read(**args, batch_size=2)
    assert [n[0] for n in numbers] == [0, 8]
    videos, numbers = read(**args, pad_sequences=True, batch_size=3, enable_timestamps=False)
    assert numbers[2].tolist() == [16, 17, 18, 19, -1, -1, -1, -1]
    assert not videos[2][4:].any()
    assert videos[2][:4].any()


def test_the_last_frame_may_end_a_sequence(files):
    """19 = 6 * 3 + 1 frames are enough for 7 with a stride of 3."""
    _, numbers = read(
        filenames=files[:1], sequence_length=7, stride=3, enable_frame_num="sequence", batch_size=1
    )
    assert numbers[0].tolist() == list(range(0, 19, 3))


@pytest.mark.parametrize(("outwards", "want"), [(False, [2, 3, 4, 5]), (True, [1, 2, 3, 4, 5, 6])])
def test_times_in_a_list(files, tmp_path, outwards, want):
    (tmp_path / "list.txt").write_text(f"{files[0]} 7 0.06 0.26\n")
    _, labels, numbers = read(
        file_list=str(tmp_path / "list.txt"), sequence_length=1, batch_size=len(want),
        file_list_include_preceding_frame=outwards, enable_frame_num=True,
    )  # fmt: skip
    assert [n[0] for n in numbers] == want
    assert labels[0].tolist() == [7]


def test_frames_in_a_list_and_from_its_end(files, tmp_path):
    (tmp_path / "list.txt").write_text(f"{files[0]} 7 -4 -1\n{files[1]} 8 11\n")
    _, labels, numbers = read(
        file_list=str(tmp_path / "list.txt"), sequence_length=1, batch_size=5,
        file_list_frame_num=True, enable_frame_num=True,
    )  # fmt: skip
    assert [(int(a[0]), int(b[0])) for a, b in zip(labels, numbers, strict=True)] == [
        *((7, 16), (7, 17), (7, 18)),
        *((8, 11), (8, 12)),
    ]


def test_floats(files):
    args = {"filenames": files[:1], "sequence_length": 3, "batch_size": 1}
    ((whole_numbers,),) = read(**args)
    ((floats,),) = read(**args, dtype=types.FLOAT)
    ((normalized,),) = read(**args, dtype=types.FLOAT, normalized=True)
    assert floats.dtype == np.float32
    assert np.abs(floats - whole_numbers).max() <= 0.501
    np.testing.assert_allclose(normalized * 255, floats, atol=1e-3)
    with pytest.raises(errors.ArgumentValueError, match="FLOAT"):
        read(**args, normalized=True)
    with pytest.raises(errors.DataTypeError, match="UINT8 or FLOAT"):
        read(**args, dtype=types.INT16)


def test_colors(files):
    args = {"filenames": files[:1], "sequence_length": 3, "batch_size": 1}
    ((rgb,),) = read(**args)
    ((ycbcr,),) = read(**args, image_type=types.YCbCr)
    ((gray,),) = read(**args, image_type=types.GRAY)
    assert gray.shape == (3, 48, 64, 1)
    luma = rgb @ [0.299, 0.587, 0.114]
    assert np.abs(ycbcr[..., 0] - (luma * 219 / 255 + 16)).mean() < 2
    assert np.abs(gray[..., 0] - luma).mean() < 2


def test_sizes_differ_and_are_resized(files):
    videos = read(filenames=files, sequence_length=5, batch_size=6)[0]
    assert {video.shape for video in videos} == {(5, 48, 64, 3), (5, 32, 48, 3)}
    for args in (
        {"size": [24, 30]},
        {"resize_shorter": 20},
        {"size": [24, 30], "dtype": types.FLOAT},
    ):
        resized = read(
            fn.readers.video_resize, filenames=files, sequence_length=5, batch_size=6, **args
        )[0]

        @pipeline_def(batch_size=6, num_threads=1, device_id=None)
        def p(args=args):
            return fn.resize(fn.readers.video(filenames=files, sequence_length=5), **args)

        for got, want in zip(resized, p().run()[0], strict=True):
            np.testing.assert_array_equal(got, np.array(want))


def test_a_size_by_sample(files):
    sizes = iter(range(100))

    @pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def p():
        size = fn.external_source(source=lambda: np.float32(10 + 2 * next(sizes)), batch=False)
        return fn.readers.video_resize(
            filenames=files[:1], sequence_length=2, resize_x=size, resize_y=9
        )

    shapes = [np.array(sample).shape for sample in p().run()[0]]
    assert shapes == [(2, 9, width, 3) for width in (10, 12, 14)]


def test_a_varying_rate_is_a_bad_sample(tmp_path):
    path = write_video(
        tmp_path / "v.mp4", frames=5, times=[0, 10, 90, 95, 300], time_base=Fraction(1, 1000)
    )
    args = {"filenames": [path], "sequence_length": 5, "batch_size": 1}
    with pytest.raises(errors.BadSampleError, match=r"(?s)varies.*v\.mp4"):
        read(**args)
    assert read(**args, skip_vfr_check=True)[0][0].shape[0] == 5
    assert read(fn.experimental.readers.video, **args)[0][0].shape[0] == 5


def test_bad_files_are_bad_samples(files, tmp_path):
    (tmp_path / "text.mp4").write_text("no video")
    whole_file = tmp_path / "whole.mp4"
    write_video(whole_file, container_options={"movflags": "faststart"})
    cut = tmp_path / "cut.mp4"
    cut.write_bytes(whole_file.read_bytes()[:-600])
    names = [str(tmp_path / "none.mp4"), str(tmp_path / "text.mp4"), str(cut), files[0]]
    for name in names[:3]:
        with pytest.raises(errors.BadSampleError, match=name):
            read(filenames=[name], sequence_length=2, batch_size=20)
    _, numbers = read(
        filenames=names, sequence_length=10, enable_frame_num=True, on_bad_sample="replace",
        batch_size=4, iterations=2,
    )  # fmt: skip
    assert {int(n[0]) for n in numbers} <= {0, 10}


def test_a_file_that_changes_is_a_bad_sample(tmp_path):
    path = tmp_path / "a.mp4"
    write_video(path)
    pipe = pipeline(filenames=[str(path)], sequence_length=2, batch_size=1)
    pipe.run()
    path.unlink()
    runs = (pipe.run() for _ in range(12))  # some batches are there already
    with pytest.raises(errors.BadSampleError, match=r"(?s)No such file.*a\.mp4"):
        deque(runs, maxlen=0)


def test_checkpoints(files):
    args = {"filenames": files, "sequence_length": 3, "random_shuffle": True, "initial_fill": 4}
    args |= {"enable_frame_num": "sequence", "batch_size": 2, "enable_checkpointing": True}
    pipe = pipeline(**args)
    pipe.run()
    saved = pipe.checkpoint()
    want = [[np.array(s) for out in pipe.run() for s in out] for _ in range(6)]
    again = pipeline(**args, checkpoint=saved)
    for batch in want:
        got = [np.array(s) for out in again.run() for s in out]
        for a, b in zip(batch, got, strict=True):
            np.testing.assert_array_equal(a, b)


def test_sources_and_shards(files):
    args = {"filenames": files, "sequence_length": 4, "enable_frame_num": True}
    seen = set()
    for shard in range(3):
        pipe = pipeline(**args, shard_id=shard, num_shards=3, batch_size=2)
        assert pipe.reader_meta("videos")["epoch_size"] == 8
        numbers = pipe.run()
        sources = [sample.source_info() for sample in numbers[0]]
        seen |= {(s, int(np.array(n)[0])) for s, n in zip(sources, numbers[1], strict=True)}
    assert {source for source, _ in seen} == set(files)
    assert len(seen) == 6


@pytest.mark.sweep
@pytest.mark.parametrize(
    "reader", [fn.readers.video, fn.experimental.readers.video], ids=["plain", "experimental"]
)
@pytest.mark.parametrize(
    ("args", "said"),
    [
        ({"sequence_length": 0}, "sequence_length"),
        ({"stride": 0}, "stride"),
        ({"sequence_length": 500}, "number of input samples is 0"),
        ({"labels": [1]}, "Number of provided files and labels"),
        ({"image_type": types.BGR}, "image_type"),
        ({"enable_frame_num": "all"}, "enable_frame_num"),
    ],
)
def test_wrong_arguments(files, reader, args, said):
    with pytest.raises(errors.HeadraceError, match=said):
        read(reader, **{"filenames": files, "sequence_length": 3, **args})


def test_files_of_folders_that_are_no_videos_are_left_out(tmp_path):
    for folder in "xy":
        (tmp_path / folder).mkdir()
        write_video(tmp_path / folder / "a.mp4", frames=4)
        (tmp_path / folder / "notes.txt").write_text("no video")
    _, labels = read(file_root=str(tmp_path), sequence_length=4, batch_size=2)
    assert [int(n[0]) for n in labels] == [0, 1]


def test_remote_files(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    data = write_video(frames=4)
    fsspec.filesystem("memory").pipe("/videos/a.mp4", data)
    (video,) = read(filenames=["memory://videos/a.mp4"], sequence_length=4, batch_size=1)[0]
    (tmp_path / "a.mp4").write_bytes(data)
    np.testing.assert_array_equal(video, whole(tmp_path / "a.mp4"))


DAMAGED = {
    "a.mp4": {"sound": "aac"},
    "a.mkv": {"container": "matroska", "sound": "aac"},
    "a.webm": {"container": "webm", "codec": "libvpx-vp9", "options": {"cpu-used": "8"}},
    "a.avi": {"container": "avi", "codec": "mpeg4", "sound": "pcm_s16le"},
    "a.ts": {"container": "mpegts", "sound": "aac"},
    "a.flv": {"container": "flv", "sound": "aac"},
    "a.h264": {"container": "h264"},
    "a.mov": {"container": "mov", "codec": "libx265", "options": {"x265-params": "log-level=none"}},
}


@pytest.mark.parametrize("count", [12, pytest.param(1000, marks=pytest.mark.nightly)])
@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files(files, tmp_path, name, count):
    """Each gives frames, or an error of ours that names it; a file beside it gives its own."""
    path = tmp_path / name
    data = write_video(frames=8, **DAMAGED[name])
    want = whole(files[0])
    args = {"sequence_length": 2, "skip_vfr_check": True, "enable_frame_num": True, "labels": []}
    sound = {"enable_audio": True} if DAMAGED[name].get("sound") else {}

    def one():
        return read(filenames=[str(path)], batch_size=2, **args, **sound)

    found = [
        result for _, result in outcomes(path, data, count, one, hot=4096 if count > 99 else 512)
    ]
    assert any(isinstance(result, errors.HeadraceError) for result in found)
    assert not all(isinstance(result, errors.HeadraceError) for result in found)
    videos, labels, numbers = read(
        filenames=[str(path), files[0]], batch_size=9, iterations=2, on_bad_sample="replace", **args
    )
    for video, label, number in zip(videos, labels, numbers, strict=True):
        if label[0] == 1:
            np.testing.assert_array_equal(video, want[number[0] : number[0] + 2])


CRASHES = """
import importlib.abc, importlib.machinery, os, sys

def crash_at(kind, name, file):
    method = getattr(kind, name)

    def crashes(self, *args):
        if str(self._source).endswith(file):
            os.abort()
        return method(self, *args)

    setattr(kind, name, crashes)

class Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name != "headrace.kernels.cpu.video.video":
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            for method, file in (("frames", "crash.mp4"), ("_scan", "unscannable.mp4")):
                crash_at(module.Video, method, file)

        spec.loader.exec_module = exec_module
        return spec

sys.meta_path.insert(0, Finder())
"""
PROGRAM = """
import sys
import numpy as np
from headrace import errors, fn, pipeline_def

def run(filenames, threads=2, **args):
    @pipeline_def(batch_size=4, num_threads=threads, device_id=None, **args)
    def p():
        return fn.readers.video(filenames=filenames, labels=[], sequence_length=4)[1]

    pipe = p()
    return [int(np.array(label)[0]) for _ in range(2) for label in pipe.run()[0]]

if __name__ == "__main__":
    good, *bad = sys.argv[1:]
    try:
        run(bad[:1], workers="processes")
    except errors.WorkerProcessError:
        print("lost")
    for file in bad:
        try:
            run([file], threads=1)
        except errors.BadSampleError as error:
            print("crashed" in str(error) and file in str(error))
    print(set(run([good, *bad], on_bad_sample="replace")))
"""


def test_a_library_that_crashes_makes_a_bad_sample(files, tmp_path):
    """A process that ends at a file, each time, takes nothing else along; by default, too, and
    while the file is scanned.
    """
    names = ("crash.mp4", "unscannable.mp4")
    paths = [write_video(tmp_path / name, frames=4) for name in names]
    (tmp_path / "sitecustomize.py").write_text(CRASHES)
    (tmp_path / "program.py").write_text(PROGRAM)
    search = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), files[0], *paths],
        env={**os.environ, "PYTHONPATH": search, "HEADRACE_WORKERS": "auto"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\n")[:-1] == ["lost", "True", "True", "{0}"], done.stderr


@pytest.mark.parametrize("name", ["a.mp4", "memory://scanned/a.mp4", "memory://scanned/a.mkv"])
def test_files_are_scanned_in_a_process_of_their_own(tmp_path, monkeypatch, name):
    """What it finds is what a scan in the program does; it reads remote files by the program."""
    monkeypatch.setattr(pools, "store", lambda: None)
    container = "matroska" if name.endswith("mkv") else "mp4"
    data = write_video(frames=9, sound="aac", container=container, options={"bf": "2"})
    if "://" in name:
        fsspec = pytest.importorskip("fsspec")
        fsspec.filesystem("memory").pipe(name.removeprefix("memory:/"), data)
    else:
        name = str(tmp_path / name)
        Path(name).write_bytes(data)
    args = {"filenames": [name], "sequence_length": 3, "batch_size": 3, "enable_timestamps": True}
    args |= {"enable_audio": True, "adjust_orientation": True}
    want = read(**args)
    pools.POOL.clear()
    monkeypatch.setenv("HEADRACE_WORKERS", "processes")
    here = []
    monkeypatch.setattr(scanner, "scanned", lambda *args, **kwargs: here.append(args))
    got = read(**args)
    assert not here
    for a, b in zip(want, got, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_where_no_process_can_be_started_files_are_scanned_in_the_program(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_WORKERS", "auto")

    def fail(*_):
        raise OSError("not permitted")

    monkeypatch.setattr(scanner, "start_interpreter", fail)
    scanner.PROCESSES.close()
    path = write_video(tmp_path / "a.mp4", frames=4)
    assert read(filenames=[path], sequence_length=4, batch_size=1)[0][0].shape[0] == 4


def test_frames_are_those_of_pyav_in_time(files):
    """Beside PyAV's own luma, which nobody converts: frames are not mixed up."""
    with av.open(files[0]) as container:
        want = [f.to_ndarray(format="gray").astype(float) for f in container.decode(video=0)]
    videos, numbers = read(
        filenames=files[:1], sequence_length=4, image_type=types.GRAY, enable_frame_num="sequence",
        batch_size=5,
    )  # fmt: skip
    for video, number in zip(videos, numbers, strict=True):
        for frame, n in zip(video, number, strict=True):
            distances = [np.abs(frame[..., 0] - w).mean() for w in want]
            assert int(np.argmin(distances)) == n
