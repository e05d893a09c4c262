"""The former place of `numba_function`."""

from __future__ import annotations

from headrace.plugin.numba.fn import numba_function

__all__ = ["numba_function"]


def __dir__() -> list[str]:
    return [*__all__]
