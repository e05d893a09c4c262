"""Index made by a scan of a video's packets: its frames, in order, and where decoding begins."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

import numpy as np

_TICK = 1e-6
"""Seconds that a time may be wrong by; those of containers are whole numbers of their units."""


@dataclass
class Packets:
    """The packets of a video in the order they are stored."""

    keys: list[bool] = field(default_factory=list)
    shown: list[bool] = field(default_factory=list)
    pts: list[int | None] = field(default_factory=list)
    dts: list[int | None] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def are_timed(self) -> bool:
        """True if all packets that are shown have presentation times of their own."""
        times = [t for t, shown in zip(self.pts, self.shown, strict=True) if shown]
        return None not in times and len(set(times)) == len(times)


class FrameIndex:
    """The frames of a video in the order they are presented.

    Parameters
    ----------
    packets
        The packets of the file.
    order
        Of each frame, the number of its packet.
    time_base
        Seconds of a unit of time.
    rate
        Frames a second, for what has no times.
    missing
        How many frames the file announces that are not in it.
    """

    def __init__(
        self, packets: Packets, order: list[int], time_base: Fraction, rate: float, missing: int = 0
    ) -> None:
        self.packets = packets
        self._frame_seconds = 1 / rate
        self.missing = missing
        self.order = np.array(order, np.int64)
        self.numbers = {packet: number for number, packet in enumerate(order)}
        """The frame of each packet that has one."""
        times = [packets.pts[p] for p in order]
        if None in times or sorted(times) != times:  # type: ignore[type-var]
            # Decoding times are those of presentation, but for their order and a delay.
            found = sorted(t for p in order if (t := packets.dts[p]) is not None)
            times = [t - found[0] for t in found] if len(found) == len(order) else [None]  # type: ignore[misc]
        self.ticks: np.ndarray | None = None
        if order and None not in times:
            self.ticks = np.array(times, np.int64)
            self.seconds = self.ticks * time_base.numerator / time_base.denominator
        else:
            self.seconds = np.arange(len(order)) / rate
        self._keys = np.flatnonzero(packets.keys)
        self._pts = packets.pts

    def __len__(self) -> int:
        return len(self.order)

    def beginning(self, number: int) -> int:
        """The packet that decoding has to begin at for frame `number`: its key frame's.

        Of an open group, frames that are shown before its key frame belong to the group before.
        """
        packet = int(self.order[number])
        keys = self._keys[: np.searchsorted(self._keys, packet, "right")]
        own = self._pts[packet]
        for key in keys[::-1].tolist():
            time = self._pts[key]
            if own is None or time is None or time <= own:
                return key
        return 0

    def times(self, numbers: np.ndarray) -> np.ndarray:
        """Seconds at which frames begin; those after the last one follow at the mean rate."""
        count = len(self.seconds)
        known = self.seconds[np.clip(numbers, 0, count - 1)]
        return known + (numbers - np.clip(numbers, 0, count - 1)) * self._mean

    def shown_at(self, seconds: np.ndarray) -> np.ndarray:
        """Numbers of the frames that are shown at these times; those before the first one are
        negative, and after the end of the last they go on at the mean rate.
        """
        found = np.searchsorted(self.seconds, seconds + _TICK, "right") - 1
        after = seconds + _TICK - self.seconds[-1]
        beyond = np.floor(np.maximum(after, 0) / self._mean).astype(np.int64)
        return found + np.where(after >= self._mean, beyond, 0)  # type: ignore[no-any-return]

    @property
    def _mean(self) -> float:
        """Mean seconds of a frame."""
        count = len(self.seconds)
        span = float(self.seconds[-1] - self.seconds[0])
        return span / (count - 1) if span > 0 else self._frame_seconds

    @property
    def varies(self) -> bool:
        """True if the frame rate is not constant, but for rounding."""
        if self.ticks is None or len(self.ticks) < 3:
            return False
        line = np.linspace(self.ticks[0], self.ticks[-1], len(self.ticks))
        return bool(np.abs(self.ticks - line).max() > 1.5)
