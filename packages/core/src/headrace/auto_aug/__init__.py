"""Automatic augmentation: AutoAugment, RandAugment, TrivialAugment, and parts of others.

Images are uint8 of the layout HWC, or sequences of them (FHWC), on the CPU or on a GPU. A sample
runs only the operators of the augmentations that are chosen for it.
"""

from headrace.auto_aug import augmentations, auto_augment, core, rand_augment, trivial_augment

__all__ = ["augmentations", "auto_augment", "core", "rand_augment", "trivial_augment"]
