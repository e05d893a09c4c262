"""Loops over the headers of tar archives, and over the names of their members.

Only what is plain is understood: regular files, folders and links, with long names of GNU's and of
POSIX's. What is not, or is damaged, is left to `tarfile`, which says what is wrong.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.reading_loop import _END, _FLAGS, _close, _open, _read, _seek

DONE, FULL, ODD = range(3)
"""States of a scan: at the end; there was no more room; something that is left to `tarfile`."""

_BLOCK = 512
_WINDOW = 1 << 14
_ROOM = 1 << 13
"""Longest name and record that are looked at."""
_SIZE, _SUM, _TYPE, _PREFIX = 124, 148, 156, 345
_ZERO, _SEVEN, _NINE, _SLASH, _DOT, _EQUALS, _SPACE, _NEWLINE = 48, 55, 57, 47, 46, 61, 32, 10
_FOLDER, _LINKS, _LONG_NAME, _RECORDS = 53, (49, 50), 76, 120  # "5", "1" and "2", "L", "x"


@njit(nogil=True)
def _number(header: np.ndarray, begin: int, length: int) -> Any:
    """A number in octal digits, or in binary ones where it is too large; -1 if it is neither."""
    at, end = begin, begin + length
    found = np.int64(0)
    if header[begin] == 0x80:
        for k in range(begin + 1, end):
            if found >> 54:
                return np.int64(-1)
            found = found << 8 | header[k]
        return found
    while at < end and header[at] == _SPACE:
        at += 1
    while at < end and _ZERO <= header[at] <= _SEVEN:
        found = found << 3 | (header[at] - _ZERO)
        at += 1
    while at < end:
        if header[at] != _SPACE and header[at] != 0:
            return np.int64(-1)
        at += 1
    return found


@njit(nogil=True)
def _is_whole(window: np.ndarray, head: int) -> bool:
    """True if the check sum of a header is right."""
    total = 8 * _SPACE
    for k in range(_BLOCK):
        if k < _SUM or k >= _TYPE:
            total += window[head + k]
    return _number(window, head + _SUM, 8) == total


@njit(nogil=True)
def _copied(source: np.ndarray, begin: int, end: int, text: np.ndarray, at: int) -> Any:
    """Copy up to a NUL; where the copy ends."""
    for k in range(begin, end):
        if source[k] == 0:
            break
        text[at] = source[k]
        at += 1
    return at


@njit(nogil=True)
def _read_records(records: np.ndarray, size: int, name: np.ndarray, known: np.ndarray) -> bool:
    """Find name and size in the records of POSIX; `known`: their length and the size, or -1."""
    at = 0
    while at < size and records[at] != 0:
        length, k = 0, at
        while k < size and _ZERO <= records[k] <= _NINE and length < size:
            length = 10 * length + records[k] - _ZERO
            k += 1
        end = at + length
        if k == at or length < 5 or end > size or records[k] != _SPACE:
            return False
        if records[end - 1] != _NEWLINE:
            return False
        key = k + 1
        equals = key
        while equals < end and records[equals] != _EQUALS:
            equals += 1
        letters = equals - key
        if letters == 4 and records[key] == 112 and records[key + 1] == 97:  # "path"
            if records[key + 2] != 116 or records[key + 3] != 104:
                return False
            known[0] = _copied(records, equals + 1, end - 1, name, 0)
            if known[0] != end - equals - 2:
                return False
            while known[0] > 0 and name[known[0] - 1] == _SLASH:
                known[0] -= 1
        elif letters == 4 and records[key] == 115 and records[key + 1] == 105:  # "size"
            known[1] = 0
            for d in range(equals + 1, end - 1):
                if not _ZERO <= records[d] <= _NINE or known[1] >> 54:
                    return False
                known[1] = 10 * known[1] + records[d] - _ZERO
        elif records[key] == 71 or records[key] == 104:  # "GNU.sparse...", "hdrcharset"
            return False
        at = end
    return True


@njit(nogil=True)
def scan_headers(
    path: np.ndarray, start: int, places: np.ndarray, text: np.ndarray, begins: np.ndarray
) -> Any:
    """Find the regular files in an archive from a header on.

    Parameters
    ----------
    path
        uint8, with a NUL after it.
    start
        Where the header is.
    places
        int64 ``(room, 2)``: filled with where files begin, and their sizes.
    text, begins
        uint8; and int64 ``(room,)``: filled with their names, a NUL after each, and where in the
        text these begin.

    Returns
    -------
    How many files there are, the bytes of their names, a state, and where the next header is.
    """
    count, used, at = 0, 0, np.int64(start)
    descriptor = _open(path.ctypes.data, _FLAGS, 0)
    if descriptor < 0:
        return count, used, ODD, at
    end: Any = _seek(descriptor, 0, _END)
    window, name, records = (
        np.empty(_WINDOW, np.uint8),
        np.empty(_ROOM, np.uint8),
        np.empty(_ROOM, np.uint8),
    )
    known = np.empty(2, np.int64)
    known[0], known[1] = -1, -1
    first, filled, wanted = np.int64(0), np.int64(0), np.int64(_WINDOW)
    member, state = at, DONE
    while True:
        if known[0] < 0 and known[1] < 0:
            member = at  # a scan goes on from before what belongs to a member
        if at >= end:
            state = DONE if at == end else ODD
            break
        if at < first or at + _BLOCK > first + filled:
            first = at
            filled = _read(descriptor, window.ctypes.data, wanted, at)
        if filled < at - first + _BLOCK:
            state = ODD
            break
        head = at - first
        if window[head] == 0:
            # Two blocks of zeros, or one and nothing more, are the end; `tarfile` looks at others.
            empty = True
            for k in range(_BLOCK):
                empty &= window[head + k] == 0
            if at + _BLOCK < end:
                filled = _read(descriptor, window.ctypes.data, _BLOCK, at + _BLOCK)
                for k in range(filled):
                    empty &= window[k] == 0
            if not empty or known[0] >= 0 or known[1] >= 0:
                state = ODD
            break
        size, kind = _number(window, head + _SIZE, 12), window[head + _TYPE]
        if size < 0 or not _is_whole(window, head):
            state = ODD
            break
        data = at + _BLOCK
        if kind in (_LONG_NAME, _RECORDS):
            if size >= _ROOM:
                state = ODD
                break
            if data + size <= first + filled:
                for k in range(size):
                    records[k] = window[data - first + k]
            elif _read(descriptor, records.ctypes.data, size, data) != size:
                state = ODD
                break
            if kind == _LONG_NAME:
                known[0] = _copied(records, 0, size, name, 0)
            elif not _read_records(records, size, name, known):
                state = ODD
                break
            at = data + (size + _BLOCK - 1) // _BLOCK * _BLOCK
            continue
        is_file = kind == _ZERO or kind == 0
        if not is_file and kind != _FOLDER and kind not in _LINKS:
            state = ODD
            break
        if known[1] >= 0:
            size = known[1]
        if is_file:
            if count == len(begins) or used + _ROOM > len(text):
                state = FULL
                break
            stop = used
            if known[0] >= 0:
                stop = _copied(name, 0, known[0], text, used)
            else:
                stop = _copied(window, head + _PREFIX, head + 500, text, used)
                if stop > used:
                    text[stop] = _SLASH
                    stop += 1
                stop = _copied(window, head, head + 100, text, stop)
            if stop == used or text[stop - 1] == _SLASH or data + size > end:
                state = ODD
                break
            text[stop] = 0
            places[count, 0], places[count, 1], begins[count] = data, size, used
            used = stop + 1
            count += 1
        at = data + ((size + _BLOCK - 1) // _BLOCK * _BLOCK if is_file else 0)
        known[0], known[1] = -1, -1
        wanted = np.int64(_WINDOW) if size < _WINDOW else np.int64(2 * _BLOCK)
    _close(descriptor)
    return count, used, state, member


@njit(nogil=True)
def _folded(letter: int, folds: bool) -> Any:
    return letter + 32 if folds and 65 <= letter <= 90 else letter


@njit(nogil=True)
def group_members(
    text: np.ndarray,
    begins: np.ndarray,
    wanted: np.ndarray,
    wanted_begins: np.ndarray,
    outputs: np.ndarray,
    folds: bool,
    members: np.ndarray,
    firsts: np.ndarray,
) -> Any:
    """Group files that have all before the first dot of their names in common.

    Parameters
    ----------
    text, begins
        The names, a NUL after each, and where each begins.
    wanted, wanted_begins, outputs
        Extensions, likewise, and the output that each is for.
    folds
        True if the case of letters of extensions does not matter.
    members
        int64 ``(files, outputs)``: filled, for each sample, with the file of each output, or -1.
    firsts
        int64 ``(files,)``: filled with the first file of each sample.

    Returns
    -------
    How many samples there are.
    """
    samples, last, last_size = 0, np.int64(0), np.int64(-1)
    for k in range(len(begins)):
        begin: Any = begins[k]
        at: Any = begin
        dot: Any = np.int64(-1)
        while text[at]:
            if text[at] == _SLASH:
                dot = np.int64(-1)
            elif text[at] == _DOT and dot < 0:
                dot = at
            at += 1
        size = (at if dot < 0 else dot) - begin
        if size == 0:
            continue
        same = size == last_size
        if same:
            for n in range(size):
                if text[begin + n] != text[last + n]:
                    same = False
                    break
        if not same:
            for e in range(members.shape[1]):
                members[samples, e] = -1
            firsts[samples] = k
            samples += 1
            last, last_size = begin, size
        extension = at if dot < 0 else dot + 1
        for e in range(len(outputs)):
            if members[samples - 1, outputs[e]] >= 0:
                continue
            n, w = extension, wanted_begins[e]
            while text[n] and _folded(text[n], folds) == _folded(wanted[w], folds):
                n += 1
                w += 1
            if text[n] == 0 and wanted[w] == 0:
                members[samples - 1, outputs[e]] = k
    return samples
