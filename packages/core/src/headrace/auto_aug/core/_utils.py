"""Shared code of suites and policies: translations and random choices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace import fn
from headrace.auto_aug import augmentations as a
from headrace.auto_aug.core import Augmentation
from headrace.errors import ArgumentValueError
from headrace.graph.data_node import DataNode
from headrace.types import DALIDataType, DALIInterpType


def get_translations(
    use_shape: bool,
    default_translate_abs: float,
    default_translate_rel: float,
    max_translate_abs: float | None = None,
    max_translate_rel: float | None = None,
) -> list[Augmentation]:
    """Translations along x and y by at most so much, a number or one for height and width each."""
    if use_shape and max_translate_abs is not None:
        raise ArgumentValueError(
            "`max_translate_abs` is for translations in pixels, but a shape is given; use "
            "`max_translate_rel`."
        )
    if not use_shape and max_translate_rel is not None:
        raise ArgumentValueError(
            "`max_translate_rel` is a share of the shape, which is not given; give `shape`, or use "
            "`max_translate_abs`."
        )
    if use_shape:
        both, given = (a.translate_x, a.translate_y), (max_translate_rel, default_translate_rel)
    else:
        both, given = (
            (a.translate_x_no_shape, a.translate_y_no_shape),
            (max_translate_abs, default_translate_abs),
        )
    limit: Any = given[1] if given[0] is None else given[0]
    height, width = limit if isinstance(limit, Sequence) else (limit, limit)
    return [
        both[0].augmentation(mag_range=(0, width)),
        both[1].augmentation(mag_range=(0, height)),
    ]


def warp_arguments(
    shape: Any, fill_value: float | None, interp_type: DALIInterpType | None
) -> dict[str, Any]:
    """Return the keyword arguments for augmentations that move pixels."""
    found: dict[str, Any] = {"fill_value": fill_value, "interp_type": interp_type}
    return found if shape is None else {**found, "shape": shape}


def without(
    augmentations: Sequence[Augmentation], excluded: Sequence[str] | None
) -> list[Augmentation]:
    """Those whose names are not `excluded`."""
    names = {each.name for each in augmentations}
    unknown = sorted(set(excluded or ()) - names)
    if unknown:
        raise ArgumentValueError(
            f"`excluded` names `{unknown[0]}`, which is none of {', '.join(sorted(names))}."
        )
    return [each for each in augmentations if each.name not in (excluded or ())]


def check_bins(num_magnitude_bins: int) -> None:
    """Complain of a number of bins that is not positive."""
    if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
        raise ArgumentValueError(
            f"The `num_magnitude_bins` must be a positive integer, got {num_magnitude_bins!r}."
        )


def drawn(count: int, seed: int | None, number: int) -> DataNode:
    """A number from 0 to ``count - 1`` for each sample; `number` tells draws of a call apart."""
    own = None if seed is None else seed + number
    values = fn.random.uniform(values=[float(k) for k in range(count)], seed=own)
    return fn.cast(values, dtype=DALIDataType.INT32)
