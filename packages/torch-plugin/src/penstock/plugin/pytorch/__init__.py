"""Iterators that feed PyTorch, under the names DALI gives them, sources of its datasets, and its
functions in pipelines.
"""

from __future__ import annotations

from penstock.api.classes import class_of
from penstock.plugin.base_iterator import LastBatchPolicy
from penstock.plugin.pytorch import fn, torch_utils
from penstock.plugin.pytorch.convert import feed_ndarray, to_torch_type
from penstock.plugin.pytorch.dataset_source import DatasetSource
from penstock.plugin.pytorch.function_operator import TorchFunction
from penstock.plugin.pytorch.iterable_source import IterableDatasetSource
from penstock.plugin.pytorch.iterator import DALIClassificationIterator, DALIGenericIterator
from penstock.plugin.pytorch.ragged import DALIRaggedIterator

TorchPythonFunction = class_of(TorchFunction.schema, __name__)

__all__ = [
    "DALIClassificationIterator",
    "DALIGenericIterator",
    "DALIRaggedIterator",
    "DatasetSource",
    "IterableDatasetSource",
    "LastBatchPolicy",
    "TorchPythonFunction",
    "feed_ndarray",
    "fn",
    "to_torch_type",
    "torch_utils",
]


def __dir__() -> list[str]:
    return [*__all__]
