"""Index made by a scan of a video's packets: its frames, in order, and where decoding begins."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headrace.kernels.cpu.video.sound import SoundIndex

_TICK = 1e-6
"""Seconds that a time may be wrong by; those of containers are whole numbers of their units."""


NO_TIME = -(1 << 63)
"""Stands for a time that a packet does not have."""


class Packets:
    """The packets of a video in the order they are stored.

    `keys`, `shown`: true for those with a key frame, and with a picture that is shown. `pts`,
    `dts`: times of presentation and of decoding, or `NO_TIME`. `sizes`: bytes of each.
    """

    def __init__(
        self,
        keys: Sequence[bool] | np.ndarray,
        shown: Sequence[bool] | np.ndarray,
        pts: Sequence[int] | np.ndarray,
        dts: Sequence[int] | np.ndarray,
        sizes: Sequence[int] | np.ndarray,
    ) -> None:
        self.keys, self.shown = np.array(keys, bool), np.array(shown, bool)
        self.pts, self.dts = np.array(pts, np.int64), np.array(dts, np.int64)
        self.sizes = np.array(sizes, np.int64)

    def __len__(self) -> int:
        return len(self.keys)

    @cached_property
    def places(self) -> dict[tuple[int | None, int | None, int], int]:
        """The packets by what tells them apart; -1 for those that nothing does."""
        found: dict[tuple[int | None, int | None, int], int] = {}
        columns = [column.tolist() for column in (self.pts, self.dts, self.sizes)]
        for number, (pts, dts, size) in enumerate(zip(*columns, strict=True)):
            facts = None if pts == NO_TIME else pts, None if dts == NO_TIME else dts, size
            found[facts] = -1 if facts in found else number
        return found

    @property
    def are_timed(self) -> bool:
        """True if all packets that are shown have presentation times of their own."""
        times = self.pts[self.shown]
        return not (times == NO_TIME).any() and len(np.unique(times)) == len(times)


class Timeline:
    """Times of the frames of a video.

    `seconds`: when each frame begins, rising. `frame_seconds`: how long one lasts, by the rate that
    the file names. `tick`: seconds of a unit of time.
    """

    def __init__(self, seconds: np.ndarray, frame_seconds: float, tick: float = 0.0) -> None:
        self.seconds = seconds
        self.frame_seconds = frame_seconds
        self.tick = tick

    @cached_property
    def is_steady(self) -> bool:
        """True if all frames last as long, but for rounding of times."""
        even = self.seconds[:1] + self.frame_seconds * np.arange(len(self))
        return bool(np.abs(self.seconds - even).max(initial=0) <= 1.5 * self.tick + _TICK)

    def __len__(self) -> int:
        return len(self.seconds)

    def times(self, numbers: np.ndarray) -> np.ndarray:
        """Seconds at which frames begin; those after the last one follow at the mean rate."""
        known = self.seconds[np.clip(numbers, 0, len(self) - 1)]
        return known + (numbers - np.clip(numbers, 0, len(self) - 1)) * self._mean

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
        span = float(self.seconds[-1] - self.seconds[0])
        return span / (len(self) - 1) if span > 0 else self.frame_seconds


class FrameIndex(Timeline):
    """The frames of a video in the order they are presented.

    `packets`: the packets of the file. `order`: of each frame, the number of its packet.
    `time_base`: seconds of a unit of time. `rate`: frames a second, for what has no times.
    `missing`: how many frames the file announces that are not in it.

    `sound`: what is known of the audio of the file, once it was asked for. `height`, `width`:
    extents of the pictures. `exact`: true if the frames were found by decoding all of them.
    `orientation`: turn that the file asks for, as EXIF counts them; `None` until it was asked for.
    """

    sound: SoundIndex | None = None
    orientation: int | None = None
    height = width = 0
    exact = False

    def __init__(
        self,
        packets: Packets,
        order: Sequence[int] | np.ndarray,
        time_base: Fraction,
        rate: float,
        missing: int = 0,
    ) -> None:
        self.packets = packets
        self.missing = missing
        self.time_base, self.rate = time_base, rate
        self.order = np.array(order, np.int64)
        self.numbers = {packet: number for number, packet in enumerate(self.order.tolist())}
        """The frame of each packet that has one."""
        times = packets.pts[self.order]
        if (times == NO_TIME).any() or (np.diff(times) < 0).any():
            # Decoding times are those of presentation, but for their order and a delay.
            found = np.sort(packets.dts[self.order])
            times = found - found[:1] if not (found == NO_TIME).any() else found[:0]
        self.ticks = times if len(times) == len(self.order) > 0 else None
        if self.ticks is not None:
            seconds = self.ticks * time_base.numerator / time_base.denominator
        else:
            seconds = np.arange(len(self.order)) / rate
        super().__init__(seconds, 1 / rate, float(time_base))
        self._keys = np.flatnonzero(packets.keys)

    def beginning(self, number: int) -> int:
        """The packet that decoding has to begin at for frame `number`: its key frame's.

        Of an open group, frames that are shown before its key frame belong to the group before.
        """
        return self._beginnings[number]

    @cached_property
    def _beginnings(self) -> list[int]:
        """Those of all frames."""
        pts, keys = self.packets.pts, self._keys
        if not len(keys):
            return [0] * len(self.order)
        own = pts[self.order]
        places = np.searchsorted(keys, self.order, "right") - 1
        left = np.ones(len(self.order), bool)
        found = np.zeros(len(self.order), np.int64)
        while (left & (places >= 0)).any():
            left &= places >= 0
            key = keys[np.maximum(places, 0)]
            fits = left & ((own == NO_TIME) | (pts[key] == NO_TIME) | (pts[key] <= own))
            found[fits] = key[fits]
            left &= ~fits
            places -= 1
        return found.tolist()  # type: ignore[no-any-return]

    @property
    def varies(self) -> bool:
        """True if the frame rate is not constant, but for rounding."""
        if self.ticks is None or len(self.ticks) < 3:
            return False
        line = np.linspace(self.ticks[0], self.ticks[-1], len(self.ticks))
        return bool(np.abs(self.ticks - line).max() > 1.5)
