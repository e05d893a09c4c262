"""Lists of files with labels: from folders, from a list file, or as given."""

from __future__ import annotations

import fnmatch
import glob
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BadSampleError,
    did_you_mean_file,
)
from headrace.kernels.cpu import text_lists
from headrace.kernels.cpu.packed_names import PackedNames
from headrace.operators.readers.kept_index import kept_arrays
from headrace.operators.readers.storage import file_size, file_system, is_remote, join, read_file
from headrace.operators.support.argument_types import PathArg, PathListArg, StringArg
from headrace.operators.support.schema import Arg
from headrace.progress import counted

IMAGE_AND_AUDIO_PATTERNS = (
    "*.jpg",
    "*.jpeg",
    "*.png",
    "*.bmp",
    "*.tif",
    "*.tiff",
    "*.pnm",
    "*.ppm",
    "*.pgm",
    "*.pbm",
    "*.jp2",
    "*.webp",
    "*.flac",
    "*.ogg",
    "*.wav",
)
"""File names that are looked for where none are asked for."""

_INT32 = np.iinfo(np.int32)


@dataclass(frozen=True, slots=True)
class FileListing:
    """Files with labels, in the order of their numbers."""

    root: str
    """Folder of names without a root of their own; empty for the working directory."""
    names: Sequence[str]
    labels: np.ndarray
    """int32, one for each name."""
    classes: Mapping[str, int] = field(default_factory=dict)
    """Labels by the names of classes, where these have names."""

    def relabelled(self, transform: Any) -> FileListing:
        """The same with labels that a function, or what has values by a key, makes of them.

        It is given the names of classes where these have names, and labels elsewhere.
        """
        keys: Mapping[Any, int] = self.classes
        known = np.unique(self.labels)
        if not keys:
            keys = {label: label for label in known.tolist()}
        found = {key: _new_label(transform, key) for key in keys}
        table = {keys[key]: label for key, label in found.items()}
        labels = np.array([table[label] for label in known.tolist()], np.int32)
        classes = {name: found[name] for name in self.classes}
        return replace(self, labels=labels[np.searchsorted(known, self.labels)], classes=classes)

    def path(self, number: int) -> str:
        """Path of file `number`."""
        return join(self.root, self.names[number])


def _new_label(transform: Any, key: Any) -> int:
    try:
        found = transform(key) if callable(transform) else transform[key]
    except (LookupError, TypeError) as error:
        if callable(transform):
            raise
        raise ArgumentValueError(
            f"`label_transform` has no label for the class {key!r}. Give it one, or leave the "
            "class out by `dir_filters`."
        ) from error
    if isinstance(found, bool) or not isinstance(found, (int, np.integer)):
        raise ArgumentTypeError(
            f"`label_transform` makes {found!r} of the class {key!r}; expected an integer."
        )
    return int(_to_labels([int(found)], f"that `label_transform` makes of {key!r}")[0])


def list_classes(
    root: str,
    *,
    file_filters: Sequence[str],
    dir_filters: Sequence[str] | None = None,
    case_sensitive: bool = False,
) -> FileListing:
    """Files in the sub-directories of `root`, each of which is a class.

    The sub-directories, sorted by name, get the labels 0, 1, ..., those without a matching file
    included. Within each the files are sorted by name. Deeper directories and files in `root`
    itself are left out.
    """
    if not file_filters:
        raise ArgumentValueError(
            "`file_filters` is empty, so no file could match; leave it out for the usual image "
            'and audio files, or give "*" for all files.'
        )
    if dir_filters is not None and not dir_filters:
        raise ArgumentValueError(
            "`dir_filters` is empty, so no directory could match; leave it out for all directories."
        )
    root = root.removeprefix("file://")
    scan = _scan_remote if is_remote(root) else _scan_local
    wanted = _matcher(file_filters, case_sensitive)
    wanted_directory = _matcher(dir_filters or ("*",), case_sensitive)
    try:
        classes = sorted(filter(wanted_directory, scan(root, directories=True)), key=os.fsencode)
        counts: list[int] = []

        def found() -> Iterator[list[str]]:
            for name in counted(classes, f"listing {root}", "directories", len(classes)):
                files = filter(wanted, scan(join(root, name), directories=False))
                part = [f"{name}/{file}" for file in sorted(files, key=os.fsencode)]
                counts.append(len(part))
                yield part

        names = PackedNames.of(found())
    except OSError as error:
        raise ArgumentValueError(
            f"`file_root`={root!r} cannot be listed: {error.strerror or error}"
            f"{f' ({error.filename!r})' if error.filename not in (None, root) else ''}."
            f"{did_you_mean_file(root)}"
        ) from error
    if not names:
        raise ArgumentValueError(
            f"No files found in the {len(classes)} sub-directories of `file_root`={root!r} that "
            f"match the patterns {', '.join(map(repr, file_filters))}. Files must lie in "
            "sub-directories of `file_root`, one for each class; `file_filters` sets the patterns."
        )
    labels = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    return FileListing(root, names, labels, {name: k for k, name in enumerate(classes)})


def read_file_list(path: str, root: str | None = None) -> FileListing:
    """The files that a text file lists, one line "name label" each.

    Blank lines are skipped. Spaces in front belong to a name, spaces after a label are ignored.
    """
    names, labels = _read_list(path, labelled=True)
    return FileListing(_directory_of(path) if root is None else root, names, labels)


def _read_list(path: str, *, labelled: bool) -> tuple[PackedNames, np.ndarray]:
    """The names in the lines of a text file, and the labels after them."""

    def find() -> dict[str, np.ndarray]:
        names, labels = _scanned_list(path, labelled=labelled)
        return {**names.arrays(), "labels": labels}

    arrays = kept_arrays(f"list {labelled}", [path], find)
    assert arrays is not None
    return PackedNames.of_arrays(arrays), arrays["labels"]


def _scanned_list(path: str, *, labelled: bool) -> tuple[PackedNames, np.ndarray]:
    data = _read_text("file_list", path)
    lines = text_lists.count_lines(data)
    begins, labels = np.empty(lines, np.int64), np.empty(lines if labelled else 0, np.int32)
    count, longest, remote, state, number, at = text_lists.scan_names(data, begins, labels)
    if state != text_lists.GOOD:
        content = data[at:-1].tobytes().partition(b"\n")[0]
        line = f"Line {number + 1} of `file_list`={path!r} is {os.fsdecode(content)!r}"
        if state == text_lists.TOO_WIDE:
            raise ArgumentValueError(f"{line}, whose label does not fit into 32 bits.")
        raise ArgumentValueError(
            f"{line}; expected the name of a file"
            f"{' followed by a space and its label, an integer' if labelled else ', without NUL'}."
        )
    if not count:
        raise ArgumentValueError(f"No files found: `file_list`={path!r} lists none.")
    if count < lines:  # their memory, too
        begins, labels = begins[:count].copy(), labels[:count].copy()
    return PackedNames(data, begins, longest, remote), labels


def _read_text(argument: str, path: str) -> np.ndarray:
    """The text file that an argument names, uint8, and one byte more."""
    whole: list[np.ndarray] = []

    def with_one_more(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
        whole.append(np.zeros(shape[0] + 1, dtype))
        return whole[0][:-1]

    try:
        read_file(path, with_one_more)
    except BadSampleError as error:
        raise ArgumentValueError(
            f"`{argument}` cannot be opened: {error}{did_you_mean_file(path)}"
        ) from error
    return whole[0]


def named_file_args(pattern: str) -> tuple[Arg, ...]:
    """The arguments of a reader that `named_files` looks at, with this `file_filter`."""
    return (
        Arg(
            "file_root",
            PathArg,
            None,
            "Directory with the files, in itself or in its sub-directories; with `files` or "
            "`file_list`, what their names are relative to.",
        ),
        Arg("file_filter", StringArg, pattern, "Pattern as in a shell that names must match."),
        Arg(
            "file_list",
            PathArg,
            None,
            "Text file with a name in each line, relative to `file_root`, or without it to the "
            "directory of the text file.",
        ),
        Arg("files", PathListArg, None, "The files to read, in this order."),
    )


def named_files(args: Any) -> tuple[str, Sequence[str]]:
    """The files that a reader is to read, and what their names are below.

    `args` are its arguments, among them `files`, `file_list`, `file_root` and `file_filter`.
    """
    if args.files is not None and args.file_list is not None:
        raise ArgumentValueError(
            "`files` and `file_list` both name the files to read; give one of them, not both."
        )
    if args.files is not None:
        if not args.files:
            raise ArgumentValueError("`files` is an empty list; give at least one file.")
        return args.file_root or "", list(args.files)
    if args.file_list is not None:
        return read_name_list(args.file_list, args.file_root)
    if args.file_root is not None:
        return args.file_root, list_files(args.file_root, args.file_filter)
    raise ArgumentValueError("No files to read: give `file_root`, `file_list` or `files`.")


def read_name_list(path: str, root: str | None) -> tuple[str, PackedNames]:
    """Read a text file with one name in each line: the folder they are relative to, and the
    names.
    """
    return _directory_of(path) if root is None else root, _read_list(path, labelled=False)[0]


def list_files(root: str, pattern: str) -> list[str]:
    """Files in `root` and in its sub-directories, but not deeper, that match a pattern.

    They are sorted by directory and name; those of `root` begin with ``./`` and come first.
    """
    root = root.removeprefix("file://")
    scan = _scan_remote if is_remote(root) else _scan_local
    wanted = _matcher((pattern,), True)
    try:
        folders = [".", *sorted(scan(root, directories=True), key=os.fsencode)]
        names = [
            f"{folder}/{name}"
            for folder in counted(folders, f"listing {root}", "folders", len(folders))
            for name in sorted(
                scan(join(root, folder) if folder != "." else root, directories=False),
                key=os.fsencode,
            )
            if wanted(name)
        ]
    except OSError as error:
        raise ArgumentValueError(
            f"`file_root`={root!r} cannot be listed: {error.strerror or error}."
            f"{did_you_mean_file(root)}"
        ) from error
    if not names:
        raise ArgumentValueError(
            f"No files found in `file_root`={root!r} and its sub-directories that match the "
            f"pattern {pattern!r}."
        )
    return names


def expanded(argument: str, patterns: Sequence[str]) -> list[str]:
    """The files that names stand for which may have braces and wildcards, as in a shell.

    Braces are written out in their order, and what matches a wildcard is sorted. A name that a
    local file has is taken as it is.
    """
    found = []
    for pattern in patterns:
        if not set(pattern) & set("{*?[") or os.path.exists(pattern.removeprefix("file://")):
            found.append(pattern)
            continue
        for name in braced(pattern):
            if not set(name) & set("*?[") or os.path.exists(name.removeprefix("file://")):
                found.append(name)
                continue
            matches = _glob(name)
            if not matches:
                raise ArgumentValueError(
                    f"No file matches {name!r} in `{argument}`.{did_you_mean_file(name)}"
                )
            found += matches
    return found


def _glob(pattern: str) -> list[str]:
    if is_remote(pattern):
        system, inside = file_system(pattern)
        return sorted(map(system.unstrip_protocol, system.glob(inside)))
    return sorted(glob.glob(pattern.removeprefix("file://"), recursive=True), key=os.fsencode)


_RANGE = re.compile(r"\{(-?\d{1,9})\.\.(-?\d{1,9})(?:\.\.-?(\d{1,9}))?\}")


def braced(pattern: str) -> list[str]:
    """Expand braces as a shell does: ``{000..002}``, ``{0..8..2}``, ``{train,val}``."""
    for opening in re.finditer(r"\{", pattern):
        begin, depth = opening.start(), 0
        cuts = [begin]
        for at, character in enumerate(pattern[begin:], begin):
            depth += {"{": 1, "}": -1}.get(character, 0)
            if depth == (character == ","):
                cuts.append(at)
            if not depth:
                break
        if depth:
            continue
        if len(cuts) > 2:
            options = [o for a, b in pairwise(cuts) for o in braced(pattern[a + 1 : b])]
        elif numbers := _RANGE.fullmatch(pattern, begin, cuts[-1] + 1):
            options = _counted(*numbers.groups())
        else:
            continue
        ends = braced(pattern[cuts[-1] + 1 :])
        return [pattern[:begin] + option + end for option in options for end in ends]
    return [pattern]


def _counted(first: str, last: str, step: str | None) -> list[str]:
    """Numbers from `first` to `last`, of equal width where one of them begins with 0."""
    low, high, by = int(first), int(last), int(step or 1) or 1
    padded = any(len(word) > 1 and word.lstrip("-")[0] == "0" for word in (first, last))
    width = max(len(first), len(last)) if padded else 0
    numbers = range(low, high + 1, by) if low <= high else range(low, high - 1, -by)
    return [f"{number:0{width}}" for number in numbers]


def read_lines(argument: str, path: str) -> list[str]:
    """The lines of the text file that an argument names."""
    try:
        content = bytes(read_file(path, np.empty))
    except BadSampleError as error:
        raise ArgumentValueError(
            f"`{argument}` cannot be opened: {error}{did_you_mean_file(path)}"
        ) from error
    return content.decode("utf-8", "surrogateescape").split("\n")


def container_size(path: str) -> int:
    """Bytes of a file of records that `path` names."""
    try:
        return file_size(path)
    except BadSampleError as error:
        raise ArgumentValueError(
            f"`path` cannot be opened: {error}{did_you_mean_file(path)}"
        ) from error


def read_index(path: str, meaning: str) -> np.ndarray:
    """The pairs of numbers, int64 ``(lines, 2)``, that are in the lines of an index file."""
    data = _read_text("index_path", path)[:-1]
    pairs = np.empty((text_lists.count_lines(data), 2), np.int64)
    count, wrong = text_lists.scan_pairs(data, pairs)
    if wrong >= 0:
        line = os.fsdecode(data.tobytes().split(b"\n")[wrong])
        raise ArgumentValueError(
            f"Line {wrong + 1} of `index_path`={path!r} is {line!r}; expected two numbers, "
            f"{meaning}."
        )
    return pairs[:count]


def _directory_of(path: str) -> str:
    return path.rpartition("/")[0] or ("/" if path.startswith("/") else "")


def given_files(
    files: Sequence[str], labels: Sequence[int] | None = None, root: str | None = None
) -> FileListing:
    """The files a user named; without `labels` they are numbered."""
    if not files:
        raise ArgumentValueError("`files` is an empty list; give at least one file.")
    if labels is None:
        numbers = np.arange(len(files), dtype=np.int32)
    elif len(labels) != len(files):
        raise ArgumentValueError(
            f"`labels` has {len(labels)} values for the {len(files)} `files`; give one for each."
        )
    else:
        numbers = _to_labels(labels, "in `labels`")
    return FileListing(root or "", files, numbers)


def _to_labels(labels: Sequence[int], where: str) -> np.ndarray:
    wide = [value for value in labels if not _INT32.min <= value <= _INT32.max]
    if wide:
        raise ArgumentValueError(f"The label {wide[0]} {where} does not fit into 32 bits.")
    return np.array(labels, np.int32)


def _scan_local(directory: str, *, directories: bool) -> list[str]:
    with os.scandir(directory) as entries:
        if directories:
            return [entry.name for entry in entries if entry.is_dir()]
        # A link that leads nowhere is listed as well: that a file is missing should be seen.
        return [
            entry.name
            for entry in entries
            if entry.is_file() or (entry.is_symlink() and not entry.is_dir())
        ]


def _scan_remote(directory: str, *, directories: bool) -> list[str]:
    system, path = file_system(directory)
    wanted = "directory" if directories else "file"
    names = (
        entry["name"].rstrip("/").rpartition("/")[2]
        for entry in system.ls(path, detail=True)
        if entry["type"] == wanted
    )
    return [name for name in names if name]


def _matcher(patterns: Sequence[str], case_sensitive: bool) -> Callable[[str], object]:
    """A function that tells whether a name matches one of `patterns`."""
    fold = str if case_sensitive else str.lower
    folded = [fold(pattern) for pattern in patterns]
    endings = tuple(p[1:] for p in folded if p[:1] == "*" and not set(p[1:]) & set("*?[\\"))
    if len(endings) == len(folded):  # by far the most usual, and many times faster
        if case_sensitive:
            return lambda name: name.endswith(endings)
        return lambda name: name.lower().endswith(endings)
    expression = re.compile("|".join(fnmatch.translate(_to_python(p)) for p in folded))
    return lambda name: expression.match(fold(name))


def _to_python(pattern: str) -> str:
    """A POSIX pattern in Python's notation, which has ``[!...]`` only and no backslash."""
    pattern = re.sub(r"\\(.)", lambda m: f"[{m[1]}]" if m[1] not in "^!" else m[1], pattern)
    return pattern.replace("[^", "[!")


def within(path: str, ending: str) -> list[str]:
    """The files in a folder, at any depth, whose names end so, sorted; else `path` itself."""
    is_folder = os.path.isdir(path.removeprefix("file://"))
    if is_remote(path) and not path.endswith(ending):
        system, inside = file_system(path)
        is_folder = system.isdir(inside)
    if not is_folder:
        return [path]
    pattern = f"{glob.escape(path.rstrip('/'))}/**/*{ending}"
    matches = _glob(pattern)
    if not matches:
        raise ArgumentValueError(f"The folder {path!r} has no files whose names end in {ending!r}.")
    return matches
