"""Imports of modules that are not there say what to install, or what is to come.

Modules that are private in DALI can be imported: programs do so, and often hardly use them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader
from importlib.util import spec_from_loader
from pkgutil import iter_modules
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
        """Raise the error of `headrace.to_come` if such a module is being imported."""
        if not name.startswith("headrace."):
            return None
        steps = _steps_of_import(sys._getframe(1))
        if "_find_and_load" not in steps:
            return None
        from headrace.to_come import PRIVATE, missing_module

        if name in PRIVATE:
            has_modules = any(other.startswith(f"{name}.") for other in PRIVATE)
            return spec_from_loader(name, _PrivateModule(), is_package=has_modules)
        error = missing_module(name) or _unknown(name)
        if error is None:
            return None
        if "_handle_fromlist" in steps:
            # `from headrace import tfrecord` drops an error that has the name of the module, and
            # says no more than that it "cannot import name".
            error.name = None
        raise error


def alike(name: str, package: str) -> str:
    """A question for a misspelt `name` of a package, led by a space; empty if none is alike."""
    from headrace.errors import did_you_mean

    module = sys.modules[package]
    found = iter_modules(getattr(module, "__path__", ()))
    known = {*dir(module), *(each.name for each in found)}
    return did_you_mean(name, (each for each in known if not each.startswith("_")))


def _unknown(name: str) -> ImportError | None:
    """The error for a misspelt module, or a misspelt name in a package."""
    package, _, last = name.rpartition(".")
    question = alike(last, package) if package in sys.modules else ""
    if not question or last.startswith("_"):
        return None
    text = f"cannot import {last!r} from {package!r}: there is no such name.{question}"
    return ModuleNotFoundError(text, name=name)


class _PrivateModule(Loader):
    """Makes the counterpart of a private module: it says which names it does not have."""

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """A module whose names are looked up when they are asked for."""
        return ModuleType(spec.name, "Private in DALI; without a counterpart.")

    def exec_module(self, module: ModuleType) -> None:
        """Let look-ups in it find the names that have a counterpart, and fail with a reason."""
        from headrace.to_come import PRIVATE_NAMES, private_name_error

        names = PRIVATE_NAMES.get(module.__name__, {})

        def find(name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            if name not in names:
                raise private_name_error(module.__name__, name)
            where, _, counterpart = names[name].partition(":")
            return getattr(import_module(where), counterpart)

        module.__getattr__ = find  # type: ignore[method-assign]


def _steps_of_import(frame: FrameType | None) -> set[str]:
    """Functions of the import system that are on the stack, from `frame` outwards."""
    names = set()
    while frame is not None and frame.f_globals.get("__name__") == "importlib._bootstrap":
        names.add(frame.f_code.co_name)
        frame = frame.f_back
    return names
