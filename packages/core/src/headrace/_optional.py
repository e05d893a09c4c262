"""Import libraries that a plain ``pip install headrace`` does not bring."""

from __future__ import annotations

import importlib
from types import ModuleType

from headrace.errors import LibraryNotInstalledError


def import_optional(module: str, *, purpose: str, install: str) -> ModuleType:
    """Import `module`, at its first use."""
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        top = module.partition(".")[0]
        if error.name is None or error.name.partition(".")[0] != top:
            raise
        raise LibraryNotInstalledError(
            f"{purpose} needs the library `{top}`, which is not installed. "
            f"Run `pip install '{install}'`.",
            name=error.name,
        ) from error
