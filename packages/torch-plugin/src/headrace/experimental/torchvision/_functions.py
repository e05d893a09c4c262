"""All names of ``torchvision.transforms.v2.functional``, with ours in place of what dispatches."""

from __future__ import annotations

from functools import wraps
from types import ModuleType, SimpleNamespace
from typing import Any

from headrace.errors import ArgumentValueError
from headrace.experimental.torchvision import _conversion as _ours
from headrace.experimental.torchvision import _kernels as _kernels  # fills the table
from headrace.experimental.torchvision._dispatch import (
    KERNELS,
    Kernel,
    function_of,
    kernel_function_of,
)
from headrace.experimental.torchvision._installed import torchvision_module

THEIRS = torchvision_module("transforms.v2.functional")
_REGISTRY = torchvision_module("transforms.v2.functional._utils")._KERNEL_REGISTRY
_CONVERSIONS = ("pil_to_tensor", "to_image", "to_pil_image", "to_tensor")


def _conversion(original: Kernel) -> Kernel:
    """Our function for one of torchvision's that is in no table of its own."""
    ours: Kernel = getattr(_ours, original.__name__)
    if original.__name__ == "to_pil_image":
        return _to_pil_image(original)
    return wraps(original)(lambda inpt: ours(inpt))


def _to_pil_image(original: Kernel) -> Kernel:
    @wraps(original, assigned=("__module__", "__name__", "__qualname__", "__doc__"))
    def to_pil_image(pic: Any, mode: str | None = None, input_layout: str = "CHW") -> Any:
        if input_layout not in ("CHW", "HWC"):
            raise ArgumentValueError(f"`input_layout` is {input_layout!r}; it can be CHW or HWC.")
        return _ours.to_pil_image(pic, mode, input_layout)

    del to_pil_image.__wrapped__  # its signature is another one
    return to_pil_image


def _register_kernel(original: Kernel) -> Kernel:
    @wraps(original)
    def register_kernel(functional: Any, tv_tensor_cls: type) -> Any:
        return original(getattr(functional, "__wrapped__", functional), tv_tensor_cls)

    return register_kernel


def functions() -> dict[str, Any]:
    """The names and what they stand for; aliases are one function, as in torchvision."""
    found: dict[str, Any] = {}
    ours: dict[Any, Any] = {}
    for name, value in vars(THEIRS).items():
        if name.startswith("_") or isinstance(value, ModuleType):
            continue
        stem, _, kind = name.rpartition("_")
        if callable(value) and value in _REGISTRY:
            if value not in ours:
                ours[value] = function_of(value)
            value = ours[value]
        elif kind in ("image", "video") and "tensor" in KERNELS.get(stem, ()):
            value = kernel_function_of(value, stem)
        elif name in _CONVERSIONS:
            value = _conversion(value)
        elif name == "register_kernel":
            value = _register_kernel(value)
        found[name] = value
    return found


OURS = SimpleNamespace(**functions())
"""The names as attributes."""
