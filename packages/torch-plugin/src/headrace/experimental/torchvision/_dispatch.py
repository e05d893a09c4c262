"""Choice of a kernel: this engine's, where it has one for the input, and torchvision's otherwise.

A kernel of ours takes the arguments of torchvision's and gives its values, within a level of uint8.
It returns `NotImplemented` for what it was not made for: other element types, devices, gradients.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, wraps
from inspect import Parameter, Signature, signature
from typing import Any

import torch
from numba.core.errors import NumbaError

from headrace.errors import ArgumentValueError
from headrace.experimental.torchvision._inputs import (
    as_array,
    as_tensor,
    check_mode,
    is_array_image,
    kind_of,
    on_device,
    tv_tensors,
)
from headrace.experimental.torchvision._installed import torchvision_module

_THEIRS = torchvision_module("transforms.v2.functional")
_REGISTRY = torchvision_module("transforms.v2.functional._utils")._KERNEL_REGISTRY

Kernel = Callable[..., Any]

KERNELS: dict[str, dict[str, Kernel]] = {}
"""Our kernels, by the function's name and the kind of input."""

_TAKES_ANY_MODE = frozenset({"grayscale_to_rgb", "get_size", "get_dimensions", "get_num_channels"})

DALI_FUNCTIONS = frozenset(
    {
        *("center_crop", "crop", "resized_crop", "resize", "pad", "horizontal_flip"),
        *("vertical_flip", "gaussian_blur", "normalize", "to_grayscale", "rgb_to_grayscale"),
    }
)
"""Functions that have `device`, as DALI's."""


def kernel(name: str, *kinds: str) -> Callable[[Kernel], Kernel]:
    """Enter a function into the table."""

    def enter(function: Kernel) -> Kernel:
        for kind in kinds:
            KERNELS.setdefault(name, {})[kind] = function
        return function

    return enter


def _on_pure_tensors(run: Kernel) -> Kernel:
    """A kernel for tv_tensors: without their overhead inside, and with their type outside."""

    @wraps(run)
    def wrapper(image: Any, *args: Any, **kwargs: Any) -> Any:
        output = run(image.as_subclass(torch.Tensor), *args, **kwargs)
        if output is NotImplemented:
            return output
        return tv_tensors.wrap(output, like=image)

    return wrapper


def _own_kernel(name: str, cls: type) -> Kernel | None:
    kind = kind_of(cls)
    found = KERNELS.get(name, {}).get(kind) if kind else None
    if found is None or kind == "pil" or cls is torch.Tensor:
        return found
    if cls not in _REGISTRY[getattr(_THEIRS, name)]:  # some pass videos through
        return None
    return _on_pure_tensors(found)


own_kernel: Callable[[str, Any], Kernel | None] = cache(_own_kernel)
"""Our kernel of a function for inputs of a class."""


def attempt(run: Kernel, *args: Any, **kwargs: Any) -> Any:
    """Run a kernel of ours; `NotImplemented`, too, for arguments that it cannot work with.

    torchvision's then takes them, such as a factor that is a tensor, or says what is wrong.
    """
    try:
        return run(*args, **kwargs)
    except (TypeError, ValueError, AttributeError, NumbaError):
        return NotImplemented


def _dispatched(original: Kernel, name: str, inpt: Any, args: Any, kwargs: Any, values: str) -> Any:
    if name not in _TAKES_ANY_MODE:
        check_mode(inpt)
    if values != "torchvision":
        run = kernel_of_dali(name, inpt)
        if run is not None:
            return run(inpt, *args, **kwargs)
    run = own_kernel(name, type(inpt))
    if run is not None and not torch.compiler.is_compiling():
        output = attempt(run, inpt, *args, **kwargs)
        if output is not NotImplemented:
            return output
    return original(inpt, *args, **kwargs)


def kernel_of_dali(name: str, inpt: Any) -> Kernel | None:
    """The function that has DALI's values, where they are others; dynamic mode is imported here."""
    from headrace.experimental.torchvision._dali_values import dali_kernel

    return dali_kernel(name, inpt)


def check_values(values: str) -> str:
    """One of the libraries whose values there are."""
    if values not in ("torchvision", "dali"):
        raise ArgumentValueError(f"`values` is {values!r}; it can be 'torchvision' or 'dali'.")
    return values


def function_of(original: Kernel) -> Kernel:
    """The function of ours that takes the place of one of torchvision's."""
    name = original.__name__
    parameters = list(signature(original).parameters.values())
    first = parameters[0].name
    has_device = name in DALI_FUNCTIONS
    count = len(parameters)

    @wraps(original)
    def function(*args: Any, **kwargs: Any) -> Any:
        device, values = "cpu", "torchvision"
        if has_device:
            if len(args) > count:
                *rest, device = args
                args = tuple(rest)
            device = kwargs.pop("device", device)
            values = check_values(kwargs.pop("values", values))
        if not args:
            if first not in kwargs:
                return original(**kwargs)  # says what is missing
            args = (kwargs.pop(first),)
        inpt = on_device(args[0], device)
        if is_array_image(inpt, alone=True):
            output = _dispatched(original, name, as_tensor(inpt), args[1:], kwargs, values)
            return as_array(output, inpt.ndim)
        return _dispatched(original, name, inpt, args[1:], kwargs, values)

    if has_device:
        device = Parameter("device", Parameter.POSITIONAL_OR_KEYWORD, default="cpu")
        values = Parameter("values", Parameter.KEYWORD_ONLY, default="torchvision")
        function.__signature__ = Signature([*parameters, device, values])  # type: ignore[attr-defined]
    return function


def kernel_function_of(original: Kernel, name: str) -> Kernel:
    """The function of ours that takes the place of a kernel, such as `resize_image`."""

    @wraps(original)
    def function(image: Any, *args: Any, **kwargs: Any) -> Any:
        run = KERNELS[name]["tensor"]
        if type(image) is torch.Tensor and not torch.compiler.is_compiling():
            output = attempt(run, image, *args, **kwargs)
            if output is not NotImplemented:
                return output
        return original(image, *args, **kwargs)

    return function
