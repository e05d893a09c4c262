"""The work that all libraries are given: cases, files and sizes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

BATCH = 64
WORKERS = 2
"""Threads or processes, whatever a library has."""
CLIPS, FRAMES, FRAME_EXTENT = 8, 16, 112
"""Clips of a batch, frames of a clip, and their height and width after scaling."""
SAMPLE_RATE = 16_000
"""Hz, of the audio that is asked for; files have three times as much."""
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
UNIT_MEAN, UNIT_STD = [v / 255 for v in MEAN], [v / 255 for v in STD]
"""The same of values from 0 to 1."""

CASES = {
    "train": "read and decode JPEGs of about 400x550 pixels, random resized crop to 224x224, random"
    " mirror, normalise to float32 CHW; batches of 64",
    "validate": "read and decode the same, resize to 256x256, centre crop to 224x224, normalise;"
    " batches of 64",
    "augment": "of decoded images of 256x256 in memory: rotate by up to 30 degrees, change"
    " brightness and contrast by up to 30 %, Gaussian blur of sigma 1.5, normalise; batches of 64",
    "video": "16 successive frames out of VP9 videos of 426x240 pixels, scaled to 112x112, uint8;"
    " batches of 8 clips",
    "audio": "read and decode FLAC files of 2 to 4 seconds, 48 kHz, resample to 16 kHz, float32;"
    " batches of 64",
}
"""What is done in each, in words."""

Batches = Iterator[int]
"""Makes a batch with each `next`, and says how many samples it has."""


@dataclass(frozen=True)
class Library:
    """One of those that are compared."""

    distributions: tuple[str, ...]
    """Of which versions are told."""
    does: dict[str, Callable[[Path], Batches]]
    """Programs of the cases that it has all operators for, given the folder of `write_files`."""
    lacks: dict[str, str]
    """Why it does not do the others."""
    how: str
    """What the programs are made of."""


def write_files(folder: Path) -> None:
    """What all cases read."""
    # Only the process that begins needs these.
    import av
    import cv2
    import soundfile
    from scipy.signal import resample_poly

    from examples.demo.photographs import photographs, write_dataset
    from examples.dynamic.speech import utterance

    write_dataset(folder / "images", 600)
    (folder / "clips").mkdir()
    for number in range(64):
        random = np.random.default_rng(number)
        clip = utterance(random, random.uniform(95, 290), random.uniform(2, 4))
        soundfile.write(
            folder / f"clips/{number:04}.flac", resample_poly(clip, 3, 1), 3 * SAMPLE_RATE
        )
    pictures = list(photographs().values())
    decoded = [cv2.resize(p, (256, 256), interpolation=cv2.INTER_AREA) for p in pictures]
    np.save(folder / "decoded.npy", np.stack([decoded[k % len(decoded)] for k in range(BATCH)]))
    (folder / "videos").mkdir()
    for number, picture in enumerate(pictures):
        wide = cv2.resize(picture, (640, 400), interpolation=cv2.INTER_AREA)
        with av.open(str(folder / f"videos/{number}.webm"), "w") as container:
            options = {"deadline": "realtime", "cpu-used": "8", "g": "32"}
            stream = container.add_stream("libvpx-vp9", rate=25, options=options)
            stream.width, stream.height, stream.pix_fmt = 426, 240, "yuv420p"
            for k in range(160):
                window = np.ascontiguousarray(wide[k : k + 240, k : k + 426])
                container.mux(stream.encode(av.VideoFrame.from_ndarray(window, format="rgb24")))
            container.mux(stream.encode(None))


def images(folder: Path) -> list[Path]:
    """The JPEGs."""
    return sorted((folder / "images").glob("*/*.jpg"))


def decoded(folder: Path) -> np.ndarray:
    """The images of the case `augment`, uint8 NHWC."""
    return np.load(folder / "decoded.npy")


def videos(folder: Path) -> list[str]:
    """The videos, of 160 frames each."""
    return [str(path) for path in sorted((folder / "videos").glob("*.webm"))]


def clips(folder: Path) -> list[str]:
    """The audio files."""
    return [str(path) for path in sorted((folder / "clips").glob("*.flac"))]
