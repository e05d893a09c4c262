"""`readers.webdataset`: samples in tar archives."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import expanded
from headrace.operators.readers.storage import is_remote
from headrace.operators.readers.tar_shards import Component, indexed_samples, samples_of
from headrace.operators.support.argument_types import (
    BoolArg,
    DataTypeListArg,
    PathListArg,
    StringArg,
    StringListArg,
)
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.types import DALIDataType, to_numpy_type

_SUPPORTED = tuple(t for t in DALIDataType if t.name.startswith(("UINT", "INT", "FLOAT", "BOOL")))


def _count_outputs(args: dict[str, Any]) -> int:
    given = args["ext"]
    return len(given) if isinstance(given, (list, tuple)) else 1


class _TarIndex(FileIndex):
    """Components of samples, by their names; errors name the first that a sample has."""

    own_sources = True

    def __init__(self, paths: Any, names: list[list[str | None]], **places: Any) -> None:
        super().__init__(paths, **places)
        self._names = names

    def source(self, entry: int) -> str:
        names = self._names[entry]
        first = next((k for k, name in enumerate(names) if name is not None), 0)
        return self._named(entry, first)

    def piece_sources(self, piece: int, entries: Sequence[int]) -> list[str]:
        has = [self._names[entry][piece] is not None for entry in entries]
        return [self._named(e, piece) if h else "" for e, h in zip(entries, has, strict=True)]

    def _named(self, entry: int, piece: int) -> str:
        file, offset, _ = self._place(entry * len(self.specs) + piece)
        return f"{self.paths[file]}:{offset}:{self._names[entry][piece] or ''}"


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
        if args.dtypes is not None and len(args.dtypes) != len(args.ext):
            raise ArgumentValueError(
                "Number of extensions does not match the number of provided types: there are "
                f"{len(args.ext)} outputs in `ext` and {len(args.dtypes)} `dtypes`."
            )
        fold = str if args.case_sensitive_extensions else str.lower
        outputs: dict[str, list[int]] = {}
        for number, each in enumerate(args.ext):
            for extension in fold(each).split(";"):
                outputs.setdefault(extension, []).append(number)
        places: list[list[tuple[int, int, int]]] = []
        names: list[list[str | None]] = []
        lacking: dict[int, list[str]] = {}
        """Of outputs, the archives that have samples, but none with the component."""
        for file, path in enumerate(paths):
            never = set(range(len(args.ext)))
            sample: list[Component] = []
            for sample in indexed_samples(indices[file]) if indices else samples_of(path):
                row = [(file, 0, 0)] * len(args.ext)
                missing = set(range(len(args.ext)))
                own: list[str | None] = [None] * len(args.ext)
                for component in sample:
                    for number in outputs.get(fold(component.extension), ()):
                        if number in missing:
                            if component.is_sparse:
                                raise ArgumentValueError(
                                    f"The file {component.name!r} in the archive {path!r} is "
                                    "stored with holes: pack it without `tar --sparse`."
                                )
                            missing.remove(number)
                            row[number] = (file, component.offset, component.size)
                            own[number] = component.name
                never &= missing
                if missing and behavior == "skip":
                    continue
                if missing and behavior == "error":
                    raise ArgumentValueError(
                        f"Underful sample detected at {sample[0].name or sample[0].offset} in "
                        f"{path!r}: it lacks the component {args.ext[min(missing)]!r}. "
                        '`missing_component_behavior` can be "empty" or "skip".'
                    )
                places.append(row)
                names.append(own)
            for number in never if sample else ():
                lacking.setdefault(number, []).append(path)
        if not places:
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
                stacklevel=2,
            )
        files, offsets_of, sizes = np.array(places, np.int64).transpose(2, 0, 1)
        if indices:
            _check_offsets(paths, indices, files, offsets_of)
        return _TarIndex(paths, names, files=files, offsets=offsets_of, sizes=sizes)

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        types = self.args.dtypes or (DALIDataType.UINT8,) * len(data)
        for each in types:
            if each not in _SUPPORTED:
                raise ArgumentValueError(
                    f"Unsupported output dtype {each.name}. Supported types are "
                    f"{', '.join(known.name for known in _SUPPORTED)}."
                )
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
