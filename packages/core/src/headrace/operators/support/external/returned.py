"""Results of callbacks as arrays, for programs that call the sources of pipelines themselves."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ShapeError
from headrace.tensors import TensorCPU, TensorListCPU
from headrace.tensors.interop import as_host_array
from headrace.types.arrays import is_array

_REFUSED = "Unsupported callback return type. Got: `{}`."
_RAGGED = "Uniform input is required (batch of tensors of equal shapes), got {}."


def sample_array(sample: Any, error_str: str = _REFUSED) -> np.ndarray:
    """The array of a sample in host memory, without a copy."""
    if isinstance(sample, TensorCPU) or is_array(sample):
        try:
            return as_host_array(sample)
        except (ArgumentTypeError, TypeError) as error:
            raise ArgumentTypeError(error_str.format(type(sample))) from error
    raise ArgumentTypeError(error_str.format(type(sample)))


def batch_array(
    batch: Any, error_str: str = _REFUSED, non_uniform_str: str = _RAGGED
) -> np.ndarray:
    """The array of a batch, whose first axis counts its samples."""
    if not isinstance(batch, (list, TensorListCPU)):
        return sample_array(batch, error_str)
    arrays = [sample_array(sample, error_str) for sample in batch]
    shapes = [array.shape for array in arrays]
    if len(set(shapes)) > 1:
        raise ShapeError(non_uniform_str.format(f"shapes {shapes}"))
    return np.stack(arrays)


def check_sample(sample: Any, error_str: str = _REFUSED) -> bool:
    """True; what `sample_array` refuses raises its error."""
    sample_array(sample, error_str)
    return True


def check_batch(batch: Any, error_str: str = _REFUSED) -> bool:
    """True; what `batch_array` refuses raises its error. Shapes may differ."""
    for sample in batch if isinstance(batch, (list, TensorListCPU)) else [batch]:
        sample_array(sample, error_str)
    return True
