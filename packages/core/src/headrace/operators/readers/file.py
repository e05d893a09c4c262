"""`readers.file`: files and their labels."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.errors import ArgumentValueError, MisusedArgumentError
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import (
    IMAGE_AND_AUDIO_PATTERNS,
    given_files,
    list_classes,
    read_file_list,
)
from headrace.operators.support.argument_types import (
    BoolArg,
    IntListArg,
    ObjectArg,
    PathArg,
    PathListArg,
    StringListArg,
)
from headrace.operators.support.schema import Arg


@reader(
    "readers.file",
    old_names=("file_reader",),
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
            "extensions",
            StringListArg,
            None,
            "Extensions of files, such as ``jpg``, in place of `file_filters`: of those in the "
            "sub-directories of `file_root`, files with another one are left out.",
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
            "Whether the case of letters matters in `file_filters`, `extensions` and "
            "`dir_filters`.",
        ),
        Arg(
            "label_transform",
            ObjectArg,
            None,
            "Labels to give in place of the usual ones: a function, a dict or a list. It is given "
            "the name of a sub-directory with `file_root` alone, and else the label.",
        ),
    ),
    num_outputs=2,
    output_docs=("Content of the file, 1-D, uint8.", "Label, int32, shape (1,)."),
)
class FileReader(Reader):
    """Reads whole files and gives their content and a label.

    The files are named in one of three ways:

    * by `file_root` alone: each of its sub-directories, sorted by name, is a class, and its number
      the label of all files in it that match `file_filters`;
    * by `file_list`, a text file with the name and the label of one file in each line;
    * by `files` and, if wanted, `labels`.

    ``Pipeline.reader_meta(name).classes`` has the labels by the names of sub-directories.

    Names may be addresses such as ``s3://bucket/folder``, which are read through fsspec.
    """

    def list_entries(self) -> Index:
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
            found = given_files(args.files, args.labels, args.file_root)
        elif args.file_list is not None:
            found = read_file_list(args.file_list, args.file_root)
        elif args.file_root is not None:
            found = list_classes(
                args.file_root,
                file_filters=self._filters(),
                dir_filters=args.dir_filters,
                case_sensitive=args.case_sensitive_filter,
            )
        else:
            raise ArgumentValueError("No files to read: give `file_root`, `file_list` or `files`.")
        if args.label_transform is not None:
            found = found.relabelled(args.label_transform)
        index = FileIndex(
            found.names,
            root=found.root,
            columns=(found.labels[:, np.newaxis],),
            allows_empty=bool(args.dont_use_mmap),
        )
        index.labels, index.classes = found.labels, found.classes
        return index

    def _filters(self) -> Sequence[str]:
        """Patterns of the names of files."""
        given = self.args.extensions
        if given is None:
            return tuple(self.args.file_filters)
        if tuple(self.args.file_filters) != IMAGE_AND_AUDIO_PATTERNS:
            raise MisusedArgumentError(
                "`extensions` and `file_filters` both say which files are read; give one of them."
            )
        special = [each for each in given if not each.strip(".") or set(each) & set("*?[\\/")]
        if special or not given:
            raise ArgumentValueError(
                f"`extensions` is {list(given)}; expected extensions such as 'jpg' or '.tar.gz', "
                "at least one. `file_filters` takes patterns."
            )
        return [f"*.{each.removeprefix('.')}" for each in given]
