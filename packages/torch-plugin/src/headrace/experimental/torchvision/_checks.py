"""Checks of arguments that are wrong for every image, made when a transform is, as DALI does.

torchvision's classes find them at the first image, which may be in another process.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from headrace.errors import ArgumentValueError, ConversionError, MisusedArgumentError
from headrace.experimental.torchvision._resize import check_interpolation


def check_size(size: Any, max_size: Any = None) -> None:
    """Raise if no image can be resized so."""
    sizes = [] if size is None else list(size) if isinstance(size, list | tuple) else [size]
    for number in sizes:
        try:
            whole = operator.index(number)
        except TypeError:
            raise ConversionError(
                f"`size` is {size!r}: lengths are integers, and {number!r} is none."
            ) from None
        if whole <= 0:
            raise ArgumentValueError(f"`size` is {size!r}: lengths have to be above 0.")
    if max_size is None:
        return
    if len(sizes) > 1:
        raise MisusedArgumentError(
            f"`max_size` is {max_size!r} and `size` {size!r}: max_size should only be passed with "
            "the length of the shorter edge, as one integer, or without `size`."
        )
    if max_size < 0 or (sizes and max_size < sizes[0]):
        raise MisusedArgumentError(
            f"`max_size` is {max_size!r}: the longer edge cannot be shorter than the shorter one, "
            f"{sizes[0] if sizes else 0} (`size`)."
        )


def check_channels(count: Any) -> None:
    """Raise for a number of channels that grey images do not have."""
    if count not in (1, 3):
        raise ArgumentValueError(f"`num_output_channels` is {count!r}; it can be 1 or 3.")


def _resize(transform: Any) -> None:
    check_size(transform.size, transform.max_size)
    _interpolation(transform)


def _resized_crop(transform: Any) -> None:
    check_size(transform.size)
    _interpolation(transform)


def _interpolation(transform: Any) -> None:
    try:
        check_interpolation(transform.interpolation)
    except KeyError:  # a number of Pillow's that is none
        raise ArgumentValueError(
            f"`interpolation` is {transform.interpolation!r}; use an `InterpolationMode`."
        ) from None


CHECKS: dict[str, Callable[[Any], None]] = {
    "Grayscale": lambda transform: check_channels(transform.num_output_channels),
    "RandomResizedCrop": _resized_crop,
    "Resize": _resize,
}
"""The checks of a transform that has just been made, by its class."""
