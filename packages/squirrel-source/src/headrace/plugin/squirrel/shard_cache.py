"""Inflated shards on a local disk, so that later epochs need not inflate them again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
import warnings
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.plugin.squirrel.dataset import ShardFolder, ShardSamples
from headrace.plugin.squirrel.inflate import MOST_BYTES, ByteStream, GzipStream


class CachedFolder(ShardFolder):
    """A folder of shards of which those that were read to their end are kept inflated.

    A shard is kept under a name made of its address, size and time of change, so one that is
    written anew is read anew. Nothing is ever removed: the cache is a folder of the user's.
    """

    def __init__(self, folder: ShardFolder, cache: str | os.PathLike[str]) -> None:
        super().__init__(folder.url, folder.storage_options)
        self._cache = Path(cache)
        try:
            self._cache.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ArgumentValueError(
                f"The folder `cache`={str(cache)!r} cannot be made: {error.strerror or error}."
            ) from error
        self._versions: Mapping[str, str] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "cache": str(self._cache)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        CachedFolder.__init__(
            self, ShardFolder(state["url"], state["storage_options"]), state["cache"]
        )

    def open(
        self, key: str, fields: Collection[str] | None = None, *, allow_pickle: bool = False
    ) -> ShardSamples:
        """The samples of the shard `key`, from the cache if it is there."""
        kept = self._place(key)
        try:
            file = open(kept, "rb", buffering=0)  # noqa: SIM115 - the samples close it
        except OSError:
            opened = self.open_file(key)
            stream: ByteStream = _Keeping(GzipStream(opened, self.path(key)), kept)
        else:
            stream = _Inflated(file, str(kept))
        return ShardSamples(stream, self.path(key), fields, allow_pickle=allow_pickle)

    def _place(self, key: str) -> Path:
        if self._versions is None:
            self._versions = dict(self.listing())
        text = f"{self.path(key)} {self._versions.get(f'{key}.gz', '')}"
        return self._cache / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.inflated"


class _Inflated:
    """A stream that was inflated before."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name

    def piece(self) -> bytes:
        """The next bytes; none at the end."""
        try:
            found: bytes = self._file.read(MOST_BYTES // 4)
        except OSError as error:
            raise BadSampleError(
                f"The cached shard {self._name!r} cannot be read: {error.strerror or error}."
            ) from error
        return found

    def close(self) -> None:
        """Close the file."""
        self._file.close()


class _Keeping:
    """A stream that is written to the cache while it passes, and stays there if it is complete."""

    def __init__(self, stream: GzipStream, place: Path) -> None:
        self._stream = stream
        self._place = place
        self._ended = False
        self._file: Any = None
        with self._no_harm():
            self._file = tempfile.NamedTemporaryFile(dir=place.parent, delete=False)  # noqa: SIM115

    def piece(self) -> bytes:
        """The next bytes; none at the end."""
        found = self._stream.piece()
        if not found:
            self._ended = True
        elif self._file is not None:
            with self._no_harm():
                self._file.write(found)
        return found

    def close(self) -> None:
        """Close the file; keep what was written if it is all there is."""
        if self._file is not None and not self._ended:
            # A reader that knows the number of samples does not look for the end.
            with contextlib.suppress(BadSampleError):
                self._ended = not self._stream.piece()
        self._stream.close()
        file, self._file = self._file, None
        if file is None:
            return
        with self._no_harm():
            file.close()
            if self._ended:
                os.replace(file.name, self._place)
                return
        with contextlib.suppress(OSError):
            os.unlink(file.name)

    @contextlib.contextmanager
    def _no_harm(self) -> Any:
        """A cache that cannot be written is done without."""
        try:
            yield
        except OSError as error:
            warnings.warn(
                f"A shard could not be kept in `cache`: {error}. It is inflated again when it is "
                "read again.",
                UserWarning,
                stacklevel=2,
            )
            file, self._file = self._file, None
            if file is not None:
                with contextlib.suppress(OSError):
                    file.close()
                with contextlib.suppress(OSError):
                    os.unlink(file.name)
