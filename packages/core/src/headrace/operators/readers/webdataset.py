"""`readers.webdataset`: samples in tar archives."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import repeat
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.kernels.cpu import tar_headers
from headrace.kernels.cpu.packed_names import PackedNames
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import expanded
from headrace.operators.readers.storage import is_remote
from headrace.operators.readers.tar_shards import (
    ArchiveMember,
    Members,
    all_members,
    indexed_samples,
    samples_of,
)
from headrace.operators.support.argument_types import (
    BoolArg,
    DataTypeListArg,
    PathListArg,
    StringArg,
    StringListArg,
)
from headrace.operators.support.contexts import ChunkContext
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.tensors.rows import Rows
from headrace.tracebacks import stack_level
from headrace.types import DALIDataType, to_numpy_type

_SUPPORTED = tuple(t for t in DALIDataType if t.name.startswith(("UINT", "INT", "FLOAT", "BOOL")))


def _count_outputs(args: dict[str, Any]) -> int:
    given = args["ext"]
    return len(given) if isinstance(given, (list, tuple)) else 1


class _TarIndex(FileIndex):
    """Components of samples, by their names; errors name the first that a sample has.

    `members`: int64 ``(entries, pieces)``: which of `names` each piece has, or -1.
    """

    own_sources = True

    def __init__(
        self, paths: Any, names: Sequence[str], members: np.ndarray, **places: Any
    ) -> None:
        super().__init__(paths, **places)
        self._names = names
        self._members = members

    def keys_of(self, entries: np.ndarray) -> list[str]:
        """Names of samples: all before the first dot of the name of a component."""
        found = []
        for entry in entries.tolist():
            has = self._members[entry]
            folder, slash, file = self._names[int(has[has >= 0][0])].rpartition("/")
            found.append(folder + slash + file.partition(".")[0])
        return found

    def source(self, entry: int) -> str:
        has = np.flatnonzero(self._members[entry] >= 0)
        return self._named(entry, int(has[0]) if len(has) else 0)

    def piece_sources(self, piece: int, entries: Sequence[int]) -> list[str]:
        return [self._named(e, piece) if self._members[e, piece] >= 0 else "" for e in entries]

    def _named(self, entry: int, piece: int) -> str:
        file, offset, _ = self._place(entry * len(self.specs) + piece)
        member = int(self._members[entry, piece])
        return f"{self.paths[file]}:{offset}:{self._names[member] if member >= 0 else ''}"


class _Grouped(NamedTuple):
    """The samples of an archive: for each, which member is each component, and its first one."""

    places: np.ndarray
    names: PackedNames
    members: np.ndarray
    firsts: np.ndarray


def _check_offsets(
    paths: Sequence[str], index_paths: Sequence[str], files: np.ndarray, offsets: np.ndarray
) -> None:
    """Check that components begin within their archives, of those that are local files."""
    for file, path in enumerate(paths):
        if is_remote(path) or not os.path.exists(path):
            continue
        found = offsets[files == file].max(initial=-1)
        if found >= os.path.getsize(path):
            raise ArgumentValueError(
                f"Malformed index file {index_paths[file]!r}: offset is outside of the archive "
                f"file: {found} of {path!r}, which has {os.path.getsize(path)} bytes."
            )


def _some(paths: Sequence[str]) -> str:
    """The first of several files, and how many more there are."""
    more = f" and {len(paths) - 1} more" if len(paths) > 1 else ""
    return f"{paths[0]!r}{more}"


@reader(
    "readers.webdataset",
    args=(
        Arg(
            "paths",
            PathListArg,
            REQUIRED,
            "The archives. Names may have wildcards and braces, as in a shell: "
            "``train/*.tar``, ``train-{000..127}.tar``.",
        ),
        Arg(
            "ext",
            StringListArg,
            REQUIRED,
            "For each output the extension of its component, which is all after the first dot of "
            "a name; or several, separated by ``;``, of which the first in the archive is taken.",
        ),
        Arg(
            "index_paths",
            PathListArg,
            None,
            "For each archive a file with the places of its components, as the command ``wds2idx`` "
            "makes them; wildcards and braces as in `paths`. Without it the headers of all files "
            "in the archives are read.",
        ),
        Arg(
            "missing_component_behavior",
            StringArg,
            "",
            'Treatment of samples that lack a component: ``"empty"``, also if not given, makes '
            'its output empty; ``"skip"`` leaves the sample out; ``"error"`` raises.',
        ),
        Arg("dtypes", DataTypeListArg, None, "Element types of the outputs; UINT8 if not given."),
        Arg("case_sensitive_extensions", BoolArg, True, "Whether the case of letters matters."),
    ),
    num_outputs=_count_outputs,
    output_docs=("Content of the component, 1-D.",),
)
class WebdatasetReader(Reader):
    """Reads samples from tar archives in the form of WebDataset.

    Files in a row whose names are the same up to the first dot are the components of a sample.

    Examples
    --------
    >>> encoded, labels = fn.readers.webdataset(paths=["0.tar", "1.tar"], ext=["jpg;png", "cls"])
    """

    permutes = False
    chunks_light = True

    def list_entries(self) -> Index:
        args = self.args
        behavior = args.missing_component_behavior.lower() or "empty"
        if behavior not in ("empty", "skip", "error"):
            raise ArgumentValueError(
                "Invalid value for missing_component_behavior: "
                f"{args.missing_component_behavior!r}; possible values are skip, error, empty."
            )
        paths = expanded("paths", args.paths)
        indices = expanded("index_paths", args.index_paths or ())
        if indices and len(indices) != len(paths):
            raise ArgumentValueError(
                "The number of index files, if any, must match the number of archives in the "
                f"dataset: there are {len(indices)} `index_paths` for {len(paths)} `paths`."
            )
        for each in args.dtypes or ():
            if each not in _SUPPORTED:
                raise ArgumentValueError(
                    f"Unsupported output dtype {each.name}. Supported types are "
                    f"{', '.join(known.name for known in _SUPPORTED)}."
                )
        if args.dtypes is not None and len(args.dtypes) != len(args.ext):
            raise ArgumentValueError(
                "Number of extensions does not match the number of provided types: there are "
                f"{len(args.ext)} outputs in `ext` and {len(args.dtypes)} `dtypes`."
            )
        wanted: list[tuple[str, int]] = []
        for number, each in enumerate(args.ext):
            wanted += [(extension, number) for extension in each.split(";")]
        scanned: Sequence[Members | None] = [None] * len(paths)
        if not indices:
            scanned = all_members(paths)
        with ThreadPoolExecutor(min(len(paths), os.cpu_count() or 1, 8)) as pool:
            grouped = partial(self._grouped, wanted)
            found = list(pool.map(grouped, paths, indices or repeat(None), scanned))
        files, kept = [], []
        lacking: dict[int, list[str]] = {}
        """Of outputs, the archives that have samples, but none with the component."""
        for file, (path, each) in enumerate(zip(paths, found, strict=True)):
            missing = each.members < 0
            for number in np.flatnonzero(missing.all(axis=0)).tolist() if len(missing) else ():
                lacking.setdefault(number, []).append(path)
            bad = np.flatnonzero(missing.any(axis=1) & (behavior != "empty"))
            if len(bad) and behavior == "error":
                first, lacks = int(each.firsts[bad[0]]), int(missing[bad[0]].argmax())
                raise ArgumentValueError(
                    f"Underful sample detected at {each.names[first] or each.places[first, 0]} in "
                    f"{path!r}: it lacks the component {args.ext[lacks]!r}. "
                    '`missing_component_behavior` can be "empty" or "skip".'
                )
            kept.append(np.delete(each.members, bad, axis=0))
            files.append(np.full(len(kept[-1]), file))
        if not sum(map(len, kept)):
            raise ArgumentValueError(
                f"No samples found in `paths`={_some(paths)} that have all components: "
                f"{', '.join(map(repr, args.ext))} (`ext`)."
            )
        for number, those in sorted(lacking.items()):
            warnings.warn(
                f"`{self.schema.name}`: no sample of {_some(those)} has a component "
                f"{args.ext[number]!r} (`ext`), which is all that is after the first dot of a "
                f"name; samples there are {'left out' if behavior == 'skip' else 'empty'}.",
                UserWarning,
                stacklevel=stack_level(),
            )
        return self._joined(paths, indices, np.concatenate(files), kept, found)

    def _joined(
        self,
        paths: list[str],
        indices: list[str],
        files: np.ndarray,
        kept: list[np.ndarray],
        found: list[_Grouped],
    ) -> Index:
        """The index of the samples of all archives."""
        counts = np.cumsum([0, *[len(each.places) for each in found]])
        members = np.concatenate(
            [np.where(m < 0, m, m + begin) for m, begin in zip(kept, counts, strict=False)]
        )
        places = np.concatenate([each.places for each in found])[members]
        places[members < 0] = 0
        every = np.repeat(files[:, np.newaxis], members.shape[1], axis=1)
        if indices:
            _check_offsets(paths, indices, every, places[..., 0])
        names = PackedNames.joined([each.names for each in found])
        return _TarIndex(
            paths, names, members, files=every, offsets=places[..., 0], sizes=places[..., 1]
        )

    def _grouped(
        self, wanted: list[tuple[str, int]], path: str, index: str | None, found: Members | None
    ) -> _Grouped:
        """The samples of an archive."""
        folds, width = not self.args.case_sensitive_extensions, len(self.args.ext)
        plain = all(extension.isascii() or not folds for extension, _ in wanted)
        if found is not None and plain:
            count = len(found.places)
            packed = PackedNames.of([[extension for extension, _ in wanted]])
            outputs = np.array([output for _, output in wanted])
            members, firsts = np.empty((count, width), np.int64), np.empty(count, np.int64)
            samples = tar_headers.group_members(
                *(found.names.text, found.names.begins),
                *(packed.text, packed.begins, outputs, folds, members, firsts),
            )
            return _Grouped(*found, members[:samples].copy(), firsts[:samples].copy())
        fold = str.lower if folds else str
        components: list[ArchiveMember] = []
        rows: list[list[int]] = []
        begun: list[int] = []
        for sample in samples_of(path) if index is None else indexed_samples(index):
            row = [-1] * width
            for number, component in enumerate(sample, len(components)):
                for extension, output in wanted:
                    if row[output] < 0 and fold(extension) == fold(component.extension):
                        if component.is_sparse:
                            raise ArgumentValueError(
                                f"The file {component.name!r} in the archive {path!r} is stored "
                                "with holes: pack it without `tar --sparse`."
                            )
                        row[output] = number
            begun.append(len(components))
            rows.append(row)
            components += sample
        return _Grouped(
            np.array([(c.offset, c.size) for c in components], np.int64).reshape(-1, 2),
            PackedNames.of([[c.name for c in components]]),
            np.array(rows, np.int64).reshape(-1, width),
            np.array(begun, np.int64),
        )

    @property
    def parses(self) -> bool:
        """True if components are more than bytes."""
        return any(each != DALIDataType.UINT8 for each in self.args.dtypes or ())

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        types = self.args.dtypes or (DALIDataType.UINT8,) * len(data)
        self._types = [np.dtype(to_numpy_type(each)) for each in types]
        return tuple([Spec(each, 1) for each in types])

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, ...]:
        found = []
        for number, (component, dtype) in enumerate(zip(data, self._types, strict=True)):
            if component.size % dtype.itemsize:
                raise BadSampleError(
                    f"component size and dtype incompatible: {self.args.ext[number]!r} has "
                    f"{component.size} bytes, which are no whole number of elements of type "
                    f"{dtype} (`dtypes`)."
                )
            found.append(component.view(dtype))
        return tuple(found)

    def chunk_kind(self) -> Any:
        return self._types

    def cpu_chunk(self, c: ChunkContext, *data: Rows) -> tuple[Rows, ...] | None:
        found = []
        for rows, dtype in zip(data, self._types, strict=True):
            size, flat, begins = dtype.itemsize, rows.flat, rows.begins
            if flat is None or begins is None or (begins % size).any() or (rows.sizes % size).any():
                return None
            flat = flat[: len(flat) // size * size].view(dtype)
            found.append(Rows.of_memory(flat, begins // size, rows.shapes // size))
        return tuple(found)
