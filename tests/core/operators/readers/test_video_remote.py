"""Videos in remote storage, and indexes that are kept on disk."""

from __future__ import annotations

import io
import os
import sqlite3
import time

import numpy as np
import pytest

from headrace import errors, fn
from headrace.kernels.cpu.video import pool as pools
from headrace.kernels.cpu.video import video as videos
from headrace.kernels.cpu.video.index_store import packed, unpacked
from headrace.kernels.cpu.video.video import Video
from headrace.operators.readers import remote
from tests.core.operators.readers.test_video import read
from tests.support.videos import write_video

fsspec = pytest.importorskip("fsspec")
pytest.importorskip("av")

from fsspec.spec import AbstractBufferedFile, AbstractFileSystem  # noqa: E402


class CountingFileSystem(AbstractFileSystem):
    """A store that counts the bytes it is asked for, and fails when it is told to."""

    protocol = "counting"
    files: dict[str, bytes] = {}  # noqa: RUF012
    fetched = 0
    failures = 0

    def info(self, path, **_):
        name = self._strip_protocol(path)
        if name not in self.files:
            raise FileNotFoundError(name)
        return {"name": name, "size": len(self.files[name]), "type": "file"}

    def _open(self, path, mode="rb", block_size=None, **options):
        return CountingFile(self, path, mode, block_size or 1 << 16, **options)


class CountingFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        if CountingFileSystem.failures:
            CountingFileSystem.failures -= 1
            raise ConnectionError("the store is busy")
        CountingFileSystem.fetched += end - start
        return CountingFileSystem.files[self.path][start:end]


@pytest.fixture
def store(monkeypatch):
    fsspec.register_implementation("counting", CountingFileSystem, clobber=True)
    monkeypatch.setattr(CountingFileSystem, "files", {})
    monkeypatch.setattr(CountingFileSystem, "fetched", 0)
    monkeypatch.setattr(CountingFileSystem, "failures", 0)
    monkeypatch.setattr(remote, "wait", lambda seconds: None)
    pools.POOL.clear()
    return CountingFileSystem


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "cache"))
    pools.POOL.clear()
    return tmp_path / "cache" / "videos"


@pytest.fixture(scope="module")
def large():
    """A video of some 20 MB, of frames that are noise."""
    import av

    rng = np.random.default_rng(0)
    buffer = io.BytesIO()
    with av.open(buffer, "w", format="mp4") as output:
        stream = output.add_stream("mpeg4", rate=24)
        stream.height, stream.width, stream.pix_fmt, stream.gop_size = 256, 512, "yuv420p", 12
        stream.codec_context.qmin = stream.codec_context.qmax = 1
        for _ in range(96):
            picture = rng.integers(0, 256, (256, 512, 3), np.uint8)
            output.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        output.mux(stream.encode())
    return buffer.getvalue()


def clip(path, **args):
    return read(
        fn.experimental.readers.video, filenames=[path], sequence_length=2, batch_size=1, **args
    )


def test_only_what_is_decoded_is_fetched(store, folder, large, tmp_path):
    assert len(large) > 15 << 20
    store.files["a.mp4"] = large
    (tmp_path / "a.mp4").write_bytes(large)
    args = {"frames": [60, 61], "enable_frame_num": "sequence"}
    want = clip(str(tmp_path / "a.mp4"), **args)
    got = clip("counting://a.mp4", **args)
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
    assert store.fetched < len(large) // 2


@pytest.mark.parametrize("container", ["mp4", "matroska", "webm", "mpegts"])
def test_every_container(store, folder, tmp_path, container):
    codec = {"webm": "libvpx-vp9"}.get(container, "libx264")
    sound = {"webm": "libopus"}.get(container, "aac")
    path = write_video(tmp_path / "a", frames=30, container=container, codec=codec, sound=sound)
    store.files["a"] = (tmp_path / "a").read_bytes()
    args = {
        "enable_audio": True,
        "enable_timestamps": True,
        "iterations": 4,
        "random_shuffle": True,
    }
    for a, b in zip(clip(path, **args), clip("counting://a", **args), strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_vp9_in_mp4_says_in_its_packets_what_is_shown(store, folder, tmp_path):
    options = {"auto-alt-ref": "1", "lag-in-frames": "10"}
    path = write_video(tmp_path / "a", frames=30, codec="libvpx-vp9", options=options)
    store.files["a"] = (tmp_path / "a").read_bytes()
    np.testing.assert_array_equal(
        clip(path, step=7, iterations=4)[0], clip("counting://a", step=7, iterations=4)[0]
    )


def test_a_store_that_fails_for_a_while(store, folder, tmp_path, monkeypatch):
    store.files["a.mp4"] = write_video(frames=20)
    want = clip("counting://a.mp4", iterations=5)
    pools.POOL.clear()
    store.failures = 3
    for a, b in zip(want[0], clip("counting://a.mp4", iterations=5)[0], strict=True):
        np.testing.assert_array_equal(a, b)
    pools.POOL.clear()
    store.failures = 1 << 30
    with pytest.raises(errors.BadSampleError, match=r"(?s)cannot be read: ConnectionError.*a\.mp4"):
        clip("counting://a.mp4")
    store.failures = 0
    with pytest.raises(errors.BadSampleError, match=r"(?s)not there.*none\.mp4"):
        clip("counting://none.mp4")


def test_a_file_that_has_changed_is_read_anew(store, folder):
    store.files["a.mp4"] = write_video(frames=20)
    first = clip("counting://a.mp4")
    store.files["a.mp4"] = write_video(frames=20, seed=5)
    assert (clip("counting://a.mp4")[0][0] != first[0][0]).any()


def scans(monkeypatch):
    """The list of files that are scanned from now on."""
    found = []
    scan = Video._scan
    monkeypatch.setattr(
        videos.Video, "_scan", lambda self: (found.append(self._source), scan(self))[1]
    )
    return found


def old(path, seconds=10):
    os.utime(path, ns=(time.time_ns() - int(seconds * 1e9),) * 2)
    return str(path)


@pytest.mark.in_threads  # what worker processes scan is not counted here
def test_an_index_is_kept_on_disk(folder, tmp_path, monkeypatch):
    path = old(write_video(tmp_path / "a.mkv", frames=20, container="matroska", sound="aac"))
    args = {"enable_audio": True, "enable_timestamps": True}
    want = clip(path, **args)
    assert (folder / "indexes.sqlite").exists()
    pools.POOL.clear()
    scanned = scans(monkeypatch)
    got = clip(path, **args)
    assert scanned == []
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a[0], b[0])
    # Another version of the file, and what is damaged, are scanned.
    for damage in (
        lambda: old(write_video(tmp_path / "a.mkv", frames=9, container="matroska"), 5),
        lambda: (folder / "indexes.sqlite").write_bytes(b"no data base" * 1000),
        lambda: _spoil(folder / "indexes.sqlite"),
    ):
        damage()
        pools.POOL.clear()
        scanned.clear()
        clip(path)
        assert len(scanned) == 1
    with sqlite3.connect(folder / "indexes.sqlite") as connection:
        assert connection.execute("select count(*) from videos").fetchone() == (1,)
    connection.close()


def _spoil(file):
    with sqlite3.connect(file) as connection:
        connection.execute("update videos set content=?", (b"no index",))
    connection.close()


def test_a_folder_that_cannot_be_written_to(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path / "file"))
    pools.POOL.clear()
    path = old(write_video(tmp_path / "a.mp4", frames=4))
    assert clip(path)[0][0].shape == (2, 48, 64, 3)


@pytest.mark.parametrize("container", ["mp4", "h264", "avi", "matroska"])
def test_a_kept_index_is_the_same(container):
    data = write_video(
        frames=20, container=container, sound="aac" if container == "matroska" else None
    )
    video = Video(np.frombuffer(data, np.uint8))
    if container == "matroska":
        assert video.sound.index.places
    index, again = video.index, unpacked(packed(video.index))
    for name in ("keys", "shown", "pts", "dts", "sizes"):
        np.testing.assert_array_equal(getattr(index.packets, name), getattr(again.packets, name))
    for name in ("order", "seconds"):
        np.testing.assert_array_equal(getattr(index, name), getattr(again, name))
    for name in ("sound", "height", "width", "exact", "missing", "varies", "frame_seconds"):
        assert getattr(index, name) == getattr(again, name)
