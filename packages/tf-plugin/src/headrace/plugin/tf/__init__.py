"""TensorFlow datasets of pipelines, under the names DALI gives them."""

from __future__ import annotations

from headrace.errors import LibraryNotInstalledError
from headrace.plugin.base_iterator import LastBatchPolicy

try:
    from headrace.plugin.tf import experimental
    from headrace.plugin.tf.dataset import DALIDataset
    from headrace.plugin.tf.iterator import DALIGenericIterator
    from headrace.plugin.tf.operations import (
        DALIIterator,
        DALIIteratorWrapper,
        DALIRawIterator,
        dataset_options,
        serialize_pipeline,
    )
    from headrace.plugin.tf.versions import (
        dataset_compatible_tensorflow,
        dataset_distributed_compatible_tensorflow,
        dataset_inputs_compatible_tensorflow,
    )
except ModuleNotFoundError as error:
    if error.name != "tensorflow":
        raise
    raise LibraryNotInstalledError(
        "`headrace.plugin.tf` needs the library `tensorflow`, which is not installed. Run "
        "`pip install 'headrace-tf[tensorflow]'`, or with `[tensorflow-cpu]`.",
        name=error.name,
    ) from error

__all__ = [
    "DALIDataset",
    "DALIGenericIterator",
    "DALIIterator",
    "DALIIteratorWrapper",
    "DALIRawIterator",
    "LastBatchPolicy",
    "dataset_compatible_tensorflow",
    "dataset_distributed_compatible_tensorflow",
    "dataset_inputs_compatible_tensorflow",
    "dataset_options",
    "experimental",
    "serialize_pipeline",
]


def __dir__() -> list[str]:
    return [*__all__]
