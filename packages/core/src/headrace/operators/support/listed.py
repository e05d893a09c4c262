"""Facts about an operator whose module has not been imported."""

from __future__ import annotations

from typing import NamedTuple


class Listed(NamedTuple):
    """An entry of the manifest. Fields and properties mean what they mean in `OpSchema`."""

    name: str
    code: str
    """Module that declares the operator, below `headrace.operators`."""
    class_name: str | None = None
    internal: bool = False
    """True if it is hidden without being deprecated."""
    deprecated: str | None = None
    reader: bool = False
    dynamic: bool = True

    @property
    def hidden(self) -> bool:
        """True if listings leave it out."""
        return self.internal or self.deprecated is not None

    @property
    def module(self) -> str:
        """Dotted sub-module of ``fn`` the operator lives in; empty for ``fn`` itself."""
        return self.name.rpartition(".")[0]


def old(
    name: str,
    code: str,
    deprecated: str,
    *,
    class_name: str | None = None,
    reader: bool = False,
    dynamic: bool = False,
) -> Listed:
    """An entry for the former name of an operator, which dynamic mode rarely has."""
    return Listed(name, code, class_name, False, deprecated, reader, dynamic)
