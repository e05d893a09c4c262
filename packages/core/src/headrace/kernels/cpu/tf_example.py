"""Messages of TensorFlow's ``Example``: the features of a record.

An ``Example`` is a map from names to lists of bytes, of float32 or of int64.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.protobuf import fields, integers

BYTES, FLOATS, INTEGERS = 1, 2, 3
"""Kinds of lists, by the numbers of their fields in a ``Feature``."""

Values = list[bytes] | np.ndarray


def parse_example(data: bytes, wanted: Collection[bytes]) -> dict[bytes, tuple[int, Values]]:
    """The features of these names that a record has: kind of list, and values.

    Raises
    ------
    BadSampleError
        If the message is damaged.
    """
    found = {}
    try:
        for _, features in fields(data):
            for _, entry in fields(features):
                parts: dict[int, Any] = dict(fields(entry))
                name = parts.get(1, b"")
                if name in wanted:
                    kind, content = next(iter(fields(parts.get(2, b""))), (0, b""))
                    found[name] = kind, _values(kind, content)
    except (IndexError, ValueError, TypeError) as error:
        raise BadSampleError("The record is no `Example` of TensorFlow, or damaged.") from error
    return found


def _values(kind: int, content: Any) -> Values:
    if kind == BYTES:
        return [bytes(value) for _, value in fields(content)]
    numbers = [value for _, value in fields(content, numbers=kind == INTEGERS)]
    if kind == FLOATS:
        return np.frombuffer(b"".join(numbers), "<f4")
    return integers(numbers)
