"""Generated speech: syllables out of a voice and three formants, one speaker in each folder.

Nobody will understand it, but it has what an audio pipeline meets in recordings: pitch that moves,
vowels, hisses, pauses, levels and lengths that differ. By the source-filter model of G. Fant,
"Acoustic Theory of Speech Production", 1960; formants of G. E. Peterson and H. L. Barney, "Control
methods used in a study of the vowels", 1952.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import soundfile
from scipy.signal import lfilter

SAMPLE_RATE = 16_000
"""Hz."""

_FORMANTS_HZ = {
    "i": (270, 2290, 3010),
    "e": (530, 1840, 2480),
    "a": (730, 1090, 2440),
    "o": (570, 840, 2410),
    "u": (300, 870, 2240),
}
_BANDWIDTHS_HZ = (60, 90, 150)
_SPEAKERS_HZ = {"alto": 210.0, "tenor": 130.0, "bass": 95.0, "child": 290.0}
"""Pitch of each voice."""


def write_speech(folder: Path, clips: int, *, seconds: tuple[float, float] = (2.0, 4.0)) -> None:
    """Write `clips` files, WAV of 16 bits, in equal shares for each speaker.

    Does nothing where all of them are there already.

    Parameters
    ----------
    folder
        Gets a folder for each speaker.
    clips
        Number of files.
    seconds
        The shortest and the longest clip.
    """
    for number in range(clips):
        speaker = sorted(_SPEAKERS_HZ)[number % len(_SPEAKERS_HZ)]
        path = folder / speaker / f"{number:04d}.wav"
        if path.exists():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        random = np.random.default_rng(number)
        clip = utterance(random, _SPEAKERS_HZ[speaker], random.uniform(*seconds))
        beside = path.with_suffix(".part")
        soundfile.write(beside, clip, SAMPLE_RATE, subtype="PCM_16", format="WAV")
        beside.replace(path)


def utterance(random: np.random.Generator, pitch_hz: float, seconds: float) -> np.ndarray:
    """Syllables and pauses of that length, float32 between -1 and 1."""
    parts: list[np.ndarray] = []
    wanted, count = int(seconds * SAMPLE_RATE), 0
    while count < wanted:
        vowel = random.choice(sorted(_FORMANTS_HZ))
        pitch = pitch_hz * random.uniform(0.85, 1.2)
        for part in (
            _hiss(random, random.uniform(0.03, 0.1)),
            _vowel(random, pitch, vowel, random.uniform(0.1, 0.3)),
            np.zeros(int(random.uniform(0.0, 0.12) * SAMPLE_RATE)),
        ):
            parts.append(part)
            count += len(part)
    clip = np.concatenate(parts)[:wanted] * random.uniform(0.3, 0.9)
    return (clip + random.normal(scale=0.001, size=wanted)).clip(-1, 1).astype(np.float32)


def _vowel(random: np.random.Generator, pitch_hz: float, vowel: str, seconds: float) -> np.ndarray:
    count = int(seconds * SAMPLE_RATE)
    glide = pitch_hz * np.linspace(1.0, random.uniform(0.8, 1.15), count)
    phase = np.cumsum(glide / SAMPLE_RATE)
    sound = np.diff(np.floor(phase), prepend=0.0)  # a pulse of the glottis for each period
    for formant, bandwidth in zip(_FORMANTS_HZ[vowel], _BANDWIDTHS_HZ, strict=True):
        radius = np.exp(-np.pi * bandwidth / SAMPLE_RATE)
        turn = 2 * np.pi * formant / SAMPLE_RATE
        sound = lfilter([1.0], [1.0, -2 * radius * np.cos(turn), radius**2], sound)
    return _shaped(sound)


def _hiss(random: np.random.Generator, seconds: float) -> np.ndarray:
    noise = random.normal(size=int(seconds * SAMPLE_RATE))
    return 0.1 * _shaped(np.asarray(lfilter([1.0, -0.9], [1.0], noise)))


def _shaped(sound: np.ndarray) -> np.ndarray:
    """At most 1, and fading in and out."""
    return sound / np.abs(sound).max() * np.hanning(len(sound))
