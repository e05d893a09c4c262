"""A video, opened: its frames by number, in any order."""

from __future__ import annotations

import io
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.exif import UPRIGHT
from headrace.kernels.cpu.video.frame_index import NO_TIME, FrameIndex, Packets
from headrace.kernels.cpu.video.frame_reader import FrameReader, places_of
from headrace.kernels.cpu.video.kept_frames import KeptFrames
from headrace.kernels.cpu.video.library import demuxed, pyav
from headrace.kernels.cpu.video.sound import Sound

_MOST_PIXELS = 1 << 28
_SKIPPED_BYTES = 1 << 20
"""Packets that are read and dropped, for less work than a seek."""
_SHOWN_IN_CONTENT = ("vp8", "libvpx", "vp9", "libvpx-vp9")
"""Codecs of which packets themselves say that they are not shown."""
_REFERENCES = frozenset({"h264", "hevc", "mpeg4"})
"""Codecs of which frames that no other one needs can be left out."""


class FileSource(Protocol):
    """A file that is not on a local disk."""

    key: tuple[str, int, int]
    """Name, size, and something else that tells its versions apart."""

    def open(self) -> Any:
        """Open it anew: an object with `read`, `seek`, `tell` and `close`."""

    def outline(self) -> Any:
        """The same, without the packets' contents; `None` where nothing would be saved by that."""


class _Outline:
    """A source whose packets are zeros."""

    def __init__(self, file: Any) -> None:
        self._file = file

    key = ("", 0, 0)

    def open(self) -> Any:
        self._file.seek(0)
        return self._file

    def outline(self) -> Any:
        return None


def outlined(source: FileSource) -> FrameIndex | None:
    """The index of a file, found without the contents of its packets; `None` if these matter."""
    file = source.outline()
    if file is None:
        return None
    try:
        video = _OutlinedVideo(_Outline(file))
    except _NeedsContentsError:
        return None
    finally:
        file.close()
    video.close()
    return video.index


class _NeedsContentsError(Exception):
    """The packets' contents say which frames there are."""


class Video(FrameReader):
    """A file, or the bytes of one, whose frames are decoded when they are asked for.

    Packets are numbered as they are stored, and each is handed to the decoder with its number in
    place of a time: so a frame that comes out is known by its packet, whatever the times are worth.

    `source`: a path, or all bytes of a file. `index`: that of the file where it is known.

    `index`: its frames. `height`, `width`: extents of its pictures, as they are stored. `missing`:
    how many frames the file announces that are not in it: where it is cut off.
    `kept`: frames that were decoded before; with `keeps`, those that are decoded are added.

    Raises `BadSampleError` if it cannot be opened, or has no video.
    """

    def __init__(
        self, source: str | np.ndarray | FileSource, index: FrameIndex | None = None
    ) -> None:
        self._source: Any = source.tobytes() if isinstance(source, np.ndarray) else source
        self._files: list[Any] = []
        if isinstance(self._source, bytes) and not self._source:
            raise BadSampleError("The data is empty: it has no bytes, so it is no video.")
        self._container: Any = None
        self._sound: Sound | None = None
        self._exact = False
        self.kept = KeptFrames()
        self.keeps = False
        self._open()
        self.missing = 0
        context = self._stream.codec_context
        self.height, self.width = int(context.height), int(context.width)
        if index is not None:
            self._all = index.packets
            self.missing, self._exact = index.missing, index.exact
        self.index = self._scan() if index is None else index
        if not len(self.index):
            self.index = self._scan_decoded()
        if not len(self.index):
            raise BadSampleError(f"The video ({context.name}) has no frame that can be decoded.")
        if not 0 < self.height * self.width <= _MOST_PIXELS:
            raise BadSampleError(
                f"The video announces frames of {self.height} x {self.width} pixels."
            )
        self.index.height, self.index.width = self.height, self.width

    def close(self) -> None:
        """Close the file."""
        self.kept.clear()
        if self._container is not None:
            self._container.close()
            self._container = None
        if self._sound is not None:
            self._sound.close()
            self._sound = None
        self._close_files()

    def _close_files(self) -> None:
        while self._files:
            self._files.pop().close()

    @property
    def sound(self) -> Sound:
        """The audio of the file."""
        if self._sound is None:
            self._sound = Sound(self._opened, self.index.sound)
            self.index.sound = self._sound.index
        return self._sound

    @property
    def orientation(self) -> int:
        """Turn that the file asks for, as EXIF counts them, which its first frame tells."""
        if self.index.orientation is None:
            frame = next(self.frames([0]))[0]
            matrix = frame.side_data.get("DISPLAYMATRIX")
            self.index.orientation = UPRIGHT if matrix is None else _orientation(bytes(matrix))
        return self.index.orientation

    def _opened(self) -> Any:
        av, source = pyav(), self._source
        if isinstance(source, bytes):
            source = io.BytesIO(source)
        elif not isinstance(source, str):
            source = source.open()
            self._files.append(source)
        try:
            # From its version 19 on, PyAV does so by itself and knows no such argument.
            is_old = int(av.__version__.partition(".")[0]) < 19
            return av.open(source, **({"metadata_errors": "replace"} if is_old else {}))
        except (av.FFmpegError, OSError, ValueError) as error:
            self._check_files()
            raise BadSampleError(f"It cannot be opened as a video: {error}") from error

    def _check_files(self) -> None:
        """Raise the error that reading a file ended with, which is not where the file ends."""
        for file in self._files:
            if getattr(file, "failure", None) is not None:
                raise BadSampleError(f"It cannot be read: {file.failure!r}.") from file.failure

    def _open(self) -> None:
        """Open the file, and stand at its beginning."""
        if self._container is not None:
            self._container.close()
            if self._sound is None:
                self._close_files()
        self._container = self._opened()
        videos = self._container.streams.video
        if not videos:
            raise BadSampleError("The file has no video in it.")
        self._stream = stream = videos[0]
        if stream.codec_context is None:
            raise BadSampleError(
                "FFmpeg has no decoder for the codec of the video; codecs that it has are listed "
                "by `python -m av --codecs`."
            )
        stream.codec_context.thread_count = 1
        self._packets: Iterator[Any] = self._demuxed()
        self._next = 0
        self._begun: int | None = None
        self._shown = -1
        self._left_out: set[int] = set()
        self._pending: deque[Any] = deque()
        self._is_drained = False

    def _demuxed(self) -> Iterator[Any]:
        try:
            yield from demuxed(self._container, self._stream)
        except (pyav().FFmpegError, OSError, ValueError):
            self._check_files()  # else, what is there counts

    def _scan(self) -> FrameIndex:
        found: list[tuple[bool, bool, int, int, int]] = []
        codec = self._stream.codec_context.name
        for packet in self._packets:
            if packet.is_corrupt and found:
                self.missing = 1  # of which a part is there
                break
            shown = not packet.is_discard and _is_shown(codec, packet)
            pts, dts = [NO_TIME if t is None else t for t in (packet.pts, packet.dts)]
            found.append((packet.is_keyframe, shown, pts, dts, packet.size))
        columns: Any = zip(*found, strict=True) if found else [()] * 5
        self._all = packets = Packets(*columns)
        self._next = len(packets)
        if "mp4" in self._container.format.name:  # where the number is no guess
            self.missing = max(self._stream.frames - len(packets), self.missing)
        if not packets.are_timed:
            return self._scan_decoded()
        order = np.flatnonzero(packets.shown)
        if self.missing and len(packets) and packets.dts[-1] != NO_TIME:
            # What is missing is shown no sooner than it would be decoded.
            whole = order[packets.pts[order] <= packets.dts[-1]]
            self.missing += len(order) - len(whole)
            order = whole
        return self._indexed(order[np.argsort(packets.pts[order])])

    def _scan_decoded(self) -> FrameIndex:
        """The index by the order in which frames come out of the decoder."""
        self._exact = True
        self._open()
        order: list[int] = []
        seen: set[int] = set()
        for frame, _ in self._decoded(set(), tolerant=True):
            known = frame.pts is not None and frame.pts < len(self._all)
            if known and frame.pts not in seen and not frame.is_corrupt:
                seen.add(frame.pts)
                order.append(frame.pts)
        return self._indexed(order)

    def _indexed(self, order: Sequence[int] | np.ndarray) -> FrameIndex:
        stream = self._stream
        rate = stream.average_rate or stream.guessed_rate or 25
        base = Fraction(stream.time_base or 1 / rate)
        found = FrameIndex(self._all, order, base, float(rate), self.missing)
        found.exact = self._exact
        return found

    def frames(self, numbers: Sequence[int]) -> Iterator[tuple[Any, list[int]]]:
        """The frames of these numbers, in the order they are shown, and where each is wanted."""
        places = places_of(numbers)
        kept = {n: frame for n in places if (frame := self.kept.get(n)) is not None}
        yield from ((frame, places[n]) for n, frame in kept.items())
        for number, frame in self._frames(sorted(places.keys() - kept.keys())):
            if (frame.height, frame.width) != (self.height, self.width):
                self.kept.clear()
                raise BadSampleError(
                    f"Frame {number} has {frame.height} x {frame.width} pixels, and the video "
                    f"announces {self.height} x {self.width}."
                )
            yield frame, places[number]

    def _frames(self, wanted: list[int]) -> Iterator[tuple[int, Any]]:
        """The frames of these numbers, which rise."""
        if wanted and wanted[-1] >= len(self.index):
            raise BadSampleError(
                f"Frame {wanted[-1]} is not there: the video has {len(self.index)} frames."
            )
        position = 0
        tried: set[int] = set()
        while position < len(wanted):
            number = wanted[position]
            packets = {int(self.index.order[n]) for n in wanted[position:]}
            begin = 0 if number in tried else self.index.beginning(number)
            self._go_to(begin, number)
            failure: str | None = None
            for frame, reason in self._decoded(packets):
                if frame is None:
                    failure = reason
                    break
                found = self.index.numbers.get(frame.pts, -1)
                if self.keeps and found >= 0 and not frame.is_corrupt:
                    self.kept.keep(found, frame)
                if found < number or frame.is_corrupt:
                    continue
                if found > number:
                    break
                yield number, frame
                tried.discard(number)
                self._shown = number
                position += 1
                if position == len(wanted):
                    return
                following = wanted[position]
                if self._needs_seek(self.index.beginning(following), following):
                    break
                number = following
            if position < len(wanted) and wanted[position] == number and number != self._shown:
                self._begun = None
                if number in tried:
                    why = failure or "the decoder leaves it out"
                    if not self._exact:
                        known = len(self.index)
                        self.index = self._scan_decoded()
                        self.kept.clear()  # its frames have other numbers now
                        self._begun = None
                        if len(self.index) == known:
                            tried.discard(number)
                            continue
                    raise BadSampleError(f"Frame {number} cannot be decoded: {why}.")
                tried.add(number)

    _leaves_out = True
    """True if the decoder can leave out frames that no other one needs."""

    def _decode(self, packet: Any) -> Iterable[Any]:
        """Hand a packet, or the end, to the decoder; return frames that it has done."""
        return self._stream.codec_context.decode(packet)  # type: ignore[no-any-return]

    def _flush(self) -> None:
        """Have the decoder forget what it was handed."""
        self._stream.codec_context.flush_buffers()

    def is_ahead(self, number: int) -> bool:
        """True if frame `number` is ahead of the decoder's position, in reach."""
        if number in self.kept:
            return True
        known = number < len(self.index)
        return known and not self._needs_seek(self.index.beginning(number), number)

    def _needs_seek(self, begin: int, number: int) -> bool:
        """True if frame `number` is not ahead, or nearer to its key frame at packet `begin`."""
        if self._begun is None or self._begun > begin or begin > self._next:
            return True
        packet = int(self.index.order[number])
        if self._is_drained and all(frame.pts != packet for frame in self._pending):
            return True
        return number <= self._shown or packet in self._left_out

    def _go_to(self, begin: int, number: int) -> None:
        """Stand at packet `begin`, or after it where the decoder has gone through it."""
        if not self._needs_seek(begin, number):
            return
        skipped = self._all.sizes[self._next : begin]
        if begin < self._next or len(skipped) > 64 or skipped.sum() > _SKIPPED_BYTES:
            self._seek(begin)
        self._flush()
        while self._next < begin:
            if next(self._packets, None) is None:
                raise BadSampleError(f"Frame {number} is not there: the file is cut off before it.")
            self._next += 1
        self._begun = begin
        self._shown = -1
        self._is_drained = False
        self._left_out.clear()
        self._pending.clear()

    def _seek(self, begin: int) -> None:
        """Stand at packet `begin` or a little before it."""
        packets = self._all
        places = packets.places
        keys: list[int] = np.flatnonzero(packets.keys[: begin + 1]).tolist() or [0]
        for back in (0, 1, 8):
            target = keys[max(len(keys) - 1 - back, 0)]
            time = packets.pts[target] if packets.dts[target] == NO_TIME else packets.dts[target]
            if time != NO_TIME and self._sought(int(time), begin, places):
                return
        self._open()

    def _sought(self, time: int, begin: int, places: dict[Any, int]) -> bool:
        av = pyav()
        try:
            self._container.seek(time, stream=self._stream)
        except (av.FFmpegError, OSError, ValueError):
            return False
        self._packets = self._demuxed()
        for skipped, packet in enumerate(self._packets):
            known = places.get((packet.pts, packet.dts, packet.size), -1)
            if known > begin or skipped > 256:
                return False
            if known >= 0:
                self._packets = _chained(packet, self._packets)
                self._next = known
                return True
        return False

    def _decoded(
        self, wanted: set[int], *, tolerant: bool = False
    ) -> Iterator[tuple[Any, str | None]]:
        """Frames from where the file stands on, `pts` being numbers of packets; or None and why."""
        av = pyav()
        context = self._stream.codec_context
        leaves_out = self._leaves_out and context.name in _REFERENCES and bool(wanted)
        last = max(wanted, default=-1)
        numbers = self.index.numbers if wanted else {}
        end = max((numbers.get(packet, -1) for packet in wanted), default=-1)
        first_key = int(self._all.keys.argmax()) if len(self._all) else 0
        pending = self._pending
        while True:
            while pending:
                yield pending.popleft(), None
            if self._is_drained:
                return
            packet = next(self._packets, None)
            number = self._next
            if packet is not None:
                packet.pts = packet.dts = number
                self._next += 1
            if leaves_out:
                spare = packet is not None and number not in wanted and number < last
                spare = spare and numbers.get(number, -1) < end  # what follows is wanted next
                context.skip_frame = "NONREF" if spare else "DEFAULT"
                if spare:
                    self._left_out.add(number)
            self._is_drained = packet is None
            try:
                pending.extend(self._decode(packet))
            except av.FFmpegError as error:
                if tolerant or number < first_key or isinstance(error, av.EOFError):
                    continue
                self._begun = None
                where = "the end" if packet is None else f"packet {number}"
                yield None, f"{where} is damaged ({error})"
                return


class _OutlinedVideo(Video):
    """A video of which all but the packets is known."""

    def _scan(self) -> FrameIndex:
        if self._stream.codec_context.name in _SHOWN_IN_CONTENT:
            raise _NeedsContentsError
        return super()._scan()

    def _scan_decoded(self) -> FrameIndex:
        raise _NeedsContentsError


def _chained(packet: Any, packets: Iterator[Any]) -> Iterator[Any]:
    yield packet
    yield from packets


def _orientation(matrix: bytes) -> int:
    """The turn by quarters, and flip, that is nearest to a display matrix."""
    a, b, _, c, d = np.frombuffer(matrix, np.int32)[:5].tolist()
    if abs(a) + abs(d) >= abs(b) + abs(c):
        return {(0, 0): 1, (1, 0): 2, (1, 1): 3, (0, 1): 4}[a < 0, d < 0]
    return {(0, 0): 5, (0, 1): 6, (1, 1): 7, (1, 0): 8}[b < 0, c < 0]


def _is_shown(codec: str, packet: Any) -> bool:
    """True if a packet has a picture that is shown, not only used by others."""
    if codec not in _SHOWN_IN_CONTENT:
        return True
    data = memoryview(packet)
    first = data[0]
    if "9" not in codec:
        return bool(first >> 4 & 1)
    if data[-1] >> 5 == 0b110:  # several pictures, of which one is shown
        return True
    profile = (first >> 5 & 1) | (first >> 4 & 1) << 1
    bits = first << (1 if profile == 3 else 0)
    return bool(bits & 8) or bool(bits & 2)
