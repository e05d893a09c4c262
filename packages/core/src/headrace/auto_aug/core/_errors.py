"""Errors of arguments that are passed on to augmentations."""

from __future__ import annotations

from headrace.errors import ArgumentTypeError, ArgumentValueError


class MissingArgException(ArgumentTypeError):  # noqa: N818 - DALI's name
    """An augmentation needs an argument that was not given."""


class UnusedArgException(ArgumentTypeError):  # noqa: N818 - DALI's name
    """An argument was given that no augmentation takes."""


class MagnitudeBinError(ArgumentValueError, IndexError):
    """There is no magnitude of that number."""
