"""The library with another reader in place of `readers.file`, for `graphs`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import headrace as hr


class Instead:
    """The library, whose `readers.file` calls a function."""

    def __init__(self, read: Callable[[], tuple[Any, Any]]) -> None:
        class Readers:
            def file(self, **_: Any) -> tuple[Any, Any]:
                return read()

        class Fn:
            readers = Readers()

            def __getattr__(self, name: str) -> Any:
                return getattr(hr.fn, name)

        self.fn, self.types = Fn(), hr.types
