"""The shards of a data set: where they are, and what comes out of one."""

from __future__ import annotations

import contextlib
import os
import posixpath
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BadSampleError,
    MissingDependencyError,
)
from headrace.plugin.squirrel.inflate import ByteWindow, GzipStream
from headrace.plugin.squirrel.json_lines import JsonSamples
from headrace.plugin.squirrel.message_pack import MessagePackSamples

if TYPE_CHECKING:
    from headrace.plugin.squirrel.inflate import ByteStream, Readable

_ENDING = ".gz"
_JSON_BEGINNINGS = b"{["


class ShardSamples:
    """The samples of one open shard, in order; errors name the shard and the sample.

    `number`: number of the sample that comes next.
    """

    def __init__(
        self,
        stream: ByteStream,
        name: str,
        fields: Collection[str] | None = None,
        *,
        allow_pickle: bool = False,
    ) -> None:
        self._window = ByteWindow(stream)
        self._name = name
        self._fields = fields
        self._allow_pickle = allow_pickle
        self._samples: JsonSamples | MessagePackSamples | None = None
        self.number = 0

    def next(self) -> Any:
        """The next sample; `None` at the end."""
        sample = self._do("next")
        self.number += sample is not None
        return sample

    def skip(self) -> bool:
        """Move on by one sample; whether there was one."""
        found = bool(self._do("skip"))
        self.number += found
        return found

    def _do(self, what: str) -> Any:
        try:
            if self._samples is None:
                self._samples = self._opened()
            return getattr(self._samples, what)()
        except BadSampleError as error:
            raise type(error)(
                f"Sample {self.number} of the shard {self._name!r} cannot be read: {error}"
            ) from error
        except MemoryError as error:
            raise BadSampleError(
                f"Sample {self.number} of the shard {self._name!r} cannot be read: it claims a "
                "size there is no memory for."
            ) from error

    def _opened(self) -> JsonSamples | MessagePackSamples:
        window = self._window
        if window.have(1) and window.chunk[window.at : window.at + 1] in _JSON_BEGINNINGS:
            return JsonSamples(window, self._fields)
        return MessagePackSamples(window, self._fields, allow_pickle=self._allow_pickle)

    def close(self) -> None:
        """Close the file."""
        self._samples = None
        self._window.close()


class ShardFolder:
    """A folder of Squirrel's shards, local or at any address that fsspec knows."""

    def __init__(
        self, url: str | os.PathLike[str], storage_options: Mapping[str, Any] | None = None
    ) -> None:
        try:
            address = os.fspath(url)
        except TypeError:
            address = None
        if not isinstance(address, str):
            raise ArgumentTypeError(
                f"A data set is given by its folder or address, got a {type(url).__name__}."
            )
        if not address:
            raise ArgumentValueError("The address of the data set is empty.")
        self.storage_options = dict(storage_options or {})
        self.url = address.rstrip("/") or "/"
        self._system: Any = None
        if self.url.startswith("file://") and not self.storage_options:
            self.url = self.url.removeprefix("file://")
        self._local = "://" not in self.url and not self.storage_options
        if not self._local:
            self._system = _file_system(self.url, self.storage_options)

    def __getstate__(self) -> dict[str, Any]:
        return {"url": self.url, "storage_options": self.storage_options}

    def __setstate__(self, state: dict[str, Any]) -> None:
        ShardFolder.__init__(self, **state)

    def keys(self) -> list[str]:
        """Names of the shards, sorted, without their ending, as Squirrel's drivers list them."""
        names = [name for name, _ in self.listing()]
        return [name.removesuffix(_ENDING) for name in names]

    def listing(self) -> list[tuple[str, str]]:
        """File names of the shards, sorted, each with what tells one version from another."""
        try:
            found = self._list_local() if self._local else self._list_remote()
        except (FileNotFoundError, NotADirectoryError) as error:
            raise ArgumentValueError(
                f"There is no data set at {self.url!r}: the folder does not exist."
            ) from error
        except OSError as error:
            raise ArgumentValueError(
                f"The data set at {self.url!r} cannot be listed: {error.strerror or error}."
            ) from error
        shards = sorted(entry for entry in found if entry[0].endswith(_ENDING))
        if not shards:
            others = f"; it holds {len(found)} other entries" if found else ", which is empty"
            raise ArgumentValueError(
                f"There are no shards in {self.url!r}{others}. Squirrel's shards are files whose "
                f"names end in {_ENDING!r}."
            )
        return shards

    def _list_local(self) -> list[tuple[str, str]]:
        with os.scandir(self.url) as entries:
            found = []
            for entry in entries:
                version = ""
                if entry.name.endswith(_ENDING):
                    status = entry.stat()
                    version = f"{status.st_size}-{status.st_mtime_ns}"
                found.append((entry.name, version))
            return found

    def _list_remote(self) -> list[tuple[str, str]]:
        entries = self._system.ls(self.url, detail=True)
        marks = ("size", "mtime", "LastModified", "ETag", "etag", "md5Hash", "created")
        return [
            (
                posixpath.basename(entry["name"].rstrip("/")),
                "-".join(str(entry[m]) for m in marks if entry.get(m) is not None),
            )
            for entry in entries
        ]

    def path(self, key: str) -> str:
        """Path of the shard `key`."""
        return f"{self.url.rstrip('/')}/{key}{_ENDING}"

    def open(
        self, key: str, fields: Collection[str] | None = None, *, allow_pickle: bool = False
    ) -> ShardSamples:
        """The samples of the shard `key`."""
        path = self.path(key)
        stream = GzipStream(self.open_file(key), path)
        return ShardSamples(stream, path, fields, allow_pickle=allow_pickle)

    def open_file(self, key: str) -> Readable:
        """The compressed file of the shard `key`."""
        path = self.path(key)
        try:
            file: Any = (
                open(path, "rb", buffering=0)  # noqa: SIM115 - the stream closes it
                if self._local
                else self._system.open(path, "rb")
            )
        except Exception as error:  # each kind of file system raises its own
            reason = getattr(error, "strerror", None) or repr(error)
            raise BadSampleError(f"The shard {path!r} cannot be opened: {reason}.") from error
        opened: Readable = file
        return opened

    def count(self, key: str) -> tuple[int, BadSampleError | None]:
        """Count the samples of the shard `key` that can be read; also returns the reason if there
        are more.
        """
        try:
            samples = self.open(key)
        except BadSampleError as error:
            return 0, error
        with contextlib.closing(samples):
            try:
                while samples.skip():
                    pass
            except BadSampleError as error:
                return samples.number, error
            return samples.number, None

    def first_sample(self, *, allow_pickle: bool = False) -> Any:
        """The first sample of the first shard that has any."""
        for sample in self._first_samples(allow_pickle):
            return sample
        raise ArgumentValueError(
            f"The data set at {self.url!r} is empty: its shards hold no samples."
        )

    def _first_samples(self, allow_pickle: bool) -> Iterator[Any]:
        for key in self.keys():
            with contextlib.closing(self.open(key, allow_pickle=allow_pickle)) as samples:
                sample = samples.next()
                if sample is not None:
                    yield sample


def _file_system(url: str, storage_options: Mapping[str, Any]) -> Any:
    try:
        import fsspec
    except ImportError as error:
        raise MissingDependencyError(
            f"Reading {url!r} needs fsspec: `pip install headrace-squirrel[remote]`."
        ) from error
    protocol = url.partition("://")[0] if "://" in url else "file"
    try:
        return fsspec.filesystem(**{"protocol": protocol, **storage_options})
    except ImportError as error:
        raise MissingDependencyError(
            f'Reading {url!r} needs the library of fsspec for "{protocol}": {error}.'
        ) from error
    except ValueError as error:
        raise ArgumentValueError(f"The address {url!r} is of no known kind: {error}.") from error
