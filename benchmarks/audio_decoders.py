"""The audio decoder alone beside soundfile, one clip at a time on one thread.

    hatch run bench:audio-decoders
    hatch run bench:audio-decoders --rounds 9

Clips are 3 seconds of generated speech at 16 kHz; soundfile reads files in memory. Pipelines with
the decoder are in `bench:operators`, beside DALI.
"""

from __future__ import annotations

import argparse
import io

import numpy as np
import soundfile

from benchmarks.support.harness import Peer, measure, print_table
from examples.dynamic.speech import SAMPLE_RATE, utterance

CLIPS = 32
FORMATS = {
    "WAV, 16 bits": ("WAV", "PCM_16"),
    "WAV, 24 bits": ("WAV", "PCM_24"),
    "FLAC": ("FLAC", "PCM_16"),
    "OGG, Vorbis": ("OGG", "VORBIS"),
    "OGG, Opus": ("OGG", "OPUS"),
    "MP3": ("MP3", "MPEG_LAYER_III"),
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each peer in each round")
    options = parser.parse_args()
    rows = {name: alone(encoded(*FORMATS[name])) for name in FORMATS}
    for peers in rows.values():
        measure(peers, rounds=options.rounds, seconds=options.seconds)
    print_table("decoders, one thread, clips of 3 s", rows, reference="soundfile")


if __name__ == "__main__":
    main()
