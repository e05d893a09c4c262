"""DALI and Headrace: the same program."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.compare import work
from benchmarks.support import graphs
from benchmarks.support.libraries import library

_HOW = {
    "DALI": "a pipeline with two threads, `device_id=None`",
    "Headrace": "the same pipeline with `import headrace`, workers as it chooses",
}


def _running(name: str, graph: Callable[[Any], Any], batch_size: int = work.BATCH) -> work.Batches:
    lib = library(name)
    pipe = lib.Pipeline(batch_size=batch_size, num_threads=work.WORKERS, device_id=None, seed=42)
    with pipe:
        outputs = graph(lib)
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    pipe.build()
    while True:
        yield len(pipe.run()[0])


def _video(lib: Any, files: list[str]) -> Any:
    frames = lib.fn.experimental.readers.video(
        filenames=files, sequence_length=work.FRAMES, step=work.FRAMES, random_shuffle=True
    )
    return lib.fn.resize(frames, size=[work.FRAME_EXTENT, work.FRAME_EXTENT])


def _audio(lib: Any, files: list[str]) -> Any:
    encoded, _ = lib.fn.readers.file(files=files, random_shuffle=True)
    audio, _ = lib.fn.decoders.audio(encoded, sample_rate=work.SAMPLE_RATE, downmix=True)
    return audio


def _library(name: str) -> work.Library:
    def images(graph: Callable[[Any, str], Any]) -> Callable[[Path], work.Batches]:
        return lambda f: _running(name, lambda lib: graph(lib, str(f / "images")))

    return work.Library(
        ("nvidia-dali-cuda130",) if name == "DALI" else ("headrace", "numba"),
        {
            "train": images(graphs.train),
            "validate": images(graphs.validate),
            "augment": lambda f: _running(name, lambda lib: graphs.augment(lib, work.decoded(f))),
            "video": lambda f: _running(name, lambda lib: _video(lib, work.videos(f)), work.CLIPS),
            "audio": lambda f: _running(name, lambda lib: _audio(lib, work.clips(f))),
        },
        {},
        _HOW[name],
    )


DALI, HEADRACE = _library("DALI"), _library("Headrace")
