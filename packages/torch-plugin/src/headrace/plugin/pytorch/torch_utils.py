"""Conversions, under the module path that DALI gives them."""

from __future__ import annotations

from headrace.plugin.pytorch.convert import feed_ndarray, to_torch_tensor, to_torch_type

__all__ = ["feed_ndarray", "to_torch_tensor", "to_torch_type"]


def __dir__() -> list[str]:
    return [*__all__]
