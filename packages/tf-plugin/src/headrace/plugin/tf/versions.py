"""What DALI's programs ask about the version of TensorFlow."""

from __future__ import annotations


def dataset_compatible_tensorflow() -> bool:
    """Whether there is `DALIDataset`: with every TensorFlow that this package installs with."""
    return True


def dataset_inputs_compatible_tensorflow() -> bool:
    """Whether there is `experimental.DALIDatasetWithInputs`: as `dataset_compatible_tensorflow`."""
    return True


def dataset_distributed_compatible_tensorflow() -> bool:
    """Whether datasets can be distributed: as `dataset_compatible_tensorflow`."""
    return True
