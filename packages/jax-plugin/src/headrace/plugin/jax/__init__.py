"""Iterators that feed JAX, under the names DALI gives them, and JAX's functions as operators."""

from __future__ import annotations

from headrace.plugin.base_iterator import LastBatchPolicy
from headrace.plugin.jax import fn
from headrace.plugin.jax.decorator import data_iterator
from headrace.plugin.jax.iterator import DALIGenericIterator
from headrace.plugin.jax.peekable import DALIGenericPeekableIterator, peekable_data_iterator

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
