"""What augmentations and policies are built of."""

from penstock.auto_aug.core._augmentation import Augmentation, signed_bin
from penstock.auto_aug.core._errors import MissingArgException, UnusedArgException
from penstock.auto_aug.core._select import select
from penstock.auto_aug.core.decorator import augmentation
from penstock.auto_aug.core.policy import Policy

__all__ = [
    "Augmentation",
    "MissingArgException",
    "Policy",
    "UnusedArgException",
    "augmentation",
    "select",
    "signed_bin",
]
