"""PyAV, which has FFmpeg's demuxers and decoders, imported when it is first used."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from headrace._optional import import_optional


@cache
def pyav() -> Any:
    """The module `av`, told to keep FFmpeg's own messages to itself."""
    av = import_optional("av", purpose="Decoding of video", install="headrace[video]")
    av.logging.set_level(None)
    return av


def demuxed(container: Any, stream: Any) -> Iterator[Any]:
    """The packets of a stream that have content."""
    while True:
        try:
            for packet in container.demux(stream):
                if packet.size:
                    yield packet
            return
        except IndexError:  # a packet of a stream that the file has not announced
            continue
