"""Arguments of the readers of videos."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.operators.support.argument_types import (
    ArgType,
    BoolArg,
    FloatArg,
    FloatListArg,
    ImageTypeArg,
    IntArg,
    IntListArg,
    PathArg,
    PathListArg,
    StringArg,
)
from headrace.operators.support.schema import REQUIRED, Arg
from headrace.operators.support.video.audio import AUDIO_ARGS, AUDIO_OUTPUTS
from headrace.operators.support.video.color_space import COLOR_SPACE
from headrace.operators.support.video.orientation import ADJUST_ORIENTATION
from headrace.types import DALIImageType

_FRAME_NUMBERS = ("none", "scalar", "sequence")


def _frame_num(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "scalar" if value else "none"
    text: str = StringArg.constant(value)
    return {"true": "scalar", "false": "none"}.get(text.lower(), text)


_FRAME_NUM_TYPE = ArgType("str or bool", "str | bool", _frame_num)


def _labelled(args: dict[str, Any]) -> bool:
    return bool(args.get("file_list") or args.get("file_root")) or args.get("labels") is not None


def _numbered(args: dict[str, Any]) -> bool:
    return _frame_num(args.get("enable_frame_num") or False) != "none"


def count_outputs(args: dict[str, Any]) -> int:
    """Number of outputs that constants ask for."""
    found = 1 + _labelled(args) + _numbered(args) + bool(args.get("enable_timestamps"))
    return found + 2 * bool(args.get("enable_audio"))


COMMON_ARGS = (
    Arg("sequence_length", IntArg, REQUIRED, "Frames of a sequence."),
    Arg("filenames", PathListArg, (), "The videos to read, in this order."),
    Arg(
        "labels",
        IntListArg,
        None,
        "Labels of `filenames`; an empty list numbers them. Without it they have none.",
    ),
    Arg(
        "file_root",
        PathArg,
        "",
        "Directory whose sub-directories are the classes; their numbers are the labels of the "
        "videos in them.",
    ),
    Arg(
        "file_list",
        PathArg,
        "",
        'Text file with lines "name label" or "name label begin end", the latter of which take a '
        "part of a video. Negative numbers count from its end.",
    ),
    Arg("stride", IntArg, 1, "Distance of the frames of a sequence."),
    Arg(
        "step",
        IntArg,
        -1,
        "Distance of the first frames of sequences; by default each begins after the one before.",
    ),
    Arg(
        "enable_frame_num",
        _FRAME_NUM_TYPE,
        "none",
        'Whether there is an output for numbers of frames: ``"none"``; ``"scalar"`` or `True`, '
        'that of the first one; ``"sequence"``, those of all.',
        choices=_FRAME_NUMBERS,
    ),
    Arg(
        "enable_timestamps",
        BoolArg,
        False,
        "Whether there is an output for the times of the frames, in seconds.",
    ),
    Arg(
        "image_type",
        ImageTypeArg,
        DALIImageType.RGB,
        "Colours of the frames: `RGB`, `YCbCr` (ITU-R BT.601, of limited range) or `GRAY`.",
    ),
    COLOR_SPACE,
    ADJUST_ORIENTATION,
    Arg(
        "fps",
        FloatArg,
        None,
        "Frames a second: videos are read as if they had this rate, with the frames that are shown "
        "at every ``1 / fps`` seconds from the beginning on. `stride` and `step` count these.",
    ),
    Arg(
        "clips_per_video",
        IntArg,
        None,
        "Number of sequences that are read of each video, or part of one, in an epoch; "
        "`clip_starts` says where. Excludes `step`.",
    ),
    Arg(
        "clip_starts",
        StringArg,
        "uniform",
        'With `clips_per_video`, where sequences begin: ``"uniform"``, at even distances, the '
        "first one at the beginning and the last one as late as it fits, or a single one in the "
        'middle; ``"random"``, anywhere, anew each time.',
        choices=("uniform", "random"),
    ),
    Arg(
        "frames",
        IntListArg,
        None,
        "Frames of each sequence, `sequence_length` numbers counted from the beginning of the "
        "video, or of the part of it that `file_list` names; each is then one sample.",
        per_sample=True,
    ),
    Arg(
        "timestamps",
        FloatListArg,
        None,
        "The same in seconds: the frames that are shown then. They are counted from time 0 of the "
        "file, or from the first frame of the part of it that `file_list` names.",
        per_sample=True,
    ),
    *AUDIO_ARGS,
)
OUTPUTS = (
    "The frames, in the layout FHWC.",
    "With labels: the label, int32, shape (1,).",
    "With `enable_frame_num`: number of the first frame or of each, int32; -1 if it is not there.",
    "With `enable_timestamps`: times of the frames in seconds, float64; -1 if one is not there.",
    *AUDIO_OUTPUTS,
)
