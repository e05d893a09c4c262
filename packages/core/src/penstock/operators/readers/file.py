"""`readers.file`: files and their labels."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from penstock._forking import no_fork
from penstock.errors import ArgumentValueError, BadSampleError
from penstock.operators.readers.base import Reader, reader
from penstock.operators.readers.listing import (
    IMAGE_AND_AUDIO_PATTERNS,
    FileListing,
    given_files,
    list_classes,
    read_file_list,
)
from penstock.operators.readers.storage import Allocate, read_file, read_together
from penstock.operators.support.argument_types import (
    BoolArg,
    IntListArg,
    PathArg,
    PathListArg,
    StringListArg,
)
from penstock.operators.support.registry import register
from penstock.operators.support.schema import Arg, Spec
from penstock.tensors.pool import HOST_POOL
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.kernels.cpu.reading_threads import FileNames
    from penstock.operators.support.operator import SampleContext


@reader(
    "readers.file",
    args=(
        Arg(
            "file_root",
            PathArg,
            None,
            "Directory whose sub-directories are the classes; with `files` or `file_list`, what "
            "their names are relative to.",
        ),
        Arg(
            "file_list",
            PathArg,
            None,
            'Text file with lines "name label". Names are relative to `file_root`, or without it '
            "to the directory of the text file.",
        ),
        Arg("files", PathListArg, None, "The files to read, in this order."),
        Arg(
            "labels",
            IntListArg,
            None,
            "Labels of `files`; without them the files are numbered from 0.",
        ),
        Arg(
            "file_filters",
            StringListArg,
            IMAGE_AND_AUDIO_PATTERNS,
            "Patterns as in a shell; files in the sub-directories of `file_root` must match one.",
        ),
        Arg(
            "dir_filters",
            StringListArg,
            None,
            "Patterns as in a shell; sub-directories of `file_root` must match one. Labels count "
            "those that do.",
        ),
        Arg(
            "case_sensitive_filter",
            BoolArg,
            False,
            "Whether the case of letters matters in `file_filters` and `dir_filters`.",
        ),
    ),
    num_outputs=2,
    output_docs=(
        "Content of the file, 1-D, uint8.",
        "Label, int32, shape (1,).",
    ),
)
class FileReader(Reader):
    """Reads whole files and gives their content and a label.

    The files are named in one of three ways:

    * by `file_root` alone: each of its sub-directories, sorted by name, is a class, and its number
      the label of all files in it that match `file_filters`;
    * by `file_list`, a text file with the name and the label of one file in each line;
    * by `files` and, if wanted, `labels`.

    Names may be addresses such as ``s3://bucket/folder``, which are read through fsspec.
    """

    _listing: FileListing

    def find_samples(self) -> int:
        args = self.args
        if args.files is not None and args.file_list is not None:
            raise ArgumentValueError(
                "`files` and `file_list` both name the files to read; give one of them, not both."
            )
        if args.labels is not None and args.files is None:
            raise ArgumentValueError(
                "`labels` are given without `files`, which they belong to. Labels of a "
                "`file_list` are in its lines, those of `file_root` are numbers of directories."
            )
        if args.files is not None:
            self._listing = given_files(args.files, args.labels, args.file_root)
        elif args.file_list is not None:
            self._listing = read_file_list(args.file_list, args.file_root)
        elif args.file_root is not None:
            self._listing = list_classes(
                args.file_root,
                file_filters=args.file_filters,
                dir_filters=args.dir_filters,
                case_sensitive=args.case_sensitive_filter,
            )
        else:
            raise ArgumentValueError("No files to read: give `file_root`, `file_list` or `files`.")
        return len(self._listing.names)

    def local_files(self) -> FileNames | None:
        return self._local_files

    @cached_property
    def _local_files(self) -> FileNames | None:
        with no_fork:
            from penstock.kernels.cpu.reading_threads import FileNames

        return FileNames.of(self._listing.names, self._listing.root)

    @property
    def allows_empty(self) -> bool:
        return bool(self.args.dont_use_mmap)

    def infer(self, *inputs: Spec) -> tuple[Spec, Spec]:
        return Spec(DALIDataType.UINT8, 1), Spec(DALIDataType.INT32, 1)

    def source_info(self, entry: int) -> str:
        return self._listing.names[entry]

    def source_infos(self, entries: Sequence[int]) -> list[str]:
        names = self._listing.names
        return [names[entry] for entry in entries]

    def load_ahead(
        self,
        entries: Sequence[int],
        empty: Allocate = HOST_POOL.empty,
        free: np.ndarray | None = None,
    ) -> list[np.ndarray | None]:
        found = read_together(self._listing.paths(entries), empty, free)
        if self.args.dont_use_mmap:
            return found
        # `load` says what is wrong with an empty file.
        return [data if data is not None and data.size else None for data in found]

    def load_others(self, entries: Sequence[int] | np.ndarray) -> tuple[np.ndarray, ...]:
        return (self._listing.labels[entries, np.newaxis],)

    def load(self, c: SampleContext, entry: int) -> tuple[np.ndarray, ...]:
        listing = self._listing
        ahead: np.ndarray | None = getattr(c, "ahead", None)
        if ahead is None:
            data = read_file(listing.path(entry), c.empty)
        else:
            data = c.adopt(ahead)  # type: ignore[attr-defined]
        if not data.size and not self.args.dont_use_mmap:
            raise BadSampleError(
                f"The file {listing.path(entry)!r} is empty. `dont_use_mmap=True` lets empty files "
                "through."
            )
        return data, listing.labels[entry : entry + 1]


register(FileReader.schema.with_name("file_reader", deprecated="readers.file", hidden=True))
