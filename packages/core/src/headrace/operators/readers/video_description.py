"""Descriptions of frames, which the GPU's decoders are handed by readers and by fed videos."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from headrace.operators.readers.remote_video import RemoteVideo
from headrace.operators.readers.storage import is_remote, read_file
from headrace.operators.support.video.fed_video import FedVideo
from headrace.operators.support.video.on_gpu import Wanted

DESCRIBES = "describes frames"
"""The argument of an operator that is to describe frames in place of decoding them."""
_HEAD = 4


def described(
    path: str, numbers: np.ndarray, height: int, width: int, orientation: int
) -> np.ndarray:
    """A description of frames of a file, bytes."""
    head = np.array([height, width, orientation, len(numbers), *numbers], np.int64)
    return np.concatenate([head.view(np.uint8), np.frombuffer(os.fsencode(path), np.uint8)])


def described_fed(
    video: FedVideo, numbers: np.ndarray, extents: tuple[int, int], orientation: int
) -> np.ndarray:
    """A description of frames of a video that was fed, which is kept as long as this."""
    return video.held(described(f"\0{video.number}", numbers, *extents, orientation))


def described_bytes(path: str, count: int) -> int:
    """Number of bytes of a description."""
    return 8 * (_HEAD + count) + len(os.fsencode(path))


def wanted(description: np.ndarray) -> Wanted:
    """The frames that are described."""
    data = np.ascontiguousarray(description)
    height, width, orientation, count = data[: 8 * _HEAD].view(np.int64).tolist()
    end = 8 * (_HEAD + count)
    numbers = data[8 * _HEAD : end].view(np.int64)
    path, *version = os.fsdecode(data[end:].tobytes()).split("\0")
    source: Any = path
    if not path:
        source = FedVideo.of(int(version[0]))
    elif version:
        source = RemoteVideo(path, *map(int, version))
    elif is_remote(path):
        source = read_file(path, np.empty)
    return Wanted(source, numbers, height, width, orientation)
