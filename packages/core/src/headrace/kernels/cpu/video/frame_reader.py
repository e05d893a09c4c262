"""Reading of frames by number: what all kinds of video have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace.kernels.cpu.video.colors import Colors


class FrameReader:
    """A video whose `frames` come by number."""

    @abstractmethod
    def frames(self, numbers: Sequence[int]) -> Iterator[tuple[Any, list[int]]]:
        """The frames of these numbers, in the order they are shown, and where each is wanted."""

    def read(self, numbers: Sequence[int], out: np.ndarray, colors: Colors) -> None:
        """Fill `out`, ``(F, H, W, channels)``, with the frames of these numbers.

        What stands at a negative number is left as it is.

        Raises
        ------
        BadSampleError
            If a frame cannot be decoded.
        """
        for frame, (first, *others) in self.frames(numbers):
            colors.write(frame, out[first])
            for other in others:
                out[other] = out[first]


def places_of(numbers: Sequence[int]) -> dict[int, list[int]]:
    """For each number that is not negative, where it is wanted."""
    places: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        if number >= 0:
            places.setdefault(int(number), []).append(place)
    return places
