"""Policies of AutoAugment."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from penstock.auto_aug.core._augmentation import Augmentation
from penstock.errors import ArgumentTypeError, ArgumentValueError

Step = tuple[Augmentation, float, int | None]


class Policy:
    """Sequences of augmentations, one of which is applied to each sample.

    Parameters
    ----------
    name
        For messages.
    num_magnitude_bins
        How many magnitudes each augmentation has.
    sub_policies
        Lists of ``(augmentation, probability, magnitude bin or None)``.
    """

    def __init__(
        self, name: str, num_magnitude_bins: int, sub_policies: Sequence[Sequence[Step]]
    ) -> None:
        if not isinstance(num_magnitude_bins, int) or num_magnitude_bins < 1:
            raise ArgumentValueError(
                f"The `num_magnitude_bins` must be a positive integer, got {num_magnitude_bins!r}."
            )
        if not isinstance(sub_policies, (list, tuple)):
            raise ArgumentTypeError(
                f"The `sub_policies` must be a list or tuple of sub policies, got {sub_policies!r}."
            )
        self.name = name
        self.num_magnitude_bins = num_magnitude_bins
        checked = [[_step(step, num_magnitude_bins) for step in each] for each in sub_policies]
        every = list(dict.fromkeys(augment for each in checked for augment, _, _ in each))
        self._renamed = {}
        for number, augment in enumerate(every):
            unique = sum(other.name == augment.name for other in every) == 1
            self._renamed[augment] = (
                augment if unique else augment.augmentation(name=f"{number}__{augment.name}")
            )
        self.sub_policies = [
            [(self._renamed[augment], p, magnitude) for augment, p, magnitude in each]
            for each in checked
        ]

    @property
    def augmentations(self) -> dict[str, Augmentation]:
        """All augmentations, by name."""
        return dict(sorted((each.name, each) for each in self._renamed.values()))

    def __repr__(self) -> str:
        steps = [
            "\n\t[" + ", ".join(f"({a.name!r}, {p}, {m})" for a, p, m in each) + "]"
            for each in self.sub_policies
        ]
        every = [f"\n\t{name!r}: {augment!r}" for name, augment in self.augmentations.items()]
        return (
            f"Policy(name={self.name!r}, num_magnitude_bins={self.num_magnitude_bins}, "
            f"sub_policies=[{','.join(steps)}], augmentations={{{','.join(every)}}})"
        )


def _step(step: Any, bins: int) -> Step:
    try:
        augment, probability, magnitude_bin = step
    except (TypeError, ValueError):
        raise ArgumentTypeError(
            "An operation of a sub policy is given as a triple, (augmentation, probability, "
            f"magnitude bin), got {step!r}."
        ) from None
    if not isinstance(augment, Augmentation):
        raise ArgumentTypeError(
            f"The first of a triple must be an instance of Augmentation, got {augment!r}."
        )
    if not 0 <= probability <= 1:
        raise ArgumentValueError(
            f"Probability of `{augment.name}` must be a number from `[0, 1]` range, got "
            f"{probability}."
        )
    if probability == 0:
        warnings.warn(f"The probability of `{augment.name}` is 0.", stacklevel=4)
    if augment.mag_range is None:
        if magnitude_bin is not None:
            warnings.warn(f"`{augment.name}` has no magnitudes; its bin is not used.", stacklevel=4)
        return augment, float(probability), None
    if not isinstance(magnitude_bin, int) or not 0 <= magnitude_bin < bins:
        raise ArgumentValueError(
            f"The magnitude bin of `{augment.name}` must be an integer from 0 to {bins - 1}, got "
            f"{magnitude_bin!r}."
        )
    return augment, float(probability), magnitude_bin
