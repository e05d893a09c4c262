"""PyAV, which has FFmpeg's demuxers and decoders, imported when it is first used."""

from __future__ import annotations

from functools import cache
from typing import Any

from headrace._optional import import_optional


@cache
def pyav() -> Any:
    """The module `av`, told to keep FFmpeg's own messages to itself."""
    av = import_optional("av", purpose="Decoding of video", install="headrace[video]")
    av.logging.set_level(None)
    return av
