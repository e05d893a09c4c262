"""Building blocks of augmentations and policies."""

from headrace.auto_aug.core._augmentation import Augmentation, signed_bin
from headrace.auto_aug.core._errors import MissingArgException, UnusedArgException
from headrace.auto_aug.core._select import select
from headrace.auto_aug.core.decorator import augmentation
from headrace.auto_aug.core.policy import Policy

__all__ = [
    "Augmentation",
    "MissingArgException",
    "Policy",
    "UnusedArgException",
    "augmentation",
    "select",
    "signed_bin",
]
