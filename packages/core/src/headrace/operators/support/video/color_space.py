"""The argument that says which matrix makes colours of luma and chroma."""

from __future__ import annotations

from headrace.operators.support.argument_types import StringArg
from headrace.operators.support.schema import Arg

COLOR_SPACE = Arg(
    "color_space",
    StringArg,
    "bt601",
    'Matrix that makes RGB of luma and chroma: ``"bt601"``, that of ITU-R BT.601 for all videos, '
    'as in DALI; ``"tag"``, the one that a video names (BT.709, BT.2020, SMPTE 240M), and BT.601 '
    "where it names none.",
    choices=("bt601", "tag"),
)


def is_tagged(args: object) -> bool:
    """Return True if the matrix is the one that a video names."""
    return getattr(args, "color_space", "bt601") == "tag"
