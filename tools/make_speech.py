"""Make the speech in ``tests/data/audio``: sentences of a synthesiser, in many formats.

Nothing else in the repository needs what this needs: espeak-ng on the path (``apt-get install
espeak-ng``). The files are checked in; run it only to add some::

    python tools/make_speech.py

Every clip is a few words of English at a low sampling rate, so that all files together stay below
400 kB. ``clips.json`` is a manifest of the longer ones, one JSON object a line, with their words.
"""

from __future__ import annotations

import io
import json
import subprocess
from pathlib import Path

import numpy as np
import scipy.signal
import soundfile

FOLDER = Path(__file__).parents[1] / "tests" / "data" / "audio"

SENTENCES = {
    "ferry.ogg": ("en-gb", 160, "The ferry leaves the harbour at seven in the morning."),
    "market.ogg": ("en-us", 175, "Fresh bread and honey are sold on the market square."),
    "river.flac": ("en-gb-scotland", 150, "Below the weir the river runs slowly."),
    "signal.flac": ("en-us", 190, "Wait for the green signal before you cross the line."),
}
"""Voice, words a minute, and the text."""

WORD, WORD_SAMPLES = ("en-gb", 220, "pen"), 1600
"""What the files of the various formats say."""

FORMATS = {
    "u8.wav": ("WAV", "PCM_U8"),
    "s16.wav": ("WAV", "PCM_16"),
    "s24.wav": ("WAV", "PCM_24"),
    "s32.wav": ("WAV", "PCM_32"),
    "f32.wav": ("WAV", "FLOAT"),
    "f64.wav": ("WAV", "DOUBLE"),
    "extensible.wav": ("WAVEX", "PCM_16"),
    "ulaw.wav": ("WAV", "ULAW"),
    "adpcm.wav": ("WAV", "IMA_ADPCM"),
    "rf64.wav": ("RF64", "PCM_16"),
    "s16.aiff": ("AIFF", "PCM_16"),
    "s16.au": ("AU", "PCM_16"),
    "s16.caf": ("CAF", "PCM_16"),
    "s16.w64": ("W64", "PCM_16"),
    "s16.flac": ("FLAC", "PCM_16"),
    "s24.flac": ("FLAC", "PCM_24"),
    "vorbis.ogg": ("OGG", "VORBIS"),
    "opus.ogg": ("OGG", "OPUS"),
    "layer3.mp3": ("MP3", "MPEG_LAYER_III"),
}


def speak(voice: str, words_per_minute: int, text: str) -> tuple[np.ndarray, int]:
    """Samples, -1 to 1, and their rate in Hz."""
    command = ["espeak-ng", "-v", voice, "-s", str(words_per_minute), "--stdout", text]
    spoken = subprocess.run(command, check=True, capture_output=True).stdout
    return soundfile.read(io.BytesIO(spoken), dtype="float64")


def at_rate(samples: np.ndarray, rate: int, wanted: int) -> np.ndarray:
    """The samples at another rate, without what it cannot hold."""
    return scipy.signal.resample_poly(samples, wanted, rate)


def main() -> None:
    """Write all files."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    manifest = []
    for name, sentence in SENTENCES.items():
        samples = at_rate(*speak(*sentence), 16000)
        path = FOLDER / name
        soundfile.write(path, samples, 16000)
        duration = round(len(samples) / 16000, 4)
        manifest.append({"audio_filepath": path.name, "duration": duration, "text": sentence[2]})
    lines = "".join(json.dumps(entry) + "\n" for entry in manifest)
    (FOLDER / "clips.json").write_text(lines)

    samples = at_rate(*speak(*WORD), 8000)
    begin = int(np.argmax(np.abs(samples) > 0.02))
    samples = samples[begin : begin + WORD_SAMPLES]
    # The voice walks from one side to the other.
    side = np.linspace(0.2, 0.8, len(samples))
    stereo = np.stack([samples * (1 - side), samples * side], axis=1)
    for ending, (kind, subtype) in FORMATS.items():
        for name, data in (("mono", samples), ("stereo", stereo)):
            soundfile.write(FOLDER / f"{name}_{ending}", data, 8000, format=kind, subtype=subtype)
    total = sum(path.stat().st_size for path in FOLDER.iterdir())
    print(f"{len(list(FOLDER.iterdir()))} files, {total} bytes")


if __name__ == "__main__":
    main()
