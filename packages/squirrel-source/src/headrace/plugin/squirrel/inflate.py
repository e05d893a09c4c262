"""The bytes inside of a gzip file, a piece at a time: nothing is ever inflated as a whole."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Protocol

from headrace.errors import BadSampleError

if TYPE_CHECKING:
    from collections.abc import Callable

READ_BYTES = 128 * 1024
"""Bytes of compressed data taken at a time: their inflated data fits into the second-level cache,
from which it is copied to where it belongs.
"""
MOST_BYTES = 1024 * 1024
"""Largest number of bytes that one step may inflate to, whatever the data claims."""
_GZIP_WBITS = 31


class Readable(Protocol):
    """A binary file."""

    def read(self, size: int, /) -> bytes | None:
        """Up to `size` bytes; none at the end."""

    def close(self) -> None:
        """Let go of the file."""


class _Inflater(Protocol):
    eof: bool
    unused_data: bytes
    unconsumed_tail: bytes

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...


def _inflaters() -> tuple[Callable[[], Any], tuple[type[Exception], ...], str]:
    """Decompressor factory, exceptions it raises, and the name of its library.

    ISA-L inflates close to twice as fast as zlib, with the same result.
    """
    errors: tuple[type[Exception], ...] = (zlib.error,)
    try:
        from isal import isal_zlib
    except ImportError:
        return lambda: zlib.decompressobj(_GZIP_WBITS), errors, "zlib"
    library: Any = isal_zlib  # its stubs take the exception for an instance of one
    errors = (zlib.error, library.error)
    return lambda: isal_zlib.decompressobj(_GZIP_WBITS), errors, "isal"


_make_inflater, _INFLATE_ERRORS, LIBRARY = _inflaters()


class GzipStream:
    """Inflates a gzip file of any number of members from its beginning to its end."""

    def __init__(self, file: Readable, name: str) -> None:
        self._file = file
        self._name = name
        self._pending = b""
        self._inflater: _Inflater = _make_inflater()
        self._started = False

    def piece(self) -> bytes:
        """The next bytes, at most `MOST_BYTES` of them; none at the end."""
        while True:
            if self._inflater.eof and not self._next_member():
                return b""
            data = self._pending or self._read()
            self._pending = b""
            if not data:
                if not self._started:
                    return b""  # an empty file has no samples
                raise BadSampleError(
                    f"The shard {self._name!r} is cut: its compressed data ends in the middle."
                )
            self._started = True
            inflater = self._inflater
            try:
                out = inflater.decompress(data, MOST_BYTES)
            except _INFLATE_ERRORS as error:
                raise BadSampleError(
                    f"The shard {self._name!r} is damaged, or no gzip file: {error}."
                ) from error
            self._pending = inflater.unused_data if inflater.eof else inflater.unconsumed_tail
            if out:
                return out

    def _next_member(self) -> bool:
        """True if another member follows; zeros after the last one are padding."""
        data = self._pending.lstrip(b"\0")
        while not data:
            read = self._read()
            if not read:
                return False
            data = read.lstrip(b"\0")
        self._pending = data
        self._inflater = _make_inflater()
        return True

    def _read(self) -> bytes:
        try:
            return self._file.read(READ_BYTES) or b""
        except OSError as error:
            raise BadSampleError(
                f"The shard {self._name!r} cannot be read: {error.strerror or error}."
            ) from error

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class ByteStream(Protocol):
    """Bytes that come a piece at a time."""

    def piece(self) -> bytes:
        """The next bytes; none at the end."""

    def close(self) -> None:
        """Let go of what they come from."""


class ByteWindow:
    """A view of a stream that moves forward: what is ahead can be looked at, copied or skipped.

    `chunk`, `at`: the bytes at hand, and the position of the next one among them. A parser may look
    at and move these itself, for speed.
    """

    __slots__ = ("_error", "_stream", "at", "chunk")

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._error: BadSampleError | None = None
        self.chunk = b""
        self.at = 0

    def _more(self) -> bytes:
        if self._error is not None:
            raise self._error
        return self._stream.piece()

    def look_ahead(self, count: int) -> None:
        """Get up to `count` bytes together in `chunk`.

        That nothing can be read after them is not an error yet: they may be all that is needed.
        """
        try:
            self.have(count)
        except BadSampleError as error:
            self._error = error

    def have(self, count: int) -> bool:
        """Get `count` bytes together in `chunk`; whether there are as many."""
        while len(self.chunk) - self.at < count:
            more = self._more()
            if not more:
                return False
            self.chunk = self.chunk[self.at :] + more if self.at < len(self.chunk) else more
            self.at = 0
        return True

    def read_into(self, target: memoryview) -> bool:
        """Fill `target`; whether there was enough for it."""
        done, size = 0, len(target)
        while True:
            count = min(size - done, len(self.chunk) - self.at)
            target[done : done + count] = memoryview(self.chunk)[self.at : self.at + count]
            self.at += count
            done += count
            if done == size:
                return True
            self.chunk, self.at = self._more(), 0
            if not self.chunk:
                return False

    def skip(self, count: int) -> bool:
        """Move on by `count` bytes; whether there were as many."""
        while True:
            here = min(count, len(self.chunk) - self.at)
            self.at += here
            count -= here
            if not count:
                return True
            self.chunk, self.at = self._more(), 0
            if not self.chunk:
                return False

    def line(self) -> bytes:
        """Everything up to and including the next end of a line; nothing at the end."""
        parts = []
        while True:
            end = self.chunk.find(b"\n", self.at)
            if end >= 0:
                parts.append(self.chunk[self.at : end + 1])
                self.at = end + 1
                return b"".join(parts)
            parts.append(self.chunk[self.at :])
            self.chunk, self.at = self._more(), 0
            if not self.chunk:
                return b"".join(parts)

    def close(self) -> None:
        """Close the stream."""
        self.chunk, self.at = b"", 0
        self._stream.close()
