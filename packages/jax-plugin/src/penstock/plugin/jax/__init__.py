"""Iterators that feed JAX, under the names DALI gives them, and JAX's functions as operators."""

from __future__ import annotations

from penstock.plugin.base_iterator import LastBatchPolicy
from penstock.plugin.jax import fn
from penstock.plugin.jax.decorator import data_iterator
from penstock.plugin.jax.iterator import DALIGenericIterator
from penstock.plugin.jax.peekable import DALIGenericPeekableIterator, peekable_data_iterator

__all__ = [
    "DALIGenericIterator",
    "DALIGenericPeekableIterator",
    "LastBatchPolicy",
    "data_iterator",
    "fn",
    "peekable_data_iterator",
]


def __dir__() -> list[str]:
    return [*__all__]
