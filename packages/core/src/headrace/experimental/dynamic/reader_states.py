"""Positions of readers as text."""

from __future__ import annotations

import base64
import json
from typing import Any, cast

from headrace.errors import ArgumentTypeError, ArgumentValueError

STATE_VERSION = 1


class ReaderState(str):
    """Position of a reader, as text that can be kept anywhere."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"ReaderState({str(self)!r})"


def encoded(state: dict[str, Any]) -> ReaderState:
    """The text of a reader's position."""
    text = json.dumps(state, separators=(",", ":"))
    return ReaderState(base64.b64encode(text.encode()).decode())


def decoded(state: Any, reader: str) -> dict[str, Any]:
    """The position of a reader in text that `encoded` made."""
    if not isinstance(state, (str, bytes)):
        raise ArgumentTypeError(
            "`state` is what `get_state()` returned, a string (DALI's ReaderState); got "
            f"{type(state).__name__}."
        )
    try:
        found = json.loads(base64.b64decode(state, validate=True))
        known = found["version"] == STATE_VERSION and isinstance(found["epochs"], int)
        source = found["source"]
        owner = found["reader"]
    except (ValueError, KeyError, TypeError) as error:
        raise ArgumentValueError(f"{state!r} is no state of a reader.") from error
    if not known or not isinstance(source, dict):
        raise ArgumentValueError(f"{state!r} is no state of a reader of this version.")
    if owner != reader:
        raise ArgumentValueError(f"The state is that of `{owner}`, not of `{reader}`.")
    return cast("dict[str, Any]", found)
