"""All names of ``torchvision.transforms.v2``: one base, and its classes out of a table.

A class is torchvision's, whose arguments, random values and structure of samples it keeps, below
`Transform`, which runs our kernels, takes NumPy arrays, and compares.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.utils._pytree import tree_flatten, tree_unflatten

from headrace.experimental.torchvision import _conversion
from headrace.experimental.torchvision import _kernels as _kernels  # fills the table
from headrace.experimental.torchvision._checks import CHECKS
from headrace.experimental.torchvision._dispatch import (
    attempt,
    check_values,
    kernel_of_dali,
    own_kernel,
)
from headrace.experimental.torchvision._functions import OURS
from headrace.experimental.torchvision._inputs import (
    IMAGES,
    as_array,
    as_tensor,
    check_mode,
    is_array_image,
    kind_of,
    on_device,
)
from headrace.experimental.torchvision._installed import torchvision_module
from headrace.experimental.torchvision._rebound import rebound

THEIRS = torchvision_module("transforms.v2")
_RandomApply = torchvision_module("transforms.v2._transform")._RandomApplyTransform
_parse_labels_getter = torchvision_module("transforms.v2._utils")._parse_labels_getter
_PLAIN_FORWARDS = (THEIRS.Transform.forward, _RandomApply.forward)
MODULE = f"{__package__}.v2"
_CONTAINERS = ("Compose", "RandomApply", "RandomChoice", "RandomOrder")
_TAKES_ANY_MODE = ("RGB", "Identity", "Lambda", *_CONTAINERS)
_OWN_STATE = frozenset(nn.Module().__dict__)

_DEVICE = {"device": "cpu"}
DALI_CLASSES: dict[str, dict[str, Any]] = {
    "CenterCrop": _DEVICE,
    "ColorJitter": _DEVICE,
    "GaussianBlur": {**_DEVICE, "seed": -1},
    "Grayscale": _DEVICE,
    "Normalize": _DEVICE,
    "PILToTensor": _DEVICE,
    "Pad": _DEVICE,
    "RandomApply": _DEVICE,
    "RandomCrop": _DEVICE,
    "RandomGrayscale": _DEVICE,
    "RandomHorizontalFlip": _DEVICE,
    "RandomResizedCrop": _DEVICE,
    "RandomVerticalFlip": _DEVICE,
    "Resize": _DEVICE,
    "ToPILImage": _DEVICE,
    "ToPureTensor": _DEVICE,
}
"""Arguments that DALI's classes have after torchvision's, and their defaults."""


_CONVERTERS: dict[str, Any] = {
    "PILToTensor": lambda self, inpt, params: _conversion.pil_to_tensor(inpt),
    "ToImage": lambda self, inpt, params: _conversion.to_image(inpt),
    "ToPILImage": lambda self, inpt, params: _conversion.to_pil_image(inpt, self.mode),
}
"""`transform` of those that call torchvision's functions themselves."""


def _jitter(self: Any, inpt: Any, params: dict[str, Any]) -> Any:
    """`transform` of `ColorJitter`: DALI changes all colours at once."""
    if self._values == "torchvision" or kind_of(type(inpt)) is None:
        return THEIRS.ColorJitter.transform(self, inpt, params)
    from headrace.experimental.torchvision._dali_values import twist

    return twist(inpt, params)


_CONVERTERS["ColorJitter"] = _jitter


class Transform(THEIRS.Transform):  # type: ignore[misc, name-defined]
    """Base of all transforms, and of your own: override `make_params` and `transform`.

    Samples are what torchvision's take: an image, or any structure of images, boxes, masks and
    labels. Besides PIL images, tensors and tv_tensors, images may be NumPy arrays HWC.
    """

    _device: str = "cpu"
    _values: str = "torchvision"
    _seed: int = -1
    _generator: torch.Tensor | None = None

    def forward(self, *inputs: Any) -> Any:
        """Transform a sample; do not override this, but `transform`."""
        sample: Any = inputs if len(inputs) > 1 else inputs[0]
        cls = type(sample)
        if self._is_quick and (cls in IMAGES or (kind_of(cls) == "pil" and sample.mode != "CMYK")):
            if self._device != "cpu":
                sample = on_device(sample, self._device)
            if self._checks:
                self.check_inputs([sample])
            if self._by_chance and torch.rand(1) >= self.p:
                return sample
            return self.transform(sample, self._params([sample]) if self._draws else {})
        spec = None
        if cls in IMAGES or kind_of(cls) == "pil":
            flat = [sample]
        else:
            flat, spec = tree_flatten(sample)
        if self._device != "cpu":
            flat = [on_device(value, self._device) for value in flat]
        mine = type(self)
        if mine._mode_matters:
            for value in flat:
                check_mode(value)
        arrays = self._arrays(flat) if any(isinstance(v, np.ndarray) for v in flat) else {}
        for at, array in arrays.items():
            flat[at] = as_tensor(array)
        if mine._has_plain_forward:
            outputs = self._plain(flat)
            if outputs is None:  # left alone by chance
                return sample
        elif not arrays and self._device == "cpu":
            return super().forward(*inputs)
        else:
            inner = tree_unflatten(flat, spec) if spec is not None else flat[0]
            inner = super().forward(*inner) if len(inputs) > 1 else super().forward(inner)
            if spec is None or not arrays:
                return inner
            outputs, spec = tree_flatten(inner)
        for at, array in arrays.items():
            outputs[at] = as_array(outputs[at], array.ndim)
        return outputs[0] if spec is None else tree_unflatten(outputs, spec)

    def _plain(self, flat: list[Any]) -> list[Any] | None:
        self.check_inputs(flat)
        if self._by_chance and torch.rand(1) >= self.p:
            return None
        needs = self._needs_transform_list(flat)
        wanted = [value for value, need in zip(flat, needs, strict=True) if need]
        params = self._params(wanted)
        return [
            self.transform(value, params) if need else value
            for value, need in zip(flat, needs, strict=True)
        ]

    def _params(self, wanted: list[Any]) -> dict[str, Any]:
        """Draw random values, of the generator that is to be taken."""
        if self._seed < 0:
            return self.make_params(wanted)  # type: ignore[no-any-return]
        with own_random_values(self):
            return self.make_params(wanted)  # type: ignore[no-any-return]

    def _arrays(self, flat: list[Any]) -> dict[int, np.ndarray]:
        """The arrays that are images: the first, unless there is another image, as with tensors."""
        types = self._transformed_types
        if type(self)._contains or np.ndarray in types or torch.Tensor not in types:
            return {}
        if any(type(value) in IMAGES or kind_of(type(value)) for value in flat):
            return {}
        for at, value in enumerate(flat):
            if is_array_image(value, alone=len(flat) == 1):
                return {at: value}
        return {}

    def _call_kernel(self, functional: Any, inpt: Any, *args: Any, **kwargs: Any) -> Any:
        if self._values != "torchvision":
            run = kernel_of_dali(functional.__name__, inpt)
            if run is not None:
                return run(inpt, *args, **kwargs)
        run = own_kernel(functional.__name__, type(inpt))
        if run is not None and not torch.compiler.is_compiling():
            output = attempt(run, inpt, *args, **kwargs)
            if output is not NotImplemented:
                return output
        return super()._call_kernel(functional, inpt, *args, **kwargs)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        theirs = next((c for c in cls.__mro__ if c.__module__.startswith("torchvision.")), None)
        cls._has_plain_forward = getattr(theirs, "forward", None) in _PLAIN_FORWARDS
        cls._contains = cls._contains or cls.__name__ in _CONTAINERS
        cls._mode_matters = cls._mode_matters and cls.__name__ not in _TAKES_ANY_MODE

        # Of one image, there is nothing to look for.
        cls._is_quick = (
            cls._has_plain_forward
            and cls._transformed_types is THEIRS.Transform._transformed_types
            and cls._needs_transform_list is THEIRS.Transform._needs_transform_list
        )
        cls._checks = cls.check_inputs is not THEIRS.Transform.check_inputs
        cls._draws = cls.make_params is not THEIRS.Transform.make_params
        cls._by_chance = issubclass(cls, _RandomApply)

    _is_quick = _checks = _draws = True
    _by_chance = False
    _contains = False
    _has_plain_forward = True
    _mode_matters = True

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return _state(self) == _state(other)

    def __hash__(self) -> int:
        return hash(type(self))

    def __getstate__(self) -> dict[str, Any]:
        # What `labels_getter` was made into may be a function without a name.
        return {n: v for n, v in vars(self).items() if n != "_labels_getter"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "labels_getter" in state:
            self._labels_getter = _parse_labels_getter(state["labels_getter"])


@contextmanager
def own_random_values(transform: Any) -> Iterator[None]:
    """Draw from the generator that the transform's seed began, and leave PyTorch's as it is."""
    before = torch.get_rng_state()
    try:
        if transform._generator is None:
            torch.manual_seed(transform._seed)
        else:
            torch.set_rng_state(transform._generator)
        yield
        transform._generator = torch.get_rng_state()
    finally:
        torch.set_rng_state(before)


class _Same:
    """A tensor or array as something that compares as a whole."""

    def __init__(self, value: Any) -> None:
        self._value = np.asarray(value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same) and np.array_equal(self._value, other._value)

    __hash__ = None  # type: ignore[assignment]


def _state(transform: Any) -> dict[str, Any]:
    """State in which a transform differs from others of its class."""
    own = {n: v for n, v in transform.__getstate__().items() if n not in _OWN_STATE}
    state = {**own, **transform._parameters, **transform._buffers, **transform._modules}
    return {
        name: _Same(v.cpu() if isinstance(v, torch.Tensor) else v)
        if isinstance(v, torch.Tensor | np.ndarray)
        else v
        for name, v in state.items()
    }


def _class_of(theirs: type) -> type:
    """Our class for one of torchvision's."""
    name = theirs.__name__
    extra = DALI_CLASSES.get(name, {})
    members: dict[str, Any] = {"__module__": MODULE, "__doc__": theirs.__doc__}
    if name in _CONVERTERS:
        members["transform"] = _CONVERTERS[name]
    apply = getattr(theirs, "_apply_image_or_video_transform", None)
    if apply is not None:  # of automatic augmentation, which calls functions by their names
        members[apply.__name__] = rebound(apply, F=OURS)
    if extra:
        signature = inspect.signature(theirs)
        parameters = list(signature.parameters.values())
        count = len(parameters)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters += [inspect.Parameter(n, kind, default=d) for n, d in extra.items()]
        last = inspect.Parameter.KEYWORD_ONLY
        parameters.append(inspect.Parameter("values", last, default="torchvision"))

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:  # noqa: N807
            rest = dict(zip(extra, args[count:], strict=False))
            found = {n: kwargs.pop(n) for n in extra if n in kwargs}
            values = check_values(kwargs.pop("values", "torchvision"))
            if rest.keys() & found.keys() or len(args) > count + len(extra):
                signature.bind(*args, **kwargs)  # says what is wrong
            if "op_list" in kwargs:  # DALI's name
                kwargs["transforms"] = kwargs.pop("op_list")
            super(ours, self).__init__(*args[:count], **kwargs)
            if name in CHECKS:
                CHECKS[name](self)
            for n, value in {**rest, **found}.items():
                if value != extra[n]:
                    setattr(self, f"_{n}", value)
            if values != "torchvision":
                self._values = values

        members["__init__"] = __init__
        members["__signature__"] = inspect.Signature(parameters)
    ours: Any = type(name, (Transform, theirs), members)
    return ours  # type: ignore[no-any-return]


def transforms() -> dict[str, Any]:
    """The names and what they stand for."""
    found: dict[str, Any] = {}
    for name, value in vars(THEIRS).items():
        if name.startswith("_") or isinstance(value, ModuleType):
            continue
        if value is THEIRS.Transform:
            value = Transform
        elif isinstance(value, type) and issubclass(value, THEIRS.Transform):
            value = _class_of(value)
        found[name] = value
    return found


Transform.__module__ = MODULE
