"""Single audio operators: decoding beside soundfile and DALI, the others beside DALI.

    hatch run bench:audio-operators                        all cases
    hatch run bench:audio-operators --case decode --rounds 9

`decode` is the decoder alone, one clip at a time on one thread, beside soundfile's files in memory;
`pipeline` are pipelines of one operator each. Clips are 3 seconds of generated speech at 16 kHz.
"""

from __future__ import annotations

import argparse
import io
from collections.abc import Callable
from typing import Any

import numpy as np
import soundfile

from benchmarks.support.harness import Peer, checked_cases, measure, print_table
from benchmarks.support.libraries import library
from examples.dynamic.speech import SAMPLE_RATE, utterance

CASES = ("decode", "pipeline")
CLIPS = 32
FORMATS = {
    "WAV, 16 bits": ("WAV", "PCM_16"),
    "WAV, 24 bits": ("WAV", "PCM_24"),
    "FLAC": ("FLAC", "PCM_16"),
    "OGG, Vorbis": ("OGG", "VORBIS"),
    "OGG, Opus": ("OGG", "OPUS"),
    "MP3": ("MP3", "MPEG_LAYER_III"),
}
OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "audio_resample, 16 to 22.05 kHz": lambda lib, x: lib.fn.audio_resample(
        x, in_rate=16000, out_rate=22050
    ),
    "audio_resample, quality 90": lambda lib, x: lib.fn.audio_resample(x, scale=0.5, quality=90),
    "preemphasis_filter": lambda lib, x: lib.fn.preemphasis_filter(x),
    "nonsilent_region": lambda lib, x: lib.fn.nonsilent_region(x),
    "slice, one second": lambda lib, x: lib.fn.slice(
        x, rel_start=[0.3], shape=[SAMPLE_RATE], axes=[0]
    ),
}


def clips() -> list[np.ndarray]:
    """Generated speech, float32."""
    return [utterance(np.random.default_rng(k), 150.0, 3.0) for k in range(CLIPS)]


def encoded(kind: str, subtype: str) -> list[np.ndarray]:
    """The same as files in memory."""
    files = []
    for clip in clips():
        target = io.BytesIO()
        soundfile.write(target, clip, SAMPLE_RATE, format=kind, subtype=subtype)
        files.append(np.frombuffer(target.getvalue(), np.uint8))
    return files


def alone(files: list[np.ndarray]) -> list[Peer]:
    """The decoder and soundfile, one file after the other."""
    from headrace.kernels.cpu.audio.clip import Clip

    memory = np.empty(4 * SAMPLE_RATE, np.float32)

    def scratch(shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        return np.empty(shape, dtype)

    def ours() -> int:
        for data in files:
            with Clip(data) as clip:
                clip.read(memory[: clip.frames], scratch, mixed=True)
        return len(files)

    def theirs() -> int:
        for data in files:
            soundfile.read(io.BytesIO(data), dtype="float32")
        return len(files)

    return [Peer("soundfile", theirs), Peer("Headrace", ours)]


def in_pipeline(
    name: str, batch: list[np.ndarray], graph: Callable[[Any, Any], Any], threads: int
) -> Peer:
    """A pipeline of one operator."""
    lib = library(name)
    pipe = lib.Pipeline(batch_size=len(batch), num_threads=threads, device_id=None)
    with pipe:
        outputs = graph(lib, lib.fn.external_source(source=lambda: batch))
        pipe.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
    pipe.build()

    def step() -> int:
        pipe.run()
        return len(batch)

    return Peer(name, step, ahead=2)


def decoding(lib: Any, data: Any) -> Any:
    """The decoder in a pipeline."""
    return lib.fn.decoders.audio(data, downmix=True)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--case", action="append", help="one of " + ", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each peer in each round")
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    wanted = checked_cases(options.case, CASES)
    if "decode" in wanted:
        rows = {name: alone(encoded(*FORMATS[name])) for name in FORMATS}
        for peers in rows.values():
            measure(peers, rounds=options.rounds, seconds=options.seconds)
        print_table("decoders, one thread, clips of 3 s", rows, reference="soundfile")
    if "pipeline" in wanted:
        graphs = {
            f"decoders.audio, {name}": (encoded(*FORMATS[name]), decoding)
            for name in FORMATS
            if name != "MP3"  # which DALI does not have
        }
        graphs |= {name: (clips(), graph) for name, graph in OPERATORS.items()}
        rows = {}
        for name, (batch, graph) in graphs.items():
            peers = [
                in_pipeline(lib, batch, graph, options.threads) for lib in ("DALI", "Headrace")
            ]
            measure(peers, rounds=options.rounds, seconds=options.seconds)
            rows[name] = peers
        print_table(f"pipelines of one operator, {options.threads} threads", rows)


if __name__ == "__main__":
    main()
