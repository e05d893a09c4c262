"""Reading of frames by number: what all kinds of video have in common."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.cpu.decode.exif import UPRIGHT, turned
from headrace.kernels.cpu.decode.rotate import rotate_into

if TYPE_CHECKING:
    from headrace.kernels.cpu.video.colors import Colors


class FrameReader:
    """A video whose `frames` come by number."""

    height: int
    width: int

    def size(self, orientation: int) -> tuple[int, int]:
        """Height and width of its pictures, turned as `orientation` says."""
        size = self.height, self.width
        return size[::-1] if turned(orientation) else size

    @abstractmethod
    def frames(self, numbers: Sequence[int]) -> Iterator[tuple[Any, list[int]]]:
        """The frames of these numbers, in the order they are shown, and where each is wanted."""

    def read(self, numbers: Sequence[int], out: np.ndarray, colors: Colors) -> None:
        """Fill `out`, ``(F, H, W, channels)``, with the frames of these numbers.

        What stands at a negative number is left as it is.

        Raises `BadSampleError` if a frame cannot be decoded.
        """
        for frame, (first, *others) in self.frames(numbers):
            colors.write(frame, out[first])
            for other in others:
                out[other] = out[first]


class UprightColors:
    """Colours of frames that are turned as a file asks for."""

    def __init__(self, colors: Colors, orientation: int) -> None:
        self._colors, self._orientation = colors, orientation

    def write(
        self,
        frame: Any,
        out: np.ndarray,
        size: tuple[int, int] | None = None,
        at: tuple[int, int] = (0, 0),
    ) -> None:
        """Fill `out`, ``(H, W, channels)``, with the frame as it is meant to be seen, or with a
        window of it, as `Colors.write` does.
        """
        stored = np.empty((frame.height, frame.width, out.shape[2]), out.dtype)
        self._colors.write(frame, stored)
        if size is None:
            rotate_into(out, stored, self._orientation)
            return
        whole = np.empty((*size, out.shape[2]), out.dtype)
        rotate_into(whole, stored, self._orientation)
        out[:] = whole[at[0] : at[0] + len(out), at[1] : at[1] + out.shape[1]]


def upright_colors(colors: Colors, orientation: int) -> Any:
    """A writer of frames with these colours, turned where `orientation` asks for that."""
    return colors if orientation == UPRIGHT else UprightColors(colors, orientation)


def places_of(numbers: Sequence[int]) -> dict[int, list[int]]:
    """For each number that is not negative, where it is wanted."""
    places: dict[int, list[int]] = {}
    for place, number in enumerate(numbers):
        if number >= 0:
            places.setdefault(int(number), []).append(place)
    return places
