"""Frames that are asked for outside of what there is."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.operators.support.argument_types import ArgType, IntListArg, StringArg
from headrace.operators.support.schema import Arg

PAD_MODES = {
    "none": "none",
    "constant": "constant",
    "edge": "edge",
    "repeat": "edge",
    "reflect_1001": "reflect_1001",
    "symmetric": "reflect_1001",
    "reflect_101": "reflect_101",
    "reflect": "reflect_101",
}
FILL_NUMBER = -1
"""Stands for a frame that is filled with a colour."""


def _text(value: np.ndarray) -> str:
    return value.tobytes().partition(b"\0")[0].decode("utf-8", "replace")


PAD_MODE_TYPE = ArgType("str", "str", StringArg.constant, _text)
FILL_VALUE = Arg(
    "fill_value",
    IntListArg,
    (0,),
    'Colour, 0 to 255, of frames that are not there, with ``pad_mode="constant"``: one number, '
    "or one for each channel.",
)
_MODES_DOC = (
    '``"constant"`` fills frames with `fill_value`, ``"edge"`` or ``"repeat"`` repeats the last '
    'one, ``"reflect_1001"`` or ``"symmetric"`` goes back from the last one, which comes twice, '
    'and ``"reflect_101"`` or ``"reflect"`` from the one before it'
)


def pad_mode_arg(default: str, none: str) -> Arg:
    """The argument `pad_mode`, whose mode ``"none"`` does what `none` says."""
    doc = f'What stands for frames that are not there: ``"none"`` {none}, {_MODES_DOC}.'
    return Arg("pad_mode", PAD_MODE_TYPE, default, doc, per_sample=True)


def mode_of(name: str) -> str:
    """Mode that a name, which may be an alias, stands for."""
    if name not in PAD_MODES:
        raise ArgumentValueError(
            f"Invalid pad_mode: {name!r}. Valid options are: {', '.join(PAD_MODES)}."
        )
    return PAD_MODES[name]


def padded(numbers: np.ndarray, count: int, mode: str) -> np.ndarray:
    """Frames of `count`, or `FILL_NUMBER`, that stand for `numbers`, by a mode other than none."""
    found: np.ndarray
    if mode == "constant":
        return np.where((numbers >= 0) & (numbers < count), numbers, FILL_NUMBER)
    if mode == "edge" or count == 1:
        return numbers.clip(0, count - 1)
    if mode == "reflect_1001":
        turned = numbers % (2 * count)
        found = np.minimum(turned, 2 * count - 1 - turned)
    else:
        turned = numbers % (2 * count - 2)
        found = np.minimum(turned, 2 * count - 2 - turned)
    return found


def fill_color(values: Sequence[int], channels: int) -> np.ndarray:
    """The colour that `fill_value` says, one number for each channel."""
    wrong = [v for v in values if not 0 <= v <= 255]
    if wrong:
        raise ArgumentValueError(f"fill_value must be in range [0, 255], got {wrong[0]}.")
    if len(values) not in (1, channels):
        raise ArgumentValueError(
            "Fill value size must be 1 or equal to the number of channels. Got "
            f"{len(values)} with num_channels={channels}."
        )
    return np.broadcast_to(np.array(values, np.uint8), (channels,))
