"""RandAugment (https://arxiv.org/abs/1909.13719)."""

from __future__ import annotations

import warnings
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


def rand_augment(
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    shape: DataNode | tuple[int, int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
    seed: int | None = None,
    monotonic_mag: bool = True,
    excluded: Sequence[str] | None = None,
) -> DataNode:
    """Apply `n` augmentations, drawn for each sample, of magnitude `m`.

    Parameters
    ----------
    data
        uint8 images (HWC) or sequences of them (FHWC).
    n
        Number of augmentations.
    m
        Magnitude bin, from 0 to ``num_magnitude_bins - 1``.
    num_magnitude_bins
        Number of magnitudes.
    shape
        Height and width of the images, for all or for each: then translations are shares of it.
    fill_value
        Value of pixels from outside of the images; their outermost pixels if `None`.
    interp_type
        Interpolation of what moves pixels.
    max_translate_abs, max_translate_rel
        Longest translations, in pixels (100 when not given), or shares where there is a `shape`.
    seed
        Of what is drawn.
    monotonic_mag
        True if all augmentations become stronger with their bins.
    excluded
        Names of augmentations that are left out.
    """
    if n == 0:
        warnings.warn("`rand_augment` with `n=0` leaves the data as it is.", stacklevel=2)
    suite = get_rand_augment_suite if monotonic_mag else get_rand_augment_non_monotonic_suite
    chosen = without(suite(shape is not None, max_translate_abs, max_translate_rel), excluded)
    kwargs = warp_arguments(shape, fill_value, interp_type)
    return apply_rand_augment(
        chosen, data, n, m, num_magnitude_bins=num_magnitude_bins, seed=seed, **kwargs
    )


def apply_rand_augment(
    augmentations: Sequence[Augmentation],
    data: DataNode,
    n: int,
    m: int,
    num_magnitude_bins: int = 31,
    seed: int | None = None,
    **kwargs: Any,
) -> DataNode:
    """Apply `n` of `augmentations`, drawn for each sample, of magnitude `m`.

    Further arguments are passed on to the augmentations that take them.
    """
    if not augmentations:
        raise ArgumentValueError("The `augmentations` list cannot be empty.")
    check_bins(num_magnitude_bins)
    if not isinstance(n, int) or n < 0:
        raise ArgumentValueError(
            f"The number of operations to apply `n` must be a non-negative integer, got {n!r}."
        )
    if not 0 <= m < num_magnitude_bins:
        raise ArgumentValueError(
            f"`m` must be an integer from `[0, {num_magnitude_bins - 1}]` range. Got {m}."
        )
    forbid_unused_kwargs(augmentations, kwargs, "apply_rand_augment")
    require_kwargs(augmentations, kwargs, "apply_rand_augment")
    for stage in range(n):
        index = drawn(len(augmentations), seed, 2 * stage)
        own = None if seed is None else seed + 2 * stage + 1
        negates = any(each.randomly_negate for each in augmentations)
        data = select(
            augmentations,
            index,
            data,
            magnitude_bin=signed_bin(m, seed=own) if negates else m,
            num_magnitude_bins=num_magnitude_bins,
            **kwargs,
        )
    return data


def get_rand_augment_suite(
    use_shape: bool = False,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
) -> list[Augmentation]:
    """The augmentations of RandAugment, stronger with their magnitudes."""
    return [
        *_get_translations(use_shape, 100, 100 / 224, max_translate_abs, max_translate_rel),
        *(a.shear_x, a.shear_y, a.rotate, a.brightness, a.contrast, a.color, a.sharpness),
        a.posterize.augmentation(mag_range=(8, 4)),
        *(a.solarize, a.equalize, a.auto_contrast, a.identity),
    ]


def get_rand_augment_non_monotonic_suite(
    use_shape: bool = False,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
) -> list[Augmentation]:
    """The augmentations of RandAugment with the magnitudes of AutoAugment."""
    return [
        *_get_translations(use_shape, 100, 100 / 224, max_translate_abs, max_translate_rel),
        *(a.shear_x, a.shear_y, a.rotate),
        *enhancements(),
        a.posterize,
        a.solarize.augmentation(mag_range=(0, 256)),
        *(a.equalize, a.auto_contrast, a.identity),
    ]


def enhancements() -> list[Augmentation]:
    """Brightness, contrast, colour and sharpness by factors from 0.1 to 1.9."""
    import numpy as np

    plain = [
        each.augmentation(mag_range=(0.1, 1.9), randomly_negate=False, mag_to_param=np.float32)
        for each in (a.brightness, a.contrast, a.color)
    ]
    sharp = a.sharpness.augmentation(
        mag_range=(0.1, 1.9), randomly_negate=False, mag_to_param=a.sharpness_kernel_shifted
    )
    return [*plain, sharp]
