"""Colour conversions of a batch's pixels on the GPU, step by step.

Steps are compared by value: equal ones, even if made anew, get the kernel that was generated and
compiled before.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.kernels.gpu.pointwise_terms import Term

BYTE = np.dtype(np.uint8)


@dataclass(frozen=True, slots=True)
class Matrix:
    """A linear function of three channels, rounded to `dtype`.

    Its numbers are one array, float32 ``(samples, 12)``: the matrix, row by row, and three offsets.
    """

    dtype: np.dtype
    arrays = 1
    made = 3


@dataclass(frozen=True, slots=True)
class ColorConversion:
    """A conversion between two colour spaces, of bytes, as `headrace.kernels.cpu.color_spaces`."""

    given: str
    wanted: str
    made: int
    """Channels of the result."""
    arrays = 0
    dtype = BYTE


@dataclass(frozen=True, slots=True)
class PerChannel:
    """The same function of every channel.

    Its numbers are `arrays` arrays, one value a sample each.
    """

    term: Term
    """Reads element 0 of a source and nothing else but numbers."""
    arrays: int
    made: int
    """Channels, which there were before, too."""

    @property
    def dtype(self) -> np.dtype:
        """Type of the result."""
        return self.term.dtype


Step = Matrix | ColorConversion | PerChannel
