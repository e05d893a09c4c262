"""Interfaces for frameworks. Those that need one are released as distributions of their own."""

from __future__ import annotations

import pkgutil

__path__ = pkgutil.extend_path(__path__, __name__)


def __dir__() -> list[str]:
    return ["base_iterator", *(m.name for m in pkgutil.iter_modules(__path__) if m.ispkg)]
