"""The further arguments of the functions that augmentations are made of."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace.auto_aug.core._errors import MissingArgException, UnusedArgException

if TYPE_CHECKING:
    from headrace.auto_aug.core._augmentation import Augmentation


def accepted(function: Callable[..., Any]) -> dict[str, bool]:
    """The further arguments of an augmentation's function, and whether they are needed."""
    parameters = list(inspect.signature(function).parameters.values())[2:]
    return {p.name: p.default is p.empty for p in parameters}


def require_kwargs(
    augmentations: Iterable[Augmentation], kwargs: dict[str, Any], call_name: str
) -> None:
    """Complain of arguments that an augmentation needs and the call `call_name` was not given.

    Raises `MissingArgException` if there is such.
    """
    for each in augmentations:
        for name, needed in accepted(each.op).items():
            if needed and name not in kwargs:
                raise MissingArgException(
                    f"The augmentation `{each.name}` requires `{name}` argument. Please provide it "
                    f"as `{name}` argument to `{call_name}` call."
                )


def forbid_unused_kwargs(
    augmentations: Iterable[Augmentation], kwargs: dict[str, Any], call_name: str
) -> None:
    """Complain of arguments of the call `call_name` that none of the augmentations takes.

    Raises `UnusedArgException` if there is such.
    """
    known = {name for each in augmentations for name in accepted(each.op)}
    unused = [name for name in kwargs if name not in known]
    if unused:
        which = f"kwargs `{', '.join(unused)}` are" if unused[1:] else f"kwarg `{unused[0]}` is"
        raise UnusedArgException(
            f"The {which} not used by any of the augmentations. `{call_name}` passes on to "
            "them what it does not take itself."
        )
