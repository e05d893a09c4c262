"""Loops over text files that list millions of names or numbers: one pass, no object for a line."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.compilation import njit

GOOD, NO_ENTRY, TOO_WIDE = range(3)
"""States of a list: as it should be; a line that is no entry; a label of more than 32 bits."""

_NEWLINE, _SPACE, _TAB, _RETURN = 10, 32, 9, 13
_ZERO, _NINE, _PLUS, _MINUS, _COLON, _SLASH = 48, 57, 43, 45, 58, 47
_WIDE = 1 << 31
_MOST_DIGITS = 18


@njit(nogil=True)
def count_lines(data: np.ndarray) -> Any:
    """Count the lines of a text, the last one included."""
    found = 1
    for k in range(len(data)):
        found += data[k] == _NEWLINE
    return found


@njit(nogil=True)
def scan_names(data: np.ndarray, begins: np.ndarray, labels: np.ndarray) -> Any:
    """Find the names in a text of one line each, and put a NUL after each of them.

    Parameters
    ----------
    data
        uint8: the text, and one byte more.
    begins
        int64: filled with where names begin.
    labels
        int32: filled with the number that stands after each name; empty for lines without.

    Returns
    -------
    How many names there are, the length of the longest, whether one is an address, a state, and the
    line that it is about, from 0, and where that begins.
    """
    size = len(data) - 1
    count, longest, line, at = 0, 0, 0, 0
    remote = False
    while at <= size:
        end = at
        while end < size and data[end] != _NEWLINE:
            if data[end] == 0:
                return count, longest, remote, NO_ENTRY, line, at
            if data[end] == _COLON and end + 2 < size:
                remote |= data[end + 1] == _SLASH and data[end + 2] == _SLASH
            end += 1
        following = end + 1
        while end > at and (
            data[end - 1] == _SPACE or data[end - 1] == _TAB or data[end - 1] == 13
        ):
            end -= 1
        if end > at:
            if len(labels):
                stop, value, power = end, np.int64(0), np.int64(1)
                wide: Any = False
                while stop > at and _ZERO <= data[stop - 1] <= _NINE:
                    digit = np.int64(data[stop - 1]) - _ZERO
                    wide |= digit != 0 and power > _WIDE
                    if power <= _WIDE:
                        value += digit * power
                        power *= 10
                    stop -= 1
                has_digits = stop < end
                if stop > at and (data[stop - 1] == _MINUS or data[stop - 1] == _PLUS):
                    value = -value if data[stop - 1] == _MINUS else value
                    stop -= 1
                end = stop
                while end > at and data[end - 1] in (_SPACE, _TAB):
                    end -= 1
                if not has_digits or end in (stop, at) or data[end - 1] < _SPACE:
                    return count, longest, remote, NO_ENTRY, line, at
                if wide or not -_WIDE <= value < _WIDE:
                    return count, longest, remote, TOO_WIDE, line, at
                labels[count] = value
            data[end] = 0
            begins[count] = at
            longest = max(longest, end - at)
            count += 1
        line += 1
        at = following
    return count, longest, remote, GOOD, line, at


@njit(nogil=True)
def scan_pairs(data: np.ndarray, pairs: np.ndarray) -> Any:
    """Fill `pairs`, int64 ``(lines, 2)``, with the two numbers in each line that is not blank.

    Returns how many lines have them, and the line that has something else, or -1.
    """
    count, line, at, size = 0, 0, 0, len(data)
    while at < size:
        words = 0
        while at < size and data[at] != _NEWLINE:
            if data[at] == _SPACE or _TAB <= data[at] <= _RETURN:
                at += 1
                continue
            begin, value = at, np.int64(0)
            while at < size and _ZERO <= data[at] <= _NINE and at - begin < _MOST_DIGITS:
                value = 10 * value + data[at] - _ZERO
                at += 1
            ends = at == size or data[at] == _SPACE or _TAB <= data[at] <= _RETURN
            if at == begin or words == 2 or not ends:
                return count, line
            pairs[count, words] = value
            words += 1
        if words == 1:
            return count, line
        count += words // 2
        line += 1
        at += 1
    return count, -1
