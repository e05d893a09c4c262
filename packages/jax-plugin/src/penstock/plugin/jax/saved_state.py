"""Files with the checkpoints of an iterator."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import TYPE_CHECKING

from penstock.errors import ArgumentValueError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

_FORMAT = "penstock iterator"
"""The key in saved files that tells what they are; its value is their version."""


def write_state(filename: str | PathLike[str], checkpoints: Sequence[bytes]) -> None:
    """Write the checkpoints of all pipelines to a file."""
    text = [base64.b64encode(state).decode() for state in checkpoints]
    Path(filename).write_text(json.dumps({_FORMAT: 1, "pipelines": text}))


def read_state(filename: str | PathLike[str]) -> list[bytes]:
    """The checkpoints in a file.

    Raises
    ------
    ArgumentValueError
        If it was not written by `write_state`.
    """
    try:
        found = json.loads(Path(filename).read_text())
        states = [base64.b64decode(text) for text in found["pipelines"]]
        known = found[_FORMAT] == 1
    except (ValueError, KeyError, TypeError):
        known = False
    if not known:
        raise ArgumentValueError(f"{filename} was not written by `save` of such an iterator.")
    return states
