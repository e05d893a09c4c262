"""Pickles functions with the names of their files, which errors show."""

from __future__ import annotations

import functools
from collections import ChainMap
from types import CodeType
from typing import Any, ClassVar


@functools.cache
def code_pickler() -> Any:
    """Cloudpickle's pickler, except that functions keep the names of their files.

    cloudpickle leaves these out since 3.1.3. Errors from a process that has a function by value
    would not show the line that raised them.
    """
    import cloudpickle  # type: ignore[import-untyped]

    table = cloudpickle.Pickler.dispatch_table
    reduced = table[CodeType]

    def with_file(code: CodeType) -> tuple[Any, ...]:
        return _made, (*reduced(code), code.co_filename)

    class CodePickler(cloudpickle.Pickler):  # type: ignore[misc]
        dispatch_table: ClassVar[Any] = ChainMap({CodeType: with_file}, table)

    return CodePickler


def _made(kind: type[CodeType], values: tuple[Any, ...], file: str) -> CodeType:
    return kind(*values).replace(co_filename=file)
