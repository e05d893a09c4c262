"""Conversions, under the module path that DALI gives them."""

from __future__ import annotations

from headrace.plugin.pytorch.convert import to_torch_tensor

__all__ = ["to_torch_tensor"]


def __dir__() -> list[str]:
    return [*__all__]
