"""`fn.cache`: kept samples are right, whatever happens to files, caches and processes."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import headrace
from headrace import Pipeline, fn, types
from headrace.errors import ArgumentValueError, HeadraceError, SuspectDataWarning
from headrace.executor.loader import Loader
from headrace.operators.cache.store import ram_folder
from tests.support.images import encoded

pytestmark = pytest.mark.usefixtures("roomy_caches")

COUNT, BATCH = 7, 3


@pytest.fixture
def files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setenv("HEADRACE_RAM_CACHE", str(tmp_path / "memory"))
    folder = tmp_path / "images"
    folder.mkdir()
    for k in range(COUNT):
        (folder / f"{k}.jpg").write_bytes(encoded(30 + k, 40 - k, seed=k).tobytes())
    return _aged(sorted(folder.iterdir()))


def _aged(paths: list[Path]) -> list[Path]:
    """Wait until files are old enough to be kept, which is a fiftieth of a second."""
    youngest = max(p.stat().st_ctime_ns for p in paths)
    probe = paths[0].with_suffix(".probe")
    while True:
        probe.touch()
        if probe.stat().st_mtime_ns - youngest > 40_000_000:
            probe.unlink()
            return paths


@pytest.fixture
def reads(monkeypatch) -> list[int]:
    """Numbers of entries that were read."""
    found: list[int] = []
    load = Loader._load

    def counted(self, entries, empty):
        found.extend(entries.tolist())
        return load(self, entries, empty)

    monkeypatch.setattr(Loader, "_load", counted)
    return found


def pipeline(files, where, build=None, **settings):
    settings = {"num_threads": 2, "device_id": None, "seed": 4, **settings}
    pipe = Pipeline(BATCH, prefetch_queue_depth=1, **settings)
    with pipe:
        content, label = fn.readers.file(files=[str(f) for f in files], random_shuffle=True)
        images = fn.resize(fn.decoders.image(content), size=(20, 30))
        if where is not None:
            images = fn.cache(images, where=str(where))
        drawn = fn.random_resized_crop(images, size=(8, 8), seed=3)
        outputs = (images, drawn, label) if build is None else build(content, label, where)
        pipe.set_outputs(*outputs)
    return pipe


def taken(pipe, batches=6):
    return [
        [[np.array(s).tolist() for s in o.as_cpu()] for o in pipe.run()] for _ in range(batches)
    ]


def test_the_second_epoch_reads_nothing(files, reads, tmp_path):
    wanted = taken(pipeline(files, None))
    for where in (tmp_path / "cache", "ram"):
        reads.clear()
        pipe = pipeline(files, where)
        assert taken(pipe) == wanted
        assert sorted(reads[:COUNT]) == list(range(COUNT))
        assert len(reads) <= COUNT + 2 * BATCH  # twice, where two threads had one in work
        reads.clear()
        taken(pipe, 5)
        assert not reads
    del pipe
    gc.collect()
    assert not list(ram_folder().iterdir())
    reads.clear()
    assert taken(pipeline(files, tmp_path / "cache")) == wanted
    assert not reads


def test_a_changed_file_is_read_again(files, reads, tmp_path):
    taken(pipeline(files, tmp_path / "cache"))
    status = files[2].stat()
    files[2].write_bytes(encoded(33, 33, seed=99).tobytes().ljust(status.st_size, b"\0"))
    os.utime(files[2], ns=(status.st_atime_ns, status.st_mtime_ns))
    _aged(files)
    wanted = taken(pipeline(files, None))
    for _ in range(2):
        reads.clear()
        assert taken(pipeline(files, tmp_path / "cache")) == wanted
    assert not reads
    more = [*files[:3], files[2].with_name("new.jpg"), *files[3:]]
    more[3].write_bytes(files[0].read_bytes())
    _aged(more)
    reads.clear()
    taken(pipeline(more, tmp_path / "cache"))
    assert set(reads) == {3}


@pytest.mark.sweep
@pytest.mark.parametrize("part", ["head", "table", "data", "spec"])
@pytest.mark.parametrize("harm", ["cut", "zeros", "noise", "gone"])
def test_broken_caches_are_made_again(files, reads, tmp_path, part, harm):
    wanted = taken(pipeline(files, tmp_path / "cache"))
    (path,) = tmp_path.glob(f"cache/*/{part}*")
    content = path.read_bytes()
    noise = np.random.default_rng(0).bytes(len(content))
    made = {"cut": content[: len(content) // 2], "zeros": bytes(len(content)), "noise": noise}
    if harm == "gone":
        path.unlink()
    else:
        path.write_bytes(made[harm])
    reads.clear()
    assert taken(pipeline(files, tmp_path / "cache")) == wanted
    assert len(set(reads)) == COUNT or part == "spec"
    reads.clear()
    assert taken(pipeline(files, tmp_path / "cache")) == wanted
    assert not reads


def test_one_wrong_byte(files, reads, tmp_path):
    wanted = taken(pipeline(files, tmp_path / "cache"))
    (path,) = tmp_path.glob("cache/*/data*")
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    reads.clear()
    assert taken(pipeline(files, tmp_path / "cache")) == wanted
    assert len(set(reads)) == 1


def test_clearing_while_in_use(files, tmp_path):
    wanted = taken(pipeline(files, None), 12)
    pipe = pipeline(files, tmp_path / "cache")
    got = taken(pipe, 4)
    for path in tmp_path.glob("cache/*/*"):
        path.unlink()
    assert got + taken(pipe, 8) == wanted


def test_a_limit(files, reads, tmp_path):
    wanted = taken(pipeline(files, None))

    def build(content, label, where):
        images = fn.resize(fn.decoders.image(content), size=(20, 30))
        images = fn.cache(images, where=str(where), limit_bytes=3 * 2112)
        return images, fn.random_resized_crop(images, size=(8, 8), seed=3), label

    pipe = pipeline(files, tmp_path / "cache", build, num_threads=1)
    with pytest.warns(SuspectDataWarning, match=r"takes no more than the 3 samples .* 6,336"):
        got = taken(pipe)
    assert got == wanted
    reads.clear()
    taken(pipe, 7)
    assert len(set(reads)) == COUNT - 3


def plain(function):
    """The same without caches."""

    def build(*args):
        cache, fn.cache = fn.cache, lambda data, **_: data
        try:
            return function(*args)
        finally:
            fn.cache = cache

    return build


def branches(content, label, where):
    decoded = fn.decoders.image(content)
    if label[0] % 2 == 0:
        small = fn.cache(fn.resize(decoded, size=(9, 11)), where=where)
    else:
        small = fn.resize(decoded, size=(9, 11)) / np.uint8(2)
        small = fn.cast(small, dtype=types.UINT8)
    return small, fn.cache(small + label, where=where)


def several(content, label, where):
    """Caches that share work, and one behind another one."""
    decoded = fn.decoders.image(content)
    first = fn.cache(fn.resize(decoded, size=(9, 11)), where=where)
    second = fn.cache(decoded, where=where)
    third = fn.cache(fn.resize(second, size=(4, 5)) + label, where=where)
    return first, second.shape(), third, second + fn.random.uniform(range=(0, 1), seed=1)


def of_bytes(content, label, where):
    return fn.decoders.image(fn.cache(content, where=where)), fn.cache(label, where=where)


@pytest.mark.sweep
@pytest.mark.parametrize("build", [several, branches, of_bytes])
@pytest.mark.parametrize(
    "settings", [{"num_threads": 1}, {"num_threads": 4}, {"num_threads": 4, "workers": "processes"}]
)
def test_graphs(files, tmp_path, build, settings):
    @headrace.pipeline_def(
        batch_size=BATCH, device_id=None, seed=4, enable_conditionals=True, **settings
    )
    def made(where):
        content, label = fn.readers.file(files=list(map(str, files)), random_shuffle=True)
        return tuple(function(content, label, where))

    function = plain(build)
    wanted = taken(made(""))
    function = build
    for _ in range(2):
        assert taken(made(str(tmp_path / "cache"))) == wanted


def images_of(content):
    return fn.decoders.image(content)


@pytest.mark.parametrize(
    ("build", "words"),
    [
        (lambda c: fn.noise.gaussian(images_of(c)), "`fn.noise.gaussian`.* random numbers"),
        (lambda c: fn.rotate(images_of(c), angle=fn.random.uniform()), "`fn.random.uniform`"),
        (lambda c: fn.pad(images_of(c)), "whole batches"),
        (lambda c: fn.python_function(c, function=lambda a: a + 1), "`key`"),
        (lambda c: fn.external_source(lambda: [np.zeros(3)] * BATCH), "is fed"),
        (lambda c: c[:4] + fn.readers.file(files=[__file__])[0][:4], "exactly one reader"),
        (lambda c: types.Constant([1, 2]) + 1, "no reader"),
    ],
)
def test_errors(files, tmp_path, build, words):
    def cached(content, label, where):
        return (fn.cache(build(content), where=where),)

    with pytest.raises(HeadraceError, match=words) as caught:
        taken(pipeline(files, str(tmp_path), cached), 1)
    assert "`fn.cache`, created at" in str(caught.value)
    assert __file__ in str(caught.value)


def test_wrong_arguments(files):
    for limits, words in (({"limit_bytes": -1}, "`limit_bytes` is -1"), ({"where": ""}, "`where`")):
        with pytest.raises(ArgumentValueError, match=words):
            taken(pipeline(files, "ram", lambda c, _, __, a=limits: (fn.cache(c, **a),)), 1)


@pytest.mark.parametrize("color", [types.RGB, types.GRAY])
def test_compressed(files, reads, tmp_path, color):
    """Samples are kept as JPEG files, and come back alike in every epoch."""

    def build(where: Any, how: dict[str, Any]) -> Any:
        def graph(content, label, _):
            images = fn.resize(fn.decoders.image(content, output_type=color), size=(60, 80))
            if where is not None:
                images = fn.cache(images, where=str(where), **how)
            return (images,)

        return pipeline(files, None, graph)

    (plain,) = zip(*taken(build(None, {}), 7), strict=True)
    sizes = {}
    for how in ({}, {"format": "jpeg"}, {"format": "jpeg", "quality": 50}):
        where = tmp_path / f"cache{len(sizes)}"
        (first,) = zip(*taken(build(where, how), 7), strict=True)
        reads.clear()
        assert next(zip(*taken(build(where, how), 7), strict=True)) == first
        assert not reads
        sizes[str(how)] = sum(f.stat().st_size for f in where.rglob("data-*"))
        errors = np.abs(np.array(first, int) - np.array(plain, int))
        assert errors.mean() < (4 if how else 1e-9)
    raw, jpeg, small = sizes.values()
    assert small < jpeg < raw / 2


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda x: fn.cast(x, dtype=types.FLOAT), "images of bytes"),
        (lambda x: fn.cat(x, x, axis=2), "cannot be kept as JPEG"),
    ],
)
def test_what_cannot_be_compressed(files, tmp_path, change, words):
    def graph(content, label, _):
        images = change(fn.decoders.image(content))
        return (fn.cache(images, where=str(tmp_path / "c"), format="jpeg"),)

    with pytest.raises(HeadraceError, match=words):
        pipeline(files, None, graph).run()


def test_a_key_of_the_users(files, tmp_path):
    """The user's function is called for samples that are not kept under this key."""
    calls: list[int] = []

    def add(number):
        def build(content, label, where):
            def function(data):
                calls.append(number)
                return data + np.uint8(number)

            made = fn.python_function(content, function=function)
            return (fn.cache(made, where=str(where), key=f"add {number}"),)

        return build

    for number in (1, 2):
        first = taken(pipeline(files, tmp_path / "cache", add(number)), 5)
        calls.clear()
        assert taken(pipeline(files, tmp_path / "cache", add(number)), 5) == first
        assert not calls
        assert first[0][0][0][0] == 0xFF + number & 0xFF


SHARED = """
import sys
from headrace import Pipeline, fn, types
pipe = Pipeline(3, num_threads=1, device_id=None)
with pipe:
    content, _ = fn.readers.file(files=sys.argv[2:])
    images = fn.resize(fn.decoders.image(content), size=(20, 30))
    pipe.set_outputs(fn.cache(images, limit_bytes=1 << 20))
for _ in range(int(sys.argv[1])):
    pipe.run()
print("ready", flush=True)
sys.stdin.read()
"""


def test_processes_share_and_leave_nothing(files, reads):
    """What one process has made another one does not; nothing is left of one that was killed."""
    names = list(map(str, files))
    command = [sys.executable, "-c", SHARED]
    made = subprocess.Popen([*command, "3", *names], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        assert made.stdout.readline() == b"ready\n"
        pipe = pipeline(files, "ram")
        taken(pipe)
        assert not reads
        made.kill()
        made.wait()
        taken(pipe)
        assert not reads
        del pipe
        gc.collect()
        assert not list(ram_folder().iterdir())
    finally:
        made.kill()
        made.communicate()


def test_processes_fill_one_cache_at_once(files, reads, tmp_path):
    wanted = taken(pipeline(files, None))
    program = SHARED.replace("limit_bytes", f"where={str(tmp_path / 'cache')!r}, limit_bytes")
    others = [
        subprocess.Popen(
            [sys.executable, "-c", program, "3", *map(str, files)], stdin=subprocess.DEVNULL
        )
        for _ in range(2)
    ]
    assert taken(pipeline(files, tmp_path / "cache")) == wanted
    assert [p.wait() for p in others] == [0, 0]
    reads.clear()
    assert taken(pipeline(files, tmp_path / "cache")) == wanted
    assert not reads
