"""Peekable iterators, under the module path that DALI gives them; CLU itself is not needed."""

from __future__ import annotations

from headrace.plugin.jax.element_spec import ArraySpec
from headrace.plugin.jax.peekable import DALIGenericPeekableIterator, peekable_data_iterator

__all__ = ["ArraySpec", "DALIGenericPeekableIterator", "peekable_data_iterator"]


def __dir__() -> list[str]:
    return [*__all__]
