"""TrivialAugment (https://arxiv.org/abs/2103.10158)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from headrace.auto_aug import augmentations as a
from headrace.auto_aug.core import Augmentation, select, signed_bin
from headrace.auto_aug.core._args import forbid_unused_kwargs, require_kwargs
from headrace.auto_aug.core._utils import check_bins, drawn, warp_arguments, without
from headrace.auto_aug.core._utils import get_translations as _get_translations
from headrace.errors import ArgumentValueError
from headrace.graph.data_node import DataNode
from headrace.types import DALIInterpType


def trivial_augment_wide(
    data: DataNode,
    num_magnitude_bins: int = 31,
    shape: DataNode | tuple[int, int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
    seed: int | None = None,
    excluded: Sequence[str] | None = None,
) -> DataNode:
    """Apply one augmentation, drawn for each sample, of a drawn magnitude.

    Parameters are those of `headrace.auto_aug.rand_augment.rand_augment`; translations are up to 32
    pixels, or the whole shape.
    """
    suite = get_trivial_augment_wide_suite(shape is not None, max_translate_abs, max_translate_rel)
    kwargs = warp_arguments(shape, fill_value, interp_type)
    return apply_trivial_augment(
        without(suite, excluded), data, num_magnitude_bins=num_magnitude_bins, seed=seed, **kwargs
    )


def apply_trivial_augment(
    augmentations: Sequence[Augmentation],
    data: DataNode,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Apply one of `augmentations`, drawn for each sample, of a drawn magnitude.

    Further arguments are passed on to the augmentations that take them.
    """
    if not augmentations:
        raise ArgumentValueError("The `augmentations` list cannot be empty.")
    check_bins(num_magnitude_bins)
    forbid_unused_kwargs(augmentations, kwargs, "apply_trivial_augment")
    require_kwargs(augmentations, kwargs, "apply_trivial_augment")
    index = drawn(len(augmentations), seed, 0)
    magnitude: Any = drawn(num_magnitude_bins, seed, 1)
    if any(each.randomly_negate for each in augmentations):
        magnitude = signed_bin(magnitude, seed=None if seed is None else seed + 2)
    return select(
        augmentations,
        index,
        data,
        magnitude_bin=magnitude,
        num_magnitude_bins=num_magnitude_bins,
        **kwargs,
    )


def get_trivial_augment_wide_suite(
    use_shape: bool = False,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
) -> list[Augmentation]:
    """The augmentations of TrivialAugment, with its wide ranges."""
    enhanced = (a.brightness, a.contrast, a.color, a.sharpness)
    return [
        *_get_translations(use_shape, 32, 1.0, max_translate_abs, max_translate_rel),
        a.shear_x.augmentation(mag_range=(0, 0.99)),
        a.shear_y.augmentation(mag_range=(0, 0.99)),
        a.rotate.augmentation(mag_range=(0, 135)),
        *(each.augmentation(mag_range=(0.01, 0.99)) for each in enhanced),
        a.posterize.augmentation(mag_range=(8, 2)),
        *(a.solarize, a.equalize, a.auto_contrast, a.identity),
    ]
