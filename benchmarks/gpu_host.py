"""What the host does for an iteration on a GPU: the same pipelines on a GPU that takes no time.

    hatch run bench:gpu-host
    hatch run bench:gpu-host --only light --batch-size 64 --profile

No GPU is needed. `audio` decodes files on the CPU, `spectra` has the signals on the GPU already.
*wall* is the time from batch to batch where the consumer does nothing but take
them, as PyTorch's plugin does; *processor* is that of all threads, Python and what it calls.
*launches* are kernels that operators launch, not those of iterations that are replayed. Figures are
the least of several rounds: the machine may have other work.
"""

from __future__ import annotations

import argparse
import atexit
import cProfile
import gc
import itertools
import pstats
import tempfile
import threading
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.gpu_decode import noise
from benchmarks.support import audio_chain
from benchmarks.support import graphs_gpu as graphs
from benchmarks.support.graphs import MEAN, STD
from benchmarks.support.harness import Peer
from benchmarks.support.idle_nvjpeg import install_idle_nvjpeg
from benchmarks.support.idle_runtime import (
    OTHER_STREAM,
    IdleArray,
    IdleRuntime,
    install_idle_cupy,
)
from benchmarks.support.libraries import library
from examples.dynamic.speech import write_speech
from headrace.plugin.base_iterator import PipelineBatch, _DaliBaseIterator
from headrace.tensors.gpu.runtime import install_runtime

EXTENT = (375, 500, 3)
_ROUNDS = 7
_RAGGED_BATCHES = 40
"""Batches after which shapes come again: more than operators remember, as in a data set."""


class Taker(_DaliBaseIterator):
    """Hands over batches as PyTorch's iterator does, to a stream that is not the default one."""

    def _assemble(self, batches: list[PipelineBatch]) -> Any:
        found = []
        for output in batches[0].outputs:
            tensor = output.as_tensor()  # type: ignore[union-attr]
            tensor.__dlpack_device__()
            found.append(tensor.__dlpack__(stream=OTHER_STREAM, max_version=(1, 0)))
        return found


def _rrc(lib: Any, batches: Any) -> Any:
    images = lib.fn.random_resized_crop(graphs._resident(lib, batches), size=(224, 224))
    return (graphs._normalised(lib, images, "FLOAT16"),)


def _views(lib: Any, batches: Any) -> Any:
    images = lib.fn.crop(graphs._resident(lib, batches), crop=(224, 224))
    images = lib.fn.flip(images, horizontal=lib.fn.random.coin_flip())
    return (lib.fn.transpose(images, perm=[2, 0, 1]),)


def _nothing(lib: Any, batches: Any) -> Any:
    return (graphs._resident(lib, batches),)


def _plain(lib: Any, batches: Any) -> Any:
    images = lib.fn.normalize(graphs._resident(lib, batches), axes=[0, 1])
    return (lib.fn.cast(images, dtype=lib.types.FLOAT16),)


def _upload(lib: Any, batches: Any) -> Any:
    images = lib.fn.external_source(source=lambda: batches[0], layout="HWC", no_copy=True)
    labels = lib.fn.random.uniform(range=[0, 9], dtype=lib.types.INT32)
    images = lib.fn.crop_mirror_normalize(images.gpu(), mean=MEAN, std=STD, crop=(224, 224))
    return images, labels.gpu()


def _audio(lib: Any, batches: Any) -> Any:
    return (audio_chain.graph(lib, batches[0], gpu=True),)


def _spectra(lib: Any, batches: Any) -> Any:
    turn = itertools.cycle(batches)
    clips = lib.fn.external_source(source=lambda: next(turn), device="gpu", no_copy=True)
    start = lib.fn.random.uniform(range=[0.0, 0.5])
    clips = lib.fn.slice(clips, rel_start=start, shape=[16000], axes=[0])
    clips = clips * lib.fn.random.uniform(range=[0.5, 1.5]).gpu()
    spectra = lib.fn.spectrogram(clips, nfft=512, window_length=400, window_step=160)
    mel = lib.fn.mel_filter_bank(spectra, sample_rate=16000.0, nfilter=128)
    decibels = lib.fn.to_decibels(mel, multiplier=10.0, cutoff_db=-80.0)
    return (lib.fn.normalize(decibels, axes=[0, 1]),)


CASES: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "nothing": (_nothing, "uniform"),
    "cupy": (graphs.three_operators, "uniform"),
    "cupy_ragged": (graphs.three_operators, "ragged"),
    "light": (graphs.light, "uniform"),
    "light_ragged": (graphs.light, "ragged"),
    "rrc": (_rrc, "uniform"),
    "rrc_ragged": (_rrc, "ragged"),
    "augment": (graphs.augment, "uniform"),
    "augment_ragged": (graphs.augment, "ragged"),
    "views": (_views, "uniform"),
    "views_ragged": (_views, "ragged"),
    "normalize_cast": (_plain, "uniform"),
    "upload": (_upload, "host"),
    "numpy": (graphs.uploaded, "host"),
    "train": (lambda lib, batches: graphs.train(lib, batches[0]), "jpegs"),
    "train_crop": (lambda lib, batches: graphs.train_crop(lib, batches[0]), "jpegs"),
    "audio": (_audio, "files"),
    "spectra": (_spectra, "signals"),
}
"""Pipelines, and what they are fed."""


def _batches(kind: str, runtime: IdleRuntime, count: int) -> list[Any]:
    dtype = np.dtype(np.uint8)
    if kind == "host":
        return [np.zeros((count, *EXTENT), dtype)]
    if kind == "files":
        return [_speech()]
    if kind == "jpegs":
        return [_photographs()]
    if kind == "signals":
        rng = np.random.default_rng(0)
        return [
            [
                IdleArray(runtime.allocate(4 * size), (size,), np.dtype(np.float32))
                for size in rng.integers(32000, 64000, count).tolist()
            ]
            for _ in range(16)
        ]
    if kind == "uniform":
        size = count * int(np.prod(EXTENT))
        return [IdleArray(runtime.allocate(size), (count, *EXTENT), dtype) for _ in range(2)]
    rng = np.random.default_rng(0)
    found = []
    for _ in range(_RAGGED_BATCHES):
        shapes = [(*(int(e * rng.uniform(0.6, 1.0)) for e in EXTENT[:2]), 3) for _ in range(count)]
        found.append([IdleArray(runtime.allocate(int(np.prod(s))), s, dtype) for s in shapes])
    return found


@cache
def _speech() -> str:
    """A folder with 64 WAV files of 2 to 4 seconds, as long as the process lasts."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    write_speech(Path(folder.name), 64)
    return folder.name


@cache
def _photographs() -> str:
    """A folder with 1,024 JPEG files of two classes, as long as the process lasts."""
    folder = tempfile.TemporaryDirectory()
    atexit.register(folder.cleanup)
    for number, data in enumerate(itertools.islice(itertools.cycle(list(noise(64))), 1024)):
        path = Path(folder.name) / f"class{number % 2}" / f"{number:04}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(data.tobytes())
    return folder.name


def _taker(case: str, runtime: IdleRuntime, count: int, threads: int) -> Taker:
    graph, kind = CASES[case]
    lib = library("Headrace")
    # What worker processes take of a processor would not be seen.
    pipe = lib.Pipeline(count, threads, 0, seed=42, workers="threads")
    with pipe:
        outputs = graph(lib, _batches(kind, runtime, count))
        pipe.set_outputs(*outputs)
    return Taker(pipe)


def _figures(taker: Taker, seconds: float) -> tuple[float, float]:
    """Least microseconds an iteration: on the wall, and of the processor."""
    for _ in range(200):  # every function compiled, every memo filled
        next(taker)
    best_wall = best_process = float("inf")
    for _ in range(_ROUNDS):
        count = 0
        wall, process = time.perf_counter(), time.process_time()
        while not count or time.perf_counter() - wall < seconds / _ROUNDS:
            next(taker)
            count += 1
        best_wall = min(best_wall, 1e6 * (time.perf_counter() - wall) / count)
        best_process = min(best_process, 1e6 * (time.process_time() - process) / count)
    return best_wall, best_process


class HostPeer(Peer):
    """A pipeline's iterations in a second of the processor, of all threads of the host."""

    def __init__(self, case: str, batch_size: int, threads: int) -> None:
        super().__init__("Headrace", lambda: 0)
        install_idle_cupy()
        install_idle_nvjpeg()
        runtime = IdleRuntime()
        install_runtime(lambda _: runtime)  # type: ignore[arg-type, return-value]
        self._taker = _taker(case, runtime, batch_size, threads)

    def run(self, seconds: float) -> float:
        """The best of some rounds that take so many seconds together."""
        return 1e6 / _figures(self._taker, seconds)[1]


class _Profiles:
    """Profiles of all threads that start while it is in force."""

    def __init__(self) -> None:
        self._found: list[cProfile.Profile] = []

    def __enter__(self) -> Self:
        found = self._found

        def profiled(thread: threading.Thread) -> None:
            profile = cProfile.Profile(time.thread_time)
            found.append(profile)
            profile.runcall(type(thread).run, thread)

        start = threading.Thread.start

        def starting(thread: threading.Thread) -> None:
            thread.run = lambda: profiled(thread)  # type: ignore[method-assign]
            start(thread)

        threading.Thread.start = starting  # type: ignore[method-assign]
        self._restore = lambda: setattr(threading.Thread, "start", start)
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def print(self, own: cProfile.Profile, count: int, lines: int) -> None:
        """The busiest functions of all threads."""
        stats = pstats.Stats(own)
        for profile in self._found:
            stats.add(profile)
        print(f"{1e6 * stats.total_tt / count:.0f} us of processor an iteration, profiled")  # type: ignore[attr-defined]
        stats.strip_dirs().sort_stats("tottime").print_stats(lines)


def _profile(case: str, runtime: IdleRuntime, count: int, threads: int) -> None:
    warm = _taker(case, runtime, count, threads)
    for _ in range(50):  # every module imported, every function compiled
        next(warm)
    del warm
    own = cProfile.Profile(time.thread_time)
    with _Profiles() as profiles:
        taker = _taker(case, runtime, count, threads)
        own.enable()
        for _ in range(2000):
            next(taker)
        own.disable()
        del taker
        gc.collect()
    profiles.print(own, 2000, 60)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=list(CASES), default=list(CASES))
    parser.add_argument("--batch-size", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=3.0, help="for one row")
    parser.add_argument(
        "--profile", action="store_true", help="tell where the time goes, not how much"
    )
    args = parser.parse_args()
    install_idle_cupy()
    install_idle_nvjpeg()
    table = Table(title="us an iteration, on a GPU that takes no time")
    for name in ("pipeline", "batch", "wall", "processor", "launches"):
        table.add_column(name, justify="left" if name == "pipeline" else "right")
    for case in args.only:
        for count in args.batch_size:
            runtime = IdleRuntime()
            install_runtime(lambda _, made=runtime: made)  # type: ignore[misc]
            if args.profile:
                _profile(case, runtime, count, args.threads)
                continue
            taker = _taker(case, runtime, count, args.threads)
            wall, process = _figures(taker, args.seconds)
            launches = _launches(runtime, taker)
            table.add_row(case, str(count), f"{wall:,.0f}", f"{process:,.0f}", f"{launches:.1f}")
            del taker
            gc.collect()
    if not args.profile:
        Console(width=100).print(table)


def _launches(runtime: IdleRuntime, taker: Taker, count: int = 50) -> float:
    """Kernels an iteration."""
    before = runtime.driver.launches
    for _ in range(count):
        next(taker)
    return (runtime.driver.launches - before) / count


if __name__ == "__main__":
    main()
