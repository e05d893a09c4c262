"""Orders that users give as `sampler=`: indices, files of them, iterables and functions."""

from __future__ import annotations

import copy
import os
import random
import sys
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, BadSampleError
from headrace.kernels.cpu import sample_orders
from headrace.operators.readers.epochs import EpochOrders, Numbers
from headrace.operators.readers.samplers import EpochSampler, hash_of
from headrace.operators.readers.storage import is_remote, read_file
from headrace.operators.support.argument_types import ArgType
from headrace.types.arrays import is_array, to_numpy

if TYPE_CHECKING:
    from headrace.operators.readers.index import Index

_KINDS = (
    "an array or a file of indices, an iterable such as a `Sampler` of PyTorch, a function of the "
    "epoch, or one of `headrace.samplers`"
)


def _checked(value: Any) -> Any:
    if isinstance(value, (EpochSampler, str)) or hasattr(value, "__fspath__"):
        return value if isinstance(value, EpochSampler) else os.fspath(value)
    if is_array(value) or isinstance(value, (list, tuple, range)):
        return _indices(value)
    if isinstance(value, type):
        raise ArgumentTypeError(f"expected {_KINDS}, got the class {value.__name__}: make one")
    if isinstance(value, Iterator):
        raise ArgumentTypeError(
            f"{value!r} can be read through only once, and each epoch has an order; give a list, "
            "or a function that returns one"
        )
    if isinstance(value, Iterable) or callable(value):
        return value
    raise ArgumentTypeError(f"expected {_KINDS}, got {value!r} of type {type(value).__name__}")


SamplerArg = ArgType("sampler", "Any", _checked)


def orders_of(given: Any, index: Index) -> EpochOrders:
    """The orders of epochs that a value of `sampler` stands for."""
    samples = len(index)
    if isinstance(given, EpochSampler):
        return given.orders(index)
    if isinstance(given, str):
        given = _from_file(given)
    if isinstance(given, np.ndarray):
        return _Listed(_within(given, samples, "`sampler`"))
    return _Made(_iterated(given) if isinstance(given, Iterable) else given, samples)


def identity_of(given: Any) -> Any:
    """Everything the order follows from, in types that JSON keeps: of a function, its name."""
    if isinstance(given, EpochSampler):
        return given.identity()
    if isinstance(given, str):
        return {"file": given}
    if isinstance(given, np.ndarray):
        return {"indices": hash_of(given)}
    kind = given if hasattr(given, "__qualname__") else type(given)
    return {"made by": f"{kind.__module__}.{kind.__qualname__}"}


def _indices(values: Any) -> np.ndarray:
    found = np.array(to_numpy(values))
    if found.ndim != 1 or found.dtype.kind not in "iu" or not found.size:
        raise ArgumentValueError(
            f"expected indices, at least one in a row, got {found.dtype} of shape {found.shape}"
        )
    return found.astype(np.int64)


def _within(indices: np.ndarray, samples: int, what: str) -> np.ndarray:
    for found in (int(indices.min()), int(indices.max())):
        if not 0 <= found < samples:
            raise ArgumentValueError(
                f"{what} has the index {found}, and the data set has {samples} samples, from 0 to "
                f"{samples - 1}."
            )
    return indices


def _from_file(path: str) -> np.ndarray:
    try:
        if path.endswith(".npy") and not is_remote(path):
            found = np.load(path.removeprefix("file://"), mmap_mode="r")
            return found if found.dtype == np.int64 and found.ndim == 1 else _indices(found)
        return np.array(bytes(read_file(path, np.empty)).split(), np.int64)
    except (OSError, BadSampleError) as error:
        raise ArgumentValueError(f"`sampler`={path!r} cannot be read: {error}") from error
    except ValueError as error:
        raise ArgumentValueError(
            f"`sampler`={path!r} is no file of indices: {error}. Expected .npy with integers, or "
            "text with numbers between white space."
        ) from error


class _Listed(EpochOrders):
    """One order for all epochs."""

    def __init__(self, indices: np.ndarray) -> None:
        self.size = len(indices)
        self._indices = indices

    def at(self, epoch: int) -> Numbers:
        return self._indices


class _Made(EpochOrders):
    """Orders that a function of the epoch returns."""

    def __init__(self, make: Callable[[int], Any], samples: int) -> None:
        self._make = make
        self._samples = samples
        self._last: tuple[int, np.ndarray] | None = None
        self._last = 0, self._made(0)
        self.size = len(self._last[1])

    def at(self, epoch: int) -> Numbers:
        if self._last is None or self._last[0] != epoch:
            self._last = epoch, self._made(epoch)
        return self._last[1]

    def _made(self, epoch: int) -> np.ndarray:
        made = self._make(epoch)
        try:
            found = _indices(made if is_array(made) or isinstance(made, range) else list(made))
        except (TypeError, ValueError) as error:
            raise ArgumentValueError(f"`sampler` for epoch {epoch}: {error}") from error
        if self._last is not None and len(found) != self.size:
            raise ArgumentValueError(
                f"`sampler` has {len(found)} indices for epoch {epoch}, and had {self.size} for "
                "the first one. All epochs have equally many: draw some again, or leave some to "
                "a later epoch."
            )
        return _within(found, self._samples, f"`sampler` for epoch {epoch}")


def _iterated(given: Iterable[Any]) -> Callable[[int], list[Any]]:
    """A function of the epoch that goes through an iterable once for each.

    One with `set_epoch` is told which. Others are gone through from the first epoch on, as they
    were when a reader first had them; what they draw from the generators of `random`, NumPy and
    PyTorch follows from the epoch alone.
    """
    if getattr(given, "num_replicas", 1) > 1:
        raise ArgumentValueError(
            f"`sampler` is a {type(given).__name__} with `num_replicas`={given.num_replicas}, "  # type: ignore[attr-defined]
            "which divides samples among ranks, as the reader does: give it `num_replicas=1, "
            "rank=0`, and the reader `num_shards` and `shard_id`."
        )
    state, reached = _beginnings(given), 0

    def at(epoch: int) -> list[Any]:
        nonlocal state, reached
        with _lock:
            if hasattr(given, "set_epoch"):
                given.set_epoch(epoch)
                return list(given)
            if epoch < reached:
                state, reached = _beginnings(given), 0
            _restore(given, state)
            for number in range(reached, epoch + 1):
                found = _gone_through(given, int(sample_orders.key_of(number)))
            state, reached = _state(given), epoch + 1
            return found

    return at


_lock = threading.Lock()
"""Held while a sampler is gone through: several pipelines may have the same one."""
_known: weakref.WeakKeyDictionary[Any, dict[str, Any]] = weakref.WeakKeyDictionary()
"""Of samplers, the state at their first use."""


def _beginnings(given: Any) -> dict[str, Any]:
    try:
        if given not in _known:
            _known[given] = _state(given)
        return _known[given]
    except TypeError:  # it cannot be told from others, or has no weak references
        return _state(given)


def _state(given: Any) -> dict[str, Any]:
    """Copies of numbers and generators that an object has; not of the data set it may have, too."""
    kinds: tuple[type, ...] = (
        int,
        float,
        random.Random,
        np.random.Generator,
        np.random.RandomState,
    )
    torch: Any = sys.modules.get("torch")
    if torch:
        kinds += (torch.Generator,)
    own = getattr(given, "__dict__", {})
    return {k: _copied(value) for k, value in own.items() if isinstance(value, kinds)}


def _restore(given: Any, state: Mapping[str, Any]) -> None:
    for name, value in state.items():
        setattr(given, name, _copied(value))


def _copied(value: Any) -> Any:
    return value.clone_state() if hasattr(value, "clone_state") else copy.deepcopy(value)


def _gone_through(given: Iterable[Any], seed: int) -> list[Any]:
    """Go through an iterable, with the generators seeded that it may draw from.

    All shards must draw the same, whatever the seeds of their pipelines.
    """
    torch: Any = sys.modules.get("torch")
    if torch and getattr(given, "generator", given) is None:  # a sampler of PyTorch
        sampler: Any = given
        sampler.generator = torch.Generator().manual_seed(seed >> 1)
        try:
            return list(given)
        finally:
            sampler.generator = None
    of_numpy = np.random.get_state()  # noqa: NPY002 - what samplers draw from
    of_python, of_torch = random.getstate(), torch and torch.get_rng_state()
    try:
        random.seed(seed)
        np.random.seed(seed & 0xFFFFFFFF)  # noqa: NPY002
        if torch:
            torch.default_generator.manual_seed(seed >> 1)
        return list(given)
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)  # noqa: NPY002
        if torch:
            torch.set_rng_state(of_torch)
