"""Loops over annotations in COCO's format: one pass over the JSON, no object for a value.

Texts end with `PADDING` NULs, valid nowhere in JSON, so that no loop has to look for the end. What
these loops do not take has the state `STRANGE`, whatever it is; `json` says what is wrong with it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.compilation import njit

STRANGE, FULL, ENDED, _NO_ROOM = -2, 0, 1, -3
"""States of a list: something else than expected; there is no room for its next element; all of it
was read.
"""
OTHER, IMAGES, ANNOTATIONS, CATEGORIES, CLOSED = range(-1, 4)
"""Members of a file, and its end."""
PADDING = 8
MOST_ODD = 1024
"""Numbers of a portion that are left to Python."""

_QUOTE, _BACKSLASH, _COMMA, _COLON, _POINT, _MINUS, _PLUS = 34, 92, 44, 58, 46, 45, 43
_LIST, _LIST_END, _OBJECT, _OBJECT_END = 91, 93, 123, 125
_ZERO, _NINE, _SLASH, _SMALL_E = 48, 57, 47, 101
_LEAST_CHARACTER, _LAST_ASCII = 32, 127
_DEEPEST = 60
_INTEGER_DIGITS, _REAL_DIGITS = 18, 19
_EXACT = 1 << 53
_POWERS = 10.0 ** np.arange(23)
_WORD = 8
_LITERALS = np.array([list(w.ljust(8, b"\0")) for w in (b"true", b"null", b"false")], np.uint8)
_WIDER, _NARROWER = 1 + 2.0**-51, 1 - 2.0**-51


def _names(*names: str) -> np.ndarray:
    """Names of fields, of 16 bytes at most, as pairs of numbers."""
    padded = b"".join(name.encode().ljust(2 * _WORD, b"\0") for name in names)
    return np.frombuffer(padded, "<u8").reshape(-1, 2).copy()


MEMBERS = _names("images", "annotations", "categories")
IMAGE_FIELDS = _names("id", "width", "height", "file_name")
CATEGORY_FIELDS = _names("id")
OBJECT_FIELDS = _names("image_id", "category_id", "iscrowd", "bbox", "segmentation")
PLAIN_FIELDS = OBJECT_FIELDS[:-1].copy()
"""Those of objects without their outlines."""
_NEEDED = 0b1011
"""Bits of the fields that an object must have."""


@njit(nogil=True)
def _blank(data: np.ndarray, at: int) -> int:
    """The next place that is not white."""
    while data[at] <= _LEAST_CHARACTER and (
        data[at] == 32 or data[at] == 10 or data[at] == 13 or data[at] == 9
    ):
        at += 1
    return at


@njit(nogil=True)
def _string(data: np.ndarray, at: int) -> int:
    """The place behind a string, or `STRANGE`."""
    if data[at] != _QUOTE:
        return STRANGE
    at += 1
    while data[at] != _QUOTE:
        if data[at] < _LEAST_CHARACTER:
            return STRANGE
        if data[at] == _BACKSLASH:
            at += 1
            escaped = data[at]
            if escaped == 117:  # u
                for _ in range(4):
                    at += 1
                    digit = data[at] | 32
                    if not (_ZERO <= data[at] <= _NINE or 97 <= digit <= 102):
                        return STRANGE
            elif not (
                escaped in (_QUOTE, _BACKSLASH, _SLASH)
                or escaped == 98
                or escaped == 102
                or escaped == 110
                or escaped == 114
                or escaped == 116
            ):
                return STRANGE
        at += 1
    return at + 1


@njit(nogil=True)
def _key(data: np.ndarray, at: int, names: np.ndarray) -> tuple[int, int]:
    """The number of the name at `at` among `names`, or -1, and where its value begins, or
    `STRANGE`. Names with escapes are strange.
    """
    if data[at] != _QUOTE:
        return -1, STRANGE
    at += 1
    begin, low, high = at, np.uint64(0), np.uint64(0)
    while data[at] != _QUOTE:
        if data[at] < _LEAST_CHARACTER or data[at] == _BACKSLASH:
            return -1, STRANGE
        place = at - begin
        if place < _WORD:
            low |= np.uint64(data[at]) << np.uint64(8 * place)
        elif place < 2 * _WORD:
            high |= np.uint64(data[at]) << np.uint64(8 * (place - _WORD))
        at += 1
    found = -1
    if at - begin <= 2 * _WORD:
        for k in range(len(names)):
            if names[k, 0] == low and names[k, 1] == high:
                found = k
    at = _blank(data, at + 1)
    if data[at] != _COLON:
        return -1, STRANGE
    return found, _blank(data, at + 1)


@njit(nogil=True)
def _digits(data: np.ndarray, at: int) -> int:
    while _ZERO <= data[at] <= _NINE:
        at += 1
    return at


@njit(nogil=True)
def _past_number(data: np.ndarray, at: int) -> int:
    at += data[at] == _MINUS
    begin = at
    at = _digits(data, at)
    if at == begin or (data[begin] == _ZERO and at > begin + 1):
        return STRANGE
    if data[at] == _POINT:
        begin = at + 1
        at = _digits(data, begin)
        if at == begin:
            return STRANGE
    if data[at] | 32 == _SMALL_E:
        at += 1
        at += data[at] == _MINUS or data[at] == _PLUS
        begin = at
        at = _digits(data, begin)
        if at == begin:
            return STRANGE
    return at


@njit(nogil=True)
def _past_literal(data: np.ndarray, at: int) -> int:
    for word in _LITERALS:
        k = 0
        while word[k] and data[at + k] == word[k]:
            k += 1
        if not word[k]:
            return at + k
    return STRANGE


@njit(nogil=True)
def past_value(data: np.ndarray, at: int) -> int:
    """The place behind the value that begins at `at`, or `STRANGE`."""
    depth, kinds = 0, np.uint64(0)  # a bit for each value around: 1 for an object
    while True:
        first = data[at]
        if first == _MINUS or _ZERO <= first <= _NINE:
            at = _past_number(data, at)
        elif first in (_LIST, _OBJECT):
            is_object = first == _OBJECT
            at = _blank(data, at + 1)
            if data[at] != first + 2:
                if depth == _DEEPEST:
                    return STRANGE
                depth += 1
                kinds = kinds << np.uint64(1) | np.uint64(is_object)
                if is_object:
                    at = _string(data, at)
                    if at < 0:
                        return STRANGE
                    at = _blank(data, at)
                    if data[at] != _COLON:
                        return STRANGE
                    at = _blank(data, at + 1)
                continue
            at += 1
        elif first == _QUOTE:
            at = _string(data, at)
        else:
            at = _past_literal(data, at)
        if at < 0:
            return STRANGE
        while True:
            if depth == 0:
                return at
            at = _blank(data, at)
            is_object = kinds & np.uint64(1) != 0
            if data[at] == _COMMA:
                at = _blank(data, at + 1)
                break
            if data[at] != (_OBJECT_END if is_object else _LIST_END):
                return STRANGE
            at += 1
            depth -= 1
            kinds >>= np.uint64(1)
        if is_object:
            at = _string(data, at)
            if at < 0:
                return STRANGE
            at = _blank(data, at)
            if data[at] != _COLON:
                return STRANGE
            at = _blank(data, at + 1)


@njit(nogil=True)
def _integer(data: np.ndarray, at: int) -> tuple[Any, int]:
    """A number without a fraction, and the place behind it, or `STRANGE`."""
    negative = data[at] == _MINUS
    at += negative
    begin, value = at, np.int64(0)
    while _ZERO <= data[at] <= _NINE and at - begin < _INTEGER_DIGITS:
        value = 10 * value + np.int64(data[at]) - _ZERO
        at += 1
    follows = data[at]
    more = _ZERO <= follows <= _NINE or follows == _POINT or follows | 32 == _SMALL_E
    if at == begin or more or (data[begin] == _ZERO and at > begin + 1):
        return value, STRANGE
    return -value if negative else value, at


@njit(nogil=True)
def _real(data: np.ndarray, at: int) -> tuple[Any, int, Any]:
    """A number, the place behind it, or `STRANGE`, and whether it is odd: not known to be rounded
    to float32 as it is by way of float64.
    """
    negative = data[at] == _MINUS
    at += negative
    begin, value = at, np.uint64(0)
    power: Any = np.int64(0)
    while _ZERO <= data[at] <= _NINE:
        value = np.uint64(10) * value + np.uint64(data[at] - np.uint8(_ZERO))
        at += 1
    digits = at - begin
    if digits == 0 or (data[begin] == _ZERO and digits > 1):
        return 0.0, STRANGE, False
    if data[at] == _POINT:
        begin = at + 1
        at = begin
        while _ZERO <= data[at] <= _NINE:
            value = np.uint64(10) * value + np.uint64(data[at] - np.uint8(_ZERO))
            at += 1
        if at == begin:
            return 0.0, STRANGE, False
        power = begin - at
        digits -= power
    if data[at] | 32 == _SMALL_E:
        at += 1
        less = data[at] == _MINUS
        at += less or data[at] == _PLUS
        begin = at
        given: Any = np.int64(0)
        while _ZERO <= data[at] <= _NINE:
            given = min(10 * given + np.int64(data[at]) - _ZERO, 1 << 20)
            at += 1
        if at == begin:
            return 0.0, STRANGE, False
        power += -given if less else given
    if digits > _REAL_DIGITS or abs(power) > 22:
        return 0.0, at, True
    found = np.float64(value)
    found = found / _POWERS[-power] if power < 0 else found * _POWERS[power]
    odd = value > np.uint64(_EXACT) and (
        np.float32(found * _NARROWER) != np.float32(found * _WIDER)
    )
    return -found if negative else found, at, odd


@njit(nogil=True)
def next_member(data: np.ndarray, at: int, first: bool) -> tuple[int, int]:
    """The next member of a file, behind another one or as its first, and where its value begins;
    `CLOSED`, and the place behind the file; or `STRANGE`.
    """
    at = _blank(data, at)
    if first:
        if data[at] != _OBJECT:
            return STRANGE, at
        at = _blank(data, at + 1)
    if data[at] == _OBJECT_END:
        return CLOSED, _blank(data, at + 1)
    if not first:
        if data[at] != _COMMA:
            return STRANGE, at
        at = _blank(data, at + 1)
    found, value = _key(data, at, MEMBERS)
    if value < 0:
        return STRANGE, at
    if found != OTHER:  # a list
        if data[value] != _LIST:
            return STRANGE, at
        value = _blank(data, value + 1)
    return found, value


@njit(nogil=True)
def _behind_element(data: np.ndarray, at: int) -> tuple[int, int]:
    """The place of the next element of a list, or that behind its end; and `FULL` or `ENDED`,
    or `STRANGE`.
    """
    at = _blank(data, at)
    if data[at] == _LIST_END:
        return at + 1, ENDED
    if data[at] != _COMMA:
        return at, STRANGE
    return _blank(data, at + 1), FULL


@njit(nogil=True)
def _behind_field(data: np.ndarray, at: int) -> tuple[int, bool]:
    """The place of the next field of an object, or that behind its end, or `STRANGE`; and
    whether it has ended.
    """
    at = _blank(data, at)
    if data[at] == _OBJECT_END:
        return at + 1, True
    if data[at] != _COMMA:
        return STRANGE, True
    return _blank(data, at + 1), False


@njit(nogil=True)
def scan_items(
    data: np.ndarray,
    at: int,
    names: np.ndarray,
    facts: np.ndarray,
    text: np.ndarray,
    used: np.ndarray,
) -> tuple[int, int]:
    """Read elements of `images` or `categories`.

    Parameters
    ----------
    data
        uint8: the file.
    at
        Where the next element begins.
    names
        `IMAGE_FIELDS` or `CATEGORY_FIELDS`. The first, and what comes after integers, must be
        there.
    facts
        int64 ``(items, 3)``: filled with ids, widths and heights, 0 where these are not given.
    text
        uint8: filled with names, each with a NUL after it.
    used
        int64: filled with how many items there are, the bytes of their names, and whether one has
        characters that are not of ASCII.

    Returns
    -------
    A state, and where the next element begins, or the place behind the list.
    """
    count, letters, wide = 0, 0, False
    needed = 1 << len(names) - 1 | 1
    state = FULL
    if data[at] == _LIST_END:
        at, state = at + 1, ENDED
    while state == FULL and count < len(facts):
        begin, written, was_wide = at, letters, wide
        if data[at] != _OBJECT:
            return STRANGE, at
        at, seen = _blank(data, at + 1), 0
        facts[count, 1] = facts[count, 2] = 0
        while True:
            field, value = _key(data, at, names)
            if value < 0:
                return STRANGE, at
            bit = 1 << field if field >= 0 else 0
            if field < 0:
                at = past_value(data, value)
            elif field < 3:
                facts[count, field], at = _integer(data, value)
            else:
                at = _string(data, value)
                if at - value > len(text) - letters:
                    used[0], used[1], used[2] = count, written, was_wide
                    return FULL, begin
                k = value + 1
                while k < at - 1:
                    if data[k] == _BACKSLASH:
                        k += 1
                        if not (data[k] == _SLASH or data[k] == _BACKSLASH or data[k] == _QUOTE):
                            return STRANGE, k
                    wide |= data[k] > _LAST_ASCII
                    text[letters] = data[k]
                    letters += 1
                    k += 1
                text[letters] = 0
                letters += 1
            if at < 0 or seen & bit:
                return STRANGE, begin
            seen |= bit
            at, ended = _behind_field(data, at)
            if ended:
                break
        if at < 0 or seen & needed != needed:
            return STRANGE, begin
        count += 1
        at, state = _behind_element(data, at)
    used[0], used[1], used[2] = count, letters, wide
    return state, at


@njit(nogil=True)
def _reals(
    data: np.ndarray,
    at: int,
    values: np.ndarray,
    filled: int,
    limit: int,
    odd: np.ndarray,
    odds: int,
) -> tuple[int, int, int]:
    """Read a list of numbers into `values`, from number `filled` on, up to `limit`; return the
    place behind it, or `STRANGE`, or `_NO_ROOM`; and the counts of values and of odd numbers.
    """
    if data[at] != _LIST:
        return STRANGE, filled, odds
    at = _blank(data, at + 1)
    if data[at] == _LIST_END:
        return at + 1, filled, odds
    while True:
        if filled == limit:
            return _NO_ROOM, filled, odds
        begin = at
        value, at, is_odd = _real(data, at)
        if at < 0:
            return STRANGE, filled, odds
        values[filled] = value
        if is_odd:
            if odds == len(odd):
                return STRANGE, filled, odds
            odd[odds, 0], odd[odds, 1], odd[odds, 2] = filled, begin, at
            odds += 1
        filled += 1
        at = _blank(data, at)
        if data[at] == _LIST_END:
            return at + 1, filled, odds
        if data[at] != _COMMA:
            return STRANGE, filled, odds
        at = _blank(data, at + 1)


@njit(nogil=True)
def scan_objects(
    data: np.ndarray,
    at: int,
    names: np.ndarray,
    facts: np.ndarray,
    boxes: np.ndarray,
    sizes: np.ndarray,
    vertices: np.ndarray,
    odd: np.ndarray,
    used: np.ndarray,
) -> tuple[int, int]:
    """Read elements of `annotations`; see `scan_items`.

    Parameters
    ----------
    names
        `OBJECT_FIELDS`, or `PLAIN_FIELDS` to leave outlines out.
    facts
        int64 ``(objects, 4)``: filled with the ids of images and of categories, whether each is a
        crowd, and its number of polygons.
    boxes
        float32, flat: filled with four numbers each.
    sizes
        int64: filled with the number of vertices of each polygon.
    vertices
        float32: filled with their coordinates, flat.
    odd
        int64 ``(2, MOST_ODD, 3)``: of `boxes` and of `vertices`, the numbers that are left to
        Python: which they are, and where in `data` they begin and end.
    used
        int64: filled with how many objects, polygons, coordinates, odd numbers of boxes and odd
        numbers of vertices there are.
    """
    count, polygons, filled, odd_boxes, odd_vertices = 0, 0, 0, 0, 0
    state = FULL
    if data[at] == _LIST_END:
        at, state = at + 1, ENDED
    while state == FULL and count < len(facts):
        used[0], used[1], used[2], used[3] = count, polygons, filled, odd_boxes
        used[4] = odd_vertices
        start = at
        if data[at] != _OBJECT:
            return STRANGE, at
        at, seen = _blank(data, at + 1), 0
        facts[count, 2] = facts[count, 3] = 0
        while True:
            field, value = _key(data, at, names)
            if value < 0:
                return STRANGE, at
            bit = 1 << field if field >= 0 else 0
            if field < 0 or (field == 4 and data[value] == _OBJECT):
                at = past_value(data, value)
            elif field < 3:
                facts[count, field], at = _integer(data, value)
            else:
                # Of a box, one list; of an outline, a list of such.
                outline, more = field == 4, FULL
                at = value
                if outline:
                    if data[at] != _LIST:
                        return STRANGE, at
                    at = _blank(data, at + 1)
                    if data[at] == _LIST_END:
                        at, more = at + 1, ENDED
                values = vertices if outline else boxes
                odds = odd_vertices if outline else odd_boxes
                while more == FULL:
                    begin = filled if outline else 4 * count
                    limit = len(vertices) if outline else begin + 4
                    at, end, odds = _reals(data, at, values, begin, limit, odd[field - 3], odds)
                    if outline and (at == _NO_ROOM or polygons == len(sizes)):
                        return FULL, start
                    if at < 0:
                        return STRANGE, start
                    if not outline:
                        if end == begin:
                            values[begin : begin + 4] = 0
                        elif end != limit:
                            return STRANGE, start
                        break
                    if (end - begin) % 2:
                        end -= 1
                        if odds and odd[1, odds - 1, 0] == end:
                            odds -= 1
                    sizes[polygons] = (end - begin) // 2
                    polygons += 1
                    filled = end
                    facts[count, 3] += 1
                    at, more = _behind_element(data, at)
                if more == STRANGE:
                    return STRANGE, start
                if outline:
                    odd_vertices = odds
                else:
                    odd_boxes = odds
            if at < 0 or seen & bit:
                return STRANGE, start
            seen |= bit
            at, ended = _behind_field(data, at)
            if ended:
                break
        if at < 0 or seen & _NEEDED != _NEEDED:
            return STRANGE, start
        facts[count, 2] = facts[count, 2] != 0
        count += 1
        at, state = _behind_element(data, at)
    used[0], used[1], used[2], used[3], used[4] = count, polygons, filled, odd_boxes, odd_vertices
    return state, at


@njit(nogil=True)
def order_by(owners: np.ndarray, count: int, order: np.ndarray) -> Any:
    """Fill `order`, int64, with the numbers of the objects by their owner, of which there are
    `count`, and in their own order; objects without one, -1, are left out. Returns how many these
    are.
    """
    begins = np.zeros(count + 1, np.int64)
    for owner in owners:
        if owner >= 0:
            begins[owner + 1] += 1
    for k in range(count):
        begins[k + 1] += begins[k]
    found = begins[count]
    for k in range(len(owners)):
        owner = owners[k]
        if owner >= 0:
            order[begins[owner]] = k
            begins[owner] += 1
    return found
