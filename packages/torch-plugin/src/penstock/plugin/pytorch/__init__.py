"""Iterators that feed PyTorch, under the names DALI gives them."""

from __future__ import annotations

from penstock.plugin.base_iterator import LastBatchPolicy
from penstock.plugin.pytorch import torch_utils
from penstock.plugin.pytorch.convert import feed_ndarray, to_torch_type
from penstock.plugin.pytorch.iterator import DALIClassificationIterator, DALIGenericIterator
from penstock.plugin.pytorch.ragged import DALIRaggedIterator

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "LastBatchPolicy",
    "feed_ndarray",
    "to_torch_type",
    "torch_utils",
]
