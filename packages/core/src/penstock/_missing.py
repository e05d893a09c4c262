"""Imports of modules that are not there say what to install, or what is to come.

Modules that are private in DALI can be imported: programs do so, and often hardly use them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader
from importlib.util import spec_from_loader
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec
    from types import FrameType


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
        from penstock.to_come import PRIVATE, missing_module

        if name in PRIVATE:
            return spec_from_loader(name, _PrivateModule())
        error = missing_module(name)
        if error is None:
            return None
        if "_handle_fromlist" in steps:
            # `from penstock import tfrecord` drops an error that has the name of the module, and
            # says no more than that it "cannot import name".
            error.name = None
        raise error


class _PrivateModule(Loader):
    """Makes the counterpart of a private module: it has no names, and says so."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module without names."""
        return ModuleType(spec.name, "Private in DALI; without a counterpart.")

    def exec_module(self, module: ModuleType) -> None:
        """Let look-ups in it fail with a reason."""
        from penstock.to_come import private_name_error

        def fail(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            raise private_name_error(module.__name__, name)

        module.__getattr__ = fail  # type: ignore[method-assign]


def _steps_of_import(frame: FrameType | None) -> set[str]:
    """Functions of the import system that are on the stack, from `frame` outwards."""
    names = set()
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    return names
