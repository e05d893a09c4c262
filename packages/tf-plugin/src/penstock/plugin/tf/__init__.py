"""TensorFlow datasets of pipelines, under the names DALI gives them."""

from __future__ import annotations

from penstock.plugin.base_iterator import LastBatchPolicy
from penstock.plugin.tf import experimental
from penstock.plugin.tf.dataset import DALIDataset
from penstock.plugin.tf.versions import (
    dataset_compatible_tensorflow,
    dataset_distributed_compatible_tensorflow,
    dataset_inputs_compatible_tensorflow,
)

__all__ = [
    "DALIDataset",
    "LastBatchPolicy",
    "dataset_compatible_tensorflow",
    "dataset_distributed_compatible_tensorflow",
    "dataset_inputs_compatible_tensorflow",
    "experimental",
]


def __dir__() -> list[str]:
    return [*__all__]
