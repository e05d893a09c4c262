"""Arguments for the audio of a video file, in step with its frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError, MisusedArgumentError
from headrace.operators.support.argument_types import BoolArg, FloatArg
from headrace.operators.support.schema import Arg, Spec
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.kernels.cpu.video.frame_index import Timeline

Span = tuple[float, float, float]
"""A span of time: when it begins, its seconds, and when silence begins."""

AUDIO_ARGS = (
    Arg(
        "enable_audio",
        BoolArg,
        False,
        "Whether there are outputs for the audio of the same time and for its sampling rate.",
    ),
    Arg(
        "audio_rate",
        FloatArg,
        None,
        "With `enable_audio`: sampling rate in Hz that the audio is resampled to; that of each "
        "file is kept if not given.",
    ),
    Arg(
        "audio_downmix",
        BoolArg,
        False,
        "With `enable_audio`: whether all channels are averaged. The samples then have the shape "
        "``(n,)``, otherwise ``(n, channels)``.",
    ),
)
AUDIO_OUTPUTS = (
    "With `enable_audio`: audio from the first frame to the end of the last one, float32, -1 to 1.",
    "With `enable_audio`: its sampling rate in Hz, a float32 scalar.",
)


def check_audio(args: Any) -> None:
    """Raise what is wrong with the arguments."""
    if args.audio_rate is not None and not 0 < args.audio_rate < 1 << 24:
        raise ArgumentValueError(
            f"`audio_rate` is {args.audio_rate:g} Hz, but must be positive and below {1 << 24}."
        )
    if not args.enable_audio and (args.audio_rate is not None or args.audio_downmix):
        name = "audio_downmix" if args.audio_rate is None else "audio_rate"
        raise MisusedArgumentError(
            f"`{name}` is about the audio of videos: give `enable_audio=True`, too."
        )


def audio_specs(args: Any) -> list[Spec]:
    """Types of the outputs."""
    if not args.enable_audio:
        return []
    return [Spec(DALIDataType.FLOAT, 1 if args.audio_downmix else 2), Spec(DALIDataType.FLOAT, 0)]


def span_of(line: Timeline, first: int, last: int, begin: int, end: int, fps: float | None) -> Span:
    """The time from frame `first` to the beginning of frame `last`, in a part of a video.

    The frames are counted from its frame `begin`, at the rate `fps`; it ends before frame `end`.
    """
    origin, start, stop, limit = line.times(
        np.array([begin, begin + first, begin + last, end])
    ).tolist()
    if fps is not None:
        return origin + first / fps, (last - first) / fps, limit
    if begin + first < 0:
        start += (begin + first) * line.frame_seconds
    seconds = (last - first) * line.frame_seconds if line.is_steady else stop - start
    return start, seconds, limit


def audio_of(video: Any, args: Any, span: Span) -> list[np.ndarray]:
    """The outputs for a span of a `Video`."""
    if not args.enable_audio:
        return []
    begin, seconds, limit = span
    found = video.sound.read(begin, seconds, args.audio_rate, limit)
    if args.audio_downmix:
        found = found.mean(1)
    rate = video.sound.index.rate if args.audio_rate is None else args.audio_rate
    return [np.ascontiguousarray(found), np.array(rate, np.float32)]


def audio_like(args: Any) -> list[np.ndarray]:
    """Outputs for a sample that is bad."""
    return [np.zeros((0,) if args.audio_downmix else (0, 1), np.float32), np.zeros((), np.float32)]
