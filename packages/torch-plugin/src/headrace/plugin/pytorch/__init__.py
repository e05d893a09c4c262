"""Iterators that feed PyTorch, under the names DALI gives them, sources of its datasets, and its
functions in pipelines.
"""

from __future__ import annotations

from headrace.api.classes import class_of
from headrace.plugin.base_iterator import LastBatchPolicy
from headrace.plugin.pytorch import fn, torch_utils
from headrace.plugin.pytorch.convert import feed_ndarray, to_torch_type
from headrace.plugin.pytorch.dataset_source import DatasetSource
from headrace.plugin.pytorch.function_operator import TorchFunction
from headrace.plugin.pytorch.iterable_source import IterableDatasetSource
from headrace.plugin.pytorch.iterator import DALIClassificationIterator, DALIGenericIterator
from headrace.plugin.pytorch.ragged import DALIRaggedIterator

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
