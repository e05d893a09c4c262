"""Videos in remote storage, read by ranges: what is decoded is fetched, and little else."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.config import REMOTE_RETRIES
from headrace.errors import BadSampleError
from headrace.operators.readers import remote
from headrace.operators.readers.file_cache import file_cache
from headrace.operators.readers.storage import is_remote, read_file

_BLOCK_BYTES = 1 << 20
_BLOCKS = 8
_HEAD_BYTES = 1 << 18
"""Beginning of a box of packets that is read for what it is."""
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.1, 10.0


class RemoteVideo:
    """A video at an address, to be opened any number of times.

    `key`: the address, the size and what else tells versions of the file apart.
    """

    def __init__(self, address: str, size: int, stamp: int) -> None:
        self.address = address
        self.key = (address, size, stamp)
        self._size = size

    def open(self) -> RangeFile:
        """Open the file."""
        system, path = remote.file_system(self.address)
        options = {"cache_type": "blockcache", "cache_options": {"maxblocks": _BLOCKS}}

        def opened() -> Any:
            return system.open(path, "rb", block_size=_BLOCK_BYTES, **options)

        return RangeFile(self.address, opened)

    def outline(self) -> SparseFile | None:
        """The file with zeros in place of its packets, if it tells all of them in one place."""
        file = self.open()
        holes = _packet_boxes(file, self._size)
        if holes:
            return SparseFile(file, holes)
        file.close()
        return None


class RangeFile(io.RawIOBase):
    """A remote file; what fails is tried again, and then remembered.

    `failure`: the error that reading ended with, which FFmpeg takes for the end of the file.
    """

    def __init__(self, address: str, opened: Callable[[], Any]) -> None:
        self._address = address
        self._opened = opened
        self._file: Any = None
        self._at = 0
        self._size = -1
        self.failure: Exception | None = None

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Position."""
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position, which nothing is fetched for."""
        if whence == io.SEEK_END:
            offset += self._length()
        elif whence == io.SEEK_CUR:
            offset += self._at
        self._at = max(offset, 0)
        return self._at

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes."""

        def part(file: Any) -> bytes:
            file.seek(self._at)
            return bytes(file.read(size))

        found: bytes = self._tried(part)
        self._at += len(found)
        return found

    def close(self) -> None:
        """Close it."""
        if self._file is not None:
            self._file.close()
            self._file = None
        super().close()

    def _length(self) -> int:
        if self._size < 0:
            self._size = self._tried(lambda file: file.seek(0, io.SEEK_END))
        return self._size

    def _tried(self, function: Callable[[Any], Any]) -> Any:
        """The result of `function` of the file, after tries with growing waits between them."""
        seconds, left = _FIRST_WAIT_SECONDS, int(REMOTE_RETRIES.value())
        while True:
            try:
                if self._file is None:
                    self._file = self._opened()
                return function(self._file)
            except Exception as error:  # each kind of file system raises its own
                self._file = None
                if left <= 0 or not remote.is_passing(error):
                    self.failure = error
                    raise BadSampleError(f"{self._address!r} cannot be read: {error!r}.") from error
            left -= 1
            remote.wait(seconds * random.uniform(0.5, 1.5))
            seconds = min(4 * seconds, _LONGEST_WAIT_SECONDS)


class SparseFile(io.RawIOBase):
    """A file with zeros in place of some extents, which are not fetched."""

    def __init__(self, file: RangeFile, holes: list[tuple[int, int]]) -> None:
        self._file = file
        self._holes = holes

    @property
    def failure(self) -> Exception | None:
        """The error that reading ended with."""
        return self._file.failure

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Position."""
        return self._file.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        return self._file.seek(offset, whence)

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes, to where a hole begins or ends."""
        at = self._file.tell()
        for begin, end in self._holes:
            if begin <= at < end and size >= 0:
                count = min(size, end - at)
                self._file.seek(at + count)
                return bytes(count)
            if at < begin < at + size:
                size = begin - at
        return self._file.read(size)

    def close(self) -> None:
        """Close it."""
        self._file.close()
        super().close()


def _packet_boxes(file: RangeFile, size: int) -> list[tuple[int, int]]:
    """Extents of the boxes with packets in an MP4 or MOV file; none in files of other kinds."""
    at, found, kinds = 0, [], set[bytes]()
    while at + 8 <= size and len(kinds) < 64:
        file.seek(at)
        head = file.read(16)
        length, kind = int.from_bytes(head[:4], "big"), head[4:8]
        body = at + 8
        if length == 1:
            length, body = int.from_bytes(head[8:16], "big"), at + 16
        elif length == 0:
            length = size - at
        if length < body - at or not kind.isalnum() or (at == 0 and kind not in _FIRST_BOXES):
            break
        kinds.add(kind)
        end = min(at + length, size)
        if kind == b"mdat" and end - body > 2 * _HEAD_BYTES:
            found.append((body + _HEAD_BYTES, end))
        at += length
    file.seek(0)
    return found if {b"moov", b"mdat"} <= kinds else []


_FIRST_BOXES = (b"ftyp", b"moov", b"mdat", b"free", b"skip", b"wide", b"styp")


def sources_of(paths: Sequence[str]) -> list[Any]:
    """Sources to open videos from: paths of local files, and a `RemoteVideo` for each remote one.

    Of those whose copies are kept on a local disk the source is `None`, see `read_file`; of those
    that are not there a `BadSampleError`.
    """
    far = [path for path in paths if is_remote(path)]
    if far and file_cache() is not None:
        found: dict[str, Any] = dict.fromkeys(far)
    else:
        stamps = remote.remote_stamps(far) if far else []
        found = {
            path: RemoteVideo(path, *stamp[:2])
            if stamp is not None
            else BadSampleError(f"The video {path!r} cannot be opened: it is not there.")
            for path, stamp in zip(far, stamps, strict=True)
        }
    return [found[path] if path in found else path.removeprefix("file://") for path in paths]


def contents(path: str, source: Any) -> Any:
    """The source, or the bytes of a file that has none."""
    return read_file(path, np.empty) if source is None else source
