"""Element specs of CLU (Common Loop Utils), whether it is installed or not."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import jax


@dataclass(frozen=True)
class ArraySpec:
    """Element type and shape of an output; CLU's class of this name is used where it is loaded."""

    dtype: np.dtype
    shape: tuple[int, ...]

    def __repr__(self) -> str:
        return f"ArraySpec(dtype={np.dtype(self.dtype).name}, shape={self.shape})"

    def __str__(self) -> str:
        return f"{np.dtype(self.dtype).name}{list(self.shape)}"


def spec_of(array: jax.Array) -> Any:
    """Element type and shape of `array`."""
    clu = sys.modules.get("clu.data.dataset_iterator")
    kind = ArraySpec if clu is None else clu.ArraySpec
    return kind(dtype=array.dtype, shape=array.shape)


def register_with_clu(iterator: type) -> None:
    """Have CLU, where it is loaded, count `iterator` among its own."""
    clu = sys.modules.get("clu.data.dataset_iterator")
    if clu is not None:
        clu.DatasetIterator.register(iterator)
