"""The argument that has frames turned the way a file asks for."""

from __future__ import annotations

from typing import Any

from headrace.kernels.cpu.decode.exif import UPRIGHT
from headrace.operators.support.argument_types import BoolArg
from headrace.operators.support.schema import Arg

ADJUST_ORIENTATION = Arg(
    "adjust_orientation",
    BoolArg,
    False,
    "Whether frames are turned by quarters, and flipped, the way the file asks for, as those of "
    "phones do. By default they come as they are stored, as in DALI.",
)


def orientation_of(video: Any, args: Any) -> int:
    """The turn of the frames of a `Video` that arguments ask for."""
    return video.orientation if getattr(args, "adjust_orientation", False) else UPRIGHT
