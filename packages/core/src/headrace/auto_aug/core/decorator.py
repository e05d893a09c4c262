"""`augmentation`, which makes augmentations of functions."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, overload

from headrace.auto_aug.core._augmentation import Augmentation, Magnitudes
from headrace.errors import ArgumentTypeError


@overload
def augmentation(function: Callable[..., Any], /) -> Augmentation: ...
@overload
def augmentation(
    function: None = None,
    *,
    mag_range: Magnitudes = None,
    randomly_negate: bool | None = None,
    mag_to_param: Callable[[float], Any] | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Callable[[Callable[..., Any]], Augmentation]: ...
def augmentation(
    function: Callable[..., Any] | None = None,
    *,
    mag_range: Magnitudes = None,
    randomly_negate: bool | None = None,
    mag_to_param: Callable[[float], Any] | None = None,
    param_device: str | None = None,
    name: str | None = None,
    augmentation_cls: type[Augmentation] | None = None,
) -> Any:
    """Make an augmentation of ``function(data, param, ...)``.

    Parameters
    ----------
    function
        Takes data, the parameter of a magnitude, and further arguments by name; returns data.
    mag_range
        First and last magnitude, which bins are spread evenly between, or an array with all.
        Without it, the parameter is `None`.
    randomly_negate
        True if magnitudes get a random sign.
    mag_to_param
        Makes a parameter (a number or an array) of a magnitude, once for each when the pipeline is
        defined.
    param_device
        Device of the parameter: ``"cpu"``, as when it is not given, ``"gpu"``, or
        ``"auto"``, where the data is.
    name
        That of the function when not given.
    augmentation_cls
        A sub-class of `Augmentation`.
    """

    def make(function: Callable[..., Any]) -> Augmentation:
        if isinstance(function, Augmentation):
            raise ArgumentTypeError(
                "The `@augmentation` was applied to already decorated Augmentation. Its method "
                "`augmentation` makes others of it."
            )
        if not callable(function):
            raise ArgumentTypeError(f"An augmentation is a function, got {function!r}.")
        positional = [
            p
            for p in inspect.signature(function).parameters.values()
            if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
        ]
        if len(positional) < 2:
            raise ArgumentTypeError(
                f"The function accepts {len(positional)} positional argument(s), but the functions "
                "decorated by `@augmentation` take data and a parameter by position; got "
                f"{inspect.signature(function)}."
            )
        cls = augmentation_cls or Augmentation
        return cls(function, mag_range, mag_to_param, randomly_negate, param_device, name)

    return make if function is None else make(function)
