"""Imports of modules that are not there say what to install, or what is to come."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import FrameType, ModuleType


class MissingModules:
    """The last finder of modules, asked where all others have found nothing.

    `importlib.util.find_spec`, by which programs ask whether there is a module, gets `None`.
    """

    @classmethod
    def find_spec(
        cls, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Raise the error of `penstock.to_come` if such a module is being imported."""
        if not name.startswith("penstock."):
            return None
        steps = _steps_of_import(sys._getframe(1))
        if "_find_and_load" not in steps:
            return None
        from penstock.to_come import missing_module

        error = missing_module(name)
        if error is None:
            return None
        if "_handle_fromlist" in steps:
            # `from penstock import tfrecord` drops an error that has the name of the module, and
            # says no more than that it "cannot import name".
            error.name = None
        raise error


def _steps_of_import(frame: FrameType | None) -> set[str]:
    """Functions of the import system that are on the stack, from `frame` outwards."""
    names = set()
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    return names
