"""Checks of TensorFlow's version that DALI's programs make."""

from __future__ import annotations


def dataset_compatible_tensorflow() -> bool:
    """True if there is `DALIDataset`: with every TensorFlow that this package installs with."""
    return True


def dataset_inputs_compatible_tensorflow() -> bool:
    """True if there is `experimental.DALIDatasetWithInputs`: as `dataset_compatible_tensorflow`."""
    return True


def dataset_distributed_compatible_tensorflow() -> bool:
    """True if datasets can be distributed: as `dataset_compatible_tensorflow`."""
    return True
