"""Samples out of lines of JSON, as Squirrel's `JsonlDriver` writes them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.plugin.squirrel.arrays import stored_dtype

if TYPE_CHECKING:
    from collections.abc import Collection

    from headrace.plugin.squirrel.inflate import ByteWindow


class JsonSamples:
    """The samples of one shard, in order."""

    def __init__(self, window: ByteWindow, fields: Collection[str] | None) -> None:
        self._window = window
        self._fields = fields

    def skip(self) -> bool:
        """Move on by one sample; whether there was one."""
        return bool(self._line())

    def next(self) -> Any:
        """The next sample, a dictionary of what `fields` names; `None` at the end."""
        line = self._line()
        if not line:
            return None
        try:
            sample = json.loads(line, object_hook=_with_array)
        except ValueError as error:
            raise BadSampleError(f"its line is no JSON: {error}") from error
        if not isinstance(sample, dict) or self._fields is None:
            return sample
        return {name: value for name, value in sample.items() if name in self._fields}

    def _line(self) -> bytes:
        while True:
            line = self._window.line()
            if not line or line.strip():
                return line


def _with_array(value: dict[str, Any]) -> Any:
    if not value.keys() >= {"type", "data", "shape"}:
        return value
    dtype = stored_dtype(value["type"])
    try:
        return np.array(value["data"], dtype).reshape(value["shape"])
    except (TypeError, ValueError, OverflowError) as error:
        raise BadSampleError(f"it holds an array that is none: {error}") from error
