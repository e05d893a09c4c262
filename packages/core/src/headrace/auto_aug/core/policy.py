"""Policies of AutoAugment."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from headrace.auto_aug.core._augmentation import Augmentation
from headrace.errors import ArgumentTypeError, ArgumentValueError

Step = tuple[Augmentation, float, int | None]


class Policy:
    """Sequences of augmentations, one of which is applied to each sample.

    Parameters
    ----------
    name
        For messages.
    num_magnitude_bins
        Number of magnitudes of each augmentation.
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
        for each in sub_policies:
            if not isinstance(each, (list, tuple)):
                raise ArgumentTypeError(
                    f"Each sub policy must be a list or tuple of operations, got {each!r}."
                )
        checked = [[_step(step, num_magnitude_bins) for step in each] for each in sub_policies]
        every = list(dict.fromkeys(augment for each in checked for augment, _, _ in each))
        self._renamed = {}
        names_differ = len({augment.name for augment in every}) == len(every)
        digits = len(str(len(every) - 1))
        for number, augment in enumerate(every):
            name = f"{number:0{digits}}__{augment.name}"
            self._renamed[augment] = augment if names_differ else augment.augmentation(name=name)
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
            "Each operation in sub policy must be specified as a triple: (augmentation, "
            f"probability, magnitude). Got {step!r}."
        ) from None
    if not isinstance(augment, Augmentation):
        raise ArgumentTypeError(
            f"The first of a triple must be an instance of Augmentation. Got `{augment!r}`; "
            "`@augmentation` makes one of a function."
        )
    if not 0 <= probability <= 1:
        raise ArgumentValueError(
            f"Probability of `{augment.name}` must be a number from `[0, 1]` range. Got "
            f"`{probability}`."
        )
    if probability == 0:
        warnings.warn(
            f"`{augment.name}` has the probability 0 in one of the sub-policies: it is never "
            "applied there.",
            stacklevel=4,
        )
    if augment.mag_range is None:
        if magnitude_bin is not None:
            warnings.warn(
                f"Magnitude bin {magnitude_bin} of `{augment.name}` is not used: The augmentation "
                "does not accept magnitudes.",
                stacklevel=4,
            )
        return augment, float(probability), None
    if magnitude_bin is None:
        raise ArgumentValueError(
            f"`{augment.name}` has magnitudes, so the magnitude bin is required; got None."
        )
    if not isinstance(magnitude_bin, int) or not 0 <= magnitude_bin < bins:
        raise ArgumentValueError(
            f"Magnitude bin of `{augment.name}` must be an integer from `[0, {bins - 1}]` range. "
            f"Got `{magnitude_bin!r}`."
        )
    return augment, float(probability), magnitude_bin
