"""Sequences of frames in the videos that a reader is to read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError, UsageError
from headrace.kernels.cpu.decode.exif import UPRIGHT, turned
from headrace.kernels.cpu.video.frame_index import Timeline
from headrace.operators.readers.index import Index
from headrace.operators.readers.listing import list_classes, read_lines
from headrace.operators.readers.remote_video import contents, sources_of
from headrace.operators.readers.storage import complete
from headrace.progress import counted

if TYPE_CHECKING:
    from headrace.kernels.cpu.video.sound import SoundIndex

_NUMBER = r"(?:\s+([+-]?[\d.]+(?:e[+-]?\d+)?))?"
_LINE = re.compile(rf"(\S.*?)\s+([+-]?\d+){_NUMBER}{_NUMBER}")
_ENDINGS = (
    *(".3gp", ".avi", ".flv", ".h264", ".hevc", ".ivf", ".m2ts", ".m4v", ".mjpeg", ".mkv", ".mov"),
    *(".mp4", ".mpeg", ".mpg", ".mts", ".ogv", ".ts", ".webm", ".wmv"),
)
ROUNDINGS = {
    "start_down_end_up": (False, True),
    "start_up_end_down": (True, False),
    "all_up": (True, True),
    "all_down": (False, False),
}
"""True where times between two frames become the later one: beginnings, and ends."""
BAD = -1
"""Stands for the first frame of an entry that cannot be read."""
DRAWN = -2
"""Stands for that of an entry whose first frame is drawn when it is read."""


@dataclass(frozen=True, slots=True)
class Part:
    """A video to be read, or a part of one."""

    path: str
    label: int = 0
    begin: float | None = None
    end: float | None = None
    line: int = 0
    may_be_no_video: bool = False


@dataclass(frozen=True, slots=True)
class Facts:
    """Results of a scan of a video."""

    height: int = 0
    width: int = 0
    timeline: Timeline = field(default_factory=lambda: Timeline(np.zeros(0), 1))
    sound: SoundIndex | None = None
    varies: bool = False
    orientation: int = UPRIGHT
    """Turn of the pictures, which `height` and `width` are those after."""
    missing: int = 0
    failure: str = ""
    source: Any = None
    """Source to open the video from; `None` where copies of remote files are kept."""

    @property
    def count(self) -> int:
        """Number of frames."""
        return len(self.timeline)


class SequencePattern(NamedTuple):
    """Division of videos into sequences."""

    length: int
    stride: int
    step: int
    span: int
    """Frames that a sequence takes."""
    pads: bool
    uniform: bool = False
    """True if each part is one sequence."""
    fps: float | None = None
    """The rate that frames are counted at, if it is not that of the video."""
    clips: int = 0
    """Sequences of each part, where these are counted."""
    draws: bool = False
    """True if the first frames of those are drawn when they are read."""


class VideoIndex(Index):
    """Entries that are sequences of frames."""

    def __init__(self, parts: Sequence[Part], facts: Sequence[Facts], rows: np.ndarray) -> None:
        super().__init__(len(rows), details=[rows])
        self.parts = parts
        self.facts = facts
        self._files = rows[:, 0]
        self.paths = [part.path for part in parts]

    def extents(self, entries: np.ndarray) -> list[tuple[tuple[str, int, int], ...]]:
        """The files that entries are in."""
        paths = [self.paths[file] for file in self._files[entries].tolist()]
        return [((complete(path), 0, -1),) for path in paths]

    def source(self, entry: int) -> str:
        """The file of an entry."""
        return self.paths[int(self._files[entry])]


def listed(args: Any) -> tuple[list[Part], bool]:
    """The videos that arguments name, and whether they have labels."""
    given = [n for n in ("filenames", "file_list", "file_root") if getattr(args, n)]
    if len(given) != 1:
        raise UsageError(
            "Only one of the following arguments can be provided, and one must be: `file_list`, "
            f"`file_root`, `filenames`; got {', '.join(given) or 'none'}."
        )
    labels = args.labels
    if labels is not None and not args.filenames:
        raise ArgumentValueError(
            f"Number of provided files and labels should match: `labels` belong to `filenames`, "
            f"which are not given. Labels of `{given[0]}` are its own."
        )
    if args.file_list:
        return list(_lines(args.file_list)), True
    if args.file_root:
        found = list_classes(args.file_root, file_filters=("*",))
        return [
            Part(found.path(k), int(label), may_be_no_video=not _is_called_video(found.names[k]))
            for k, label in enumerate(found.labels)
        ], True
    if labels is not None and labels and len(labels) != len(args.filenames):
        raise ArgumentValueError(
            "Number of provided files and labels should match. Provided "
            f"{len(args.filenames)} files and {len(labels)} labels."
        )
    numbers = labels or range(len(args.filenames))
    parts = [Part(n, label) for n, label in zip(args.filenames, numbers, strict=True)]
    return parts, labels is not None


def _is_called_video(name: str) -> bool:
    return name.lower().endswith(_ENDINGS)


def _lines(path: str) -> Iterator[Part]:
    for number, line in enumerate(read_lines("file_list", path), 1):
        if not line.strip():
            continue
        found = _LINE.fullmatch(line.strip())
        try:
            if found is None:
                raise ValueError("no match")
            begin, end = [None if t is None else float(t) for t in found.groups()[2:]]
        except ValueError:
            raise ArgumentValueError(
                f"Line {number} of `file_list`={path!r} is {line!r}; expected the name of a file, "
                "a space and its label, an integer, and then, if wanted, where the part to read "
                "begins and ends."
            ) from None
        label = int(found[2])
        if not 0 <= label < 1 << 31:
            raise ArgumentValueError(
                f"Label value should be >= 0 in file_list at line number: {number}, filename: "
                f"{found[1]}; got {label}."
            )
        yield Part(found[1], label, begin, end, number)


def scan(parts: Sequence[Part], *, sound: bool = False, turns: bool = False) -> list[Facts]:
    """Scan each video, and the audio in it if `sound` is wanted, and its turn with `turns`."""
    from headrace.kernels.cpu.video import scanner

    paths = list(dict.fromkeys(part.path for part in parts))
    sources = sources_of(paths)

    def one(path: str, source: Any) -> Facts:
        try:
            if isinstance(source, BadSampleError):
                raise source
            index = scanner.index_of(contents(path, source), sound=sound, orientation=turns)
        except BadSampleError as error:
            return Facts(failure=str(error))
        turn = (index.orientation or UPRIGHT) if turns else UPRIGHT
        size = index.height, index.width
        return Facts(
            *(size[::-1] if turned(turn) else size),
            timeline=Timeline(index.seconds, index.frame_seconds, index.tick),
            sound=index.sound if sound else None,
            varies=index.varies,
            orientation=turn,
            missing=index.missing,
            source=source,
        )

    with ThreadPoolExecutor(scanner.MOST_AT_ONCE) as pool:
        facts = counted(pool.map(one, paths, sources), "scanning videos", "files", len(paths))
        found = dict(zip(paths, facts, strict=True))
    return [found[part.path] for part in parts]


def index_of(
    parts: list[Part],
    facts: list[Facts],
    wanted: SequencePattern,
    bounds: Callable[[Part, Facts], tuple[int, int]],
    *,
    constant_rate: bool = False,
) -> VideoIndex:
    """The sequences in videos: file, first frame, and where the part of the file begins and ends.

    What is wrong with a video is an entry, too, which turns out to be bad when it is read.
    """
    kept = [
        (p, f) for p, f in zip(parts, facts, strict=True) if not (f.failure and p.may_be_no_video)
    ]
    rows: list[tuple[int, int, int, int]] = []
    for number, (part, fact) in enumerate(kept):
        if constant_rate and fact.varies:
            fact = replace(
                fact,
                failure="The frame rate of the video varies; `skip_vfr_check=True` lets it through",
            )
            kept[number] = part, fact
        if fact.failure:
            rows.append((number, BAD, 0, 0))
            continue
        begin, end = bounds(part, fact)
        count = count_of(fact, begin, end, wanted.fps)
        rows += [(number, start, begin, end) for start in _starts(count, wanted)]
        if fact.missing and end == fact.count:
            rows.append((number, BAD, 0, 0))
    if not rows:
        names = ", ".join(sorted({p.path for p, _ in kept})[:5])
        raise ArgumentValueError(
            f"The number of input samples is 0: no sequence of `sequence_length`={wanted.length} "
            f"frames with `stride`={wanted.stride} is in {names or 'any file'}. Shorter sequences, "
            "or padding, take what there is."
        )
    table = np.array(rows, np.int64)
    return VideoIndex([p for p, _ in kept], [f for _, f in kept], table)


def count_of(fact: Facts, begin: int, end: int, fps: float | None) -> int:
    """Frames of a part of a video, at a rate of their own if `fps` is given."""
    if fps is None or begin >= end:
        return max(end - begin, 0)
    first, last = map(float, fact.timeline.times(np.array([begin, end])))
    return max(math.ceil((last - first) * fps - 1e-6), 1)


def _starts(count: int, wanted: SequencePattern) -> list[int]:
    """First frames of the sequences in a part of a video that has `count`."""
    if count <= 0:
        return []
    if wanted.uniform:
        return [0]
    if wanted.clips:
        room = count - wanted.span
        if room < 0 and not wanted.pads:
            return []
        if wanted.draws:
            return [DRAWN] * wanted.clips
        if wanted.clips == 1:
            return [max(room, 0) // 2]
        places = np.linspace(0, max(room, 0), wanted.clips)
        return [int(n) for n in np.floor(places + 0.5)]
    full = range(0, count - wanted.span + 1, wanted.step)
    following = len(full) * wanted.step
    return [*full, following] if wanted.pads and following < count else list(full)


def frame_bounds(part: Part, fact: Facts) -> tuple[int, int]:
    """First frame of a part, and the one after its last, of numbers of frames."""
    count = fact.count
    begin = 0 if part.begin is None else int(part.begin)
    end = count if part.end is None else int(part.end)
    first = begin + count if begin < 0 else begin
    last = end + count if end < 0 else min(end, count)
    if first < 0:
        raise ArgumentValueError(
            f"Line {part.line} of `file_list` lets {part.path} begin at frame {begin}, and the "
            f"video has {count}."
        )
    return first, last


def time_bounds(rounding: str) -> Callable[[Part, Facts], tuple[int, int]]:
    """The same of times in seconds, rounded to frames as `ROUNDINGS` says."""
    first_up, last_up = ROUNDINGS[rounding]

    def bounds(part: Part, fact: Facts) -> tuple[int, int]:
        seconds = fact.timeline.seconds
        step = (seconds[-1] - seconds[0]) / max(fact.count - 1, 1)

        def frame(time: float, up: bool) -> int:
            exact = float(np.float32(time))  # as DALI reads them
            if time < 0:
                exact += float(seconds[-1] + step)
            if up:
                return int(np.searchsorted(seconds, exact, "left"))
            return max(int(np.searchsorted(seconds, exact, "right")) - 1, 0)

        first = 0 if part.begin is None else frame(part.begin, first_up)
        last = fact.count if part.end is None else frame(part.end, last_up)
        return first, last

    return bounds
