"""Audio augmentation in plain Python: develop, reproduce, scale, measure.

    hatch run example-audio
    hatch run example-audio --clips 512 --device gpu --threads 1 2 4

Operators are called on data, in ordinary loops, with ordinary breakpoints. The clips are generated
speech; each becomes a log-mel spectrogram of a second that is cut out and made louder or quieter at
random. Each `# %%` begins a cell for editors that run scripts as notebooks.
"""

# %% Options
from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import headrace
import headrace.experimental.dynamic as ndd
from examples.dynamic.speech import SAMPLE_RATE, write_speech

BATCH_SIZE = 8


def parse_options() -> argparse.Namespace:
    """What the command line says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path("speech-data"))
    parser.add_argument("--clips", type=int, default=128)
    parser.add_argument("--seconds", type=float, default=2.0, help="of each measurement")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--device", choices=["cpu", "gpu"], default="cpu")
    return parser.parse_args()


# %% Develop: write the augmentation as functions, and look at what they make
def random_second(audio: ndd.Batch, rng: ndd.random.RNG) -> ndd.Batch:
    """A second of each clip, from a random place on."""
    start = ndd.random.uniform(range=[0.0, 0.5], batch_size=audio.batch_size, rng=rng)
    return ndd.slice(audio, rel_start=start, shape=[SAMPLE_RATE], axes=[0])


def random_gain(audio: ndd.Batch, rng: ndd.random.RNG) -> ndd.Batch:
    """Each clip at a level of its own."""
    gain = ndd.random.uniform(range=[0.5, 1.5], batch_size=audio.batch_size, rng=rng)
    return audio * gain.to_device(audio.device)


def log_mel(audio: ndd.Batch) -> ndd.Batch:
    """Log-mel spectrograms ``(128 bands, 101 frames)``, each with mean 0 and deviation 1."""
    spectrogram = ndd.spectrogram(audio, nfft=512, window_length=400, window_step=160)
    mel = ndd.mel_filter_bank(spectrogram, sample_rate=SAMPLE_RATE, nfilter=128)
    decibels = ndd.to_decibels(mel, multiplier=10.0, cutoff_db=-80.0)
    return ndd.normalize(decibels, axes=[0, 1])


def augment(files: ndd.Batch, rng: ndd.random.RNG, device: str = "cpu") -> ndd.Batch:
    """From encoded files to what a network is trained with."""
    audio, _ = ndd.decoders.audio(files, dtype=ndd.float32, downmix=True)
    audio = audio.to_device(device)
    return log_mel(random_gain(random_second(audio, rng), rng))


def reader(folder: Path, rank: int = 0, ranks: int = 1) -> Any:
    """Reads the files of one shard in random order, as bytes."""
    return ndd.readers.File(
        file_root=str(folder), random_shuffle=True, seed=3, shard_id=rank, num_shards=ranks
    )


def batches(files: Any, rng: ndd.random.RNG, device: str = "cpu") -> Iterator[tuple[Any, Any]]:
    """One epoch."""
    for encoded, label in files.next_epoch(batch_size=BATCH_SIZE):
        yield augment(encoded, rng, device), label


def develop(folder: Path, device: str) -> None:
    """Look at one batch; find out that a mistake shows at the line that made it."""
    speakers = sorted(path.name for path in folder.iterdir() if path.is_dir())
    spectrograms, labels = next(batches(reader(folder), ndd.random.RNG(seed=1), device))
    print(f"A batch of {spectrograms.batch_size}: {spectrograms.dtype}, {spectrograms.shape[0]}")
    names = [speakers[int(label.item())] for label in labels.tensors]
    picture = folder / "log_mel.png"
    headrace.show(spectrograms, picture, layout="ft", labels=names, max_samples=4)
    print(f"Drawn: {picture}")
    try:
        with ndd.EvalMode.sync_cpu:  # errors come at once, and not when results are looked at
            ndd.mel_filter_bank(ndd.tensor(np.zeros((257, 9), np.float32)), nfilter=0)
    except Exception as error:
        print(f"A mistake: {str(error).splitlines()[0]}")


# %% Reproduce: the same seeds, the same bytes
def epoch_of(folder: Path, seed: int, device: str) -> np.ndarray:
    """All of an epoch as one array."""
    found = [
        np.asarray(sample)
        for spectrograms, _ in batches(reader(folder), ndd.random.RNG(seed=seed), device)
        for sample in spectrograms.cpu().tensors
    ]
    return np.stack(found)


def reproduce(folder: Path, device: str) -> None:
    """Two epochs from one seed, and one from another."""
    first, again, other = (epoch_of(folder, seed, device) for seed in (1, 1, 2))
    print(f"Seed 1 twice, bit for bit: {np.array_equal(first, again)}")
    print(f"Seed 2 is different: {not np.array_equal(first, other)}")


# %% Scale: a thread for each shard, with random numbers of its own
class Rank:
    """The loop of one thread."""

    def __init__(self, folder: Path, rank: int, ranks: int, device: str) -> None:
        self._files = reader(folder, rank, ranks)
        self._rng = ndd.random.RNG(seed=rank)
        self._device = device
        self._thread = ThreadPoolExecutor(1)

    def _epoch(self, mode: str) -> int:
        count = 0
        with ndd.EvalMode[mode]:
            for spectrograms, _ in batches(self._files, self._rng, self._device):
                count += spectrograms.evaluate().batch_size
        return count

    def epoch(self, mode: str) -> Any:
        """Begin an epoch in the rank's thread; the number of samples, in time."""
        return self._thread.submit(self._epoch, mode)


def scale(folder: Path, device: str) -> None:
    """Two threads share the files; neither waits for the other."""
    ranks = [Rank(folder, rank, 2, device) for rank in range(2)]
    counts = [running.result() for running in [rank.epoch("eager") for rank in ranks]]
    print(f"Two ranks: {counts[0]} + {counts[1]} clips")


# %% Measure: at once or in the background, in one thread or several
def rate(folder: Path, threads: int, mode: str, seconds: float, device: str) -> float:
    """Clips per second of that many threads together."""
    ranks = [Rank(folder, rank, threads, device) for rank in range(threads)]
    [running.result() for running in [rank.epoch(mode) for rank in ranks]]  # once to warm up
    clips, start = 0, time.perf_counter()
    while time.perf_counter() - start < seconds:
        clips += sum(running.result() for running in [rank.epoch(mode) for rank in ranks])
    return clips / (time.perf_counter() - start)


def measure(folder: Path, threads: list[int], seconds: float, device: str) -> None:
    """Print what comes out."""
    ndd.set_num_threads(1)  # for the operators of each rank
    table = Table(title=f"clips per second, batch {BATCH_SIZE}, {device}")
    table.add_column("threads", justify="right")
    modes = ("sync_cpu", "eager")
    for mode in modes:
        table.add_column(mode, justify="right")
    for count in threads:
        rates = [rate(folder, count, mode, seconds, device) for mode in modes]
        table.add_row(str(count), *(f"{each:,.0f}" for each in rates))
    Console(width=80).print(table)


def main() -> None:
    """All four."""
    options = parse_options()
    write_speech(options.folder, options.clips)
    develop(options.folder, options.device)
    reproduce(options.folder, options.device)
    scale(options.folder, options.device)
    measure(options.folder, options.threads, options.seconds, options.device)


if __name__ == "__main__":
    main()
