"""The loop of the audio notebook, written once for both libraries: dynamic, and as a pipeline.

Read WAV files, decode, cut out a second at random, change the level at random, log-mel spectrogram,
normalise: float32 ``(128 mel bands, 101 frames)`` for each clip.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

SAMPLE_RATE = 16_000
"""Hz."""
_WINDOW = {"nfft": 512, "window_length": 400, "window_step": 160}
_BANDS = {"sample_rate": float(SAMPLE_RATE), "nfilter": 128}
_START = [0.0, 0.5]
_GAIN = [0.5, 1.5]


def dynamic_module(name: str) -> Any:
    """Dynamic mode of the library that tables call `name`."""
    root = {"DALI": "nvidia.dali", "Headrace": "headrace"}[name]
    return importlib.import_module(f"{root}.experimental.dynamic")


def augment(ndd: Any, files: Any, batch_size: int, rng: Any, *, gpu: bool = False) -> Any:
    """What the notebook does with a batch of encoded files."""
    audio, _ = ndd.decoders.audio(files, dtype=ndd.float32, downmix=True)
    if gpu:
        audio = audio.gpu()
    start = ndd.random.uniform(range=_START, batch_size=batch_size, rng=rng)
    clip = ndd.slice(audio, rel_start=start, shape=[SAMPLE_RATE], axes=[0])
    gain = ndd.random.uniform(range=_GAIN, batch_size=batch_size, rng=rng)
    if gpu:
        gain = gain.gpu()
    spectrogram = ndd.spectrogram(clip * gain, **_WINDOW)
    mel = ndd.mel_filter_bank(spectrogram, **_BANDS)
    decibels = ndd.to_decibels(mel, multiplier=10.0, cutoff_db=-80.0)
    return ndd.normalize(decibels, axes=[0, 1])


class DynamicLoop:
    """One rank's loop over its shard.

    `ndd`: dynamic mode of a library. `root`: the files. `mode`: name of the `EvalMode`;
    ``"captured"`` for eager loops that are done ahead. `threads`: threads for the operators of this
    loop. `rank`, `ranks`: which shard of how many. `look_every`: every so many batches one is
    waited for; 0: none before the last one. `epochs`: how many `run` goes through.
    """

    def __init__(
        self,
        ndd: Any,
        root: str,
        *,
        batch_size: int,
        mode: str = "eager",
        threads: int = 1,
        rank: int = 0,
        ranks: int = 1,
        gpu: bool = False,
        look_every: int = 1,
        epochs: int = 1,
    ) -> None:
        self._look_every = look_every
        self._epochs = epochs
        self._ndd = ndd
        self._batch_size = batch_size
        self._mode = "eager" if mode == "captured" else mode
        self._capture = {"capture": True} if mode == "captured" else {}
        self._threads = threads
        self._gpu = gpu
        self._rng = ndd.random.RNG(seed=rank)
        self._context: Any = None
        self._reader = ndd.readers.File(
            file_root=root, random_shuffle=True, shard_id=rank, num_shards=ranks
        )

    def run(self) -> int:
        """Go through the shard and wait for the last batch; return the number of samples."""
        ndd = self._ndd
        if self._context is None:
            device = {"device_id": 0} if self._gpu else {}
            self._context = ndd.EvalContext(num_threads=self._threads, **device)
        count = 0
        with self._context, getattr(ndd.EvalMode, self._mode):
            for batch in self.batches():
                count += 1
                if self._look_every and count % self._look_every == 0:
                    batch.evaluate()
            batch.evaluate()
        return count * self._batch_size

    def batches(self) -> Iterator[Any]:
        """The augmented batches of all epochs."""
        for _ in range(self._epochs):
            steps = self._reader.next_epoch(batch_size=self._batch_size, **self._capture)
            for files, _ in steps:
                yield augment(self._ndd, files, self._batch_size, self._rng, gpu=self._gpu)


def graph(lib: Any, root: str, *, gpu: bool = False) -> Any:
    """The same as a pipeline."""
    fn, types = lib.fn, lib.types
    files, _ = fn.readers.file(file_root=root, random_shuffle=True)
    audio, _ = fn.decoders.audio(files, dtype=types.FLOAT, downmix=True)
    if gpu:
        audio = audio.gpu()
    start = fn.random.uniform(range=_START)
    clip = fn.slice(audio, rel_start=start, shape=[SAMPLE_RATE], axes=[0])
    gain = fn.random.uniform(range=_GAIN)
    if gpu:
        gain = gain.gpu()
    spectrogram = fn.spectrogram(clip * gain, **_WINDOW)
    mel = fn.mel_filter_bank(spectrogram, **_BANDS)
    decibels = fn.to_decibels(mel, multiplier=10.0, cutoff_db=-80.0)
    return fn.normalize(decibels, axes=[0, 1])


def graph_of_scalars(lib: Any, root: str, *, gpu: bool = False) -> Any:
    """The chain of a training program: where to cut follows from the length of each clip.

    Clips shorter than a second are padded. Eight operators on scalars more than `graph` has.
    """
    fn, types = lib.fn, lib.types
    files, _ = fn.readers.file(file_root=root, random_shuffle=True)
    audio, _ = fn.decoders.audio(files, dtype=types.FLOAT, downmix=True)
    spare = lib.math.max(audio.shape(dtype=types.FLOAT)[0] - float(SAMPLE_RATE), 0.0)
    start = fn.cast(fn.random.uniform(range=[0.0, 1.0]) * spare, dtype=types.INT32)
    clip = fn.slice(audio, start=start, shape=[SAMPLE_RATE], axes=[0], out_of_bounds_policy="pad")
    gain = fn.random.uniform(range=_GAIN)
    if gpu:
        clip, gain = clip.gpu(), gain.gpu()
    spectrogram = fn.spectrogram(clip * gain, **_WINDOW)
    mel = fn.mel_filter_bank(spectrogram, **_BANDS)
    decibels = fn.to_decibels(mel, multiplier=10.0, cutoff_db=-80.0)
    return fn.normalize(decibels, axes=[0, 1])
