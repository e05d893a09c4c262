"""Description of a feature of TensorFlow's records."""

from __future__ import annotations

from dataclasses import dataclass

FEATURE_TYPES = {0: "int64", 1: "string", 2: "float32"}
"""Names of the types of features, by the numbers that stand for them."""


@dataclass(frozen=True)
class Feature:
    """One feature of the records of a file. `FixedLenFeature` and `VarLenFeature` make them.

    Attributes
    ----------
    shape
        Extents of each sample, or, where `has_shape` is False, of each element of it.
    dtype
        `int64`, `string` or `float32`.
    default_value
        Value for records that lack the feature.
    has_shape
        True if each record has one tensor of `shape`; else a list whose length varies.
    """

    shape: tuple[int, ...]
    dtype: int
    default_value: int | float | str
    has_shape: bool

    def __repr__(self) -> str:
        kind = "FixedLenFeature" if self.has_shape else "VarLenFeature"
        shape = f"{list(self.shape)}, " if self.has_shape or self.shape else ""
        return f"{kind}({shape}{FEATURE_TYPES[self.dtype]}, {self.default_value!r})"
