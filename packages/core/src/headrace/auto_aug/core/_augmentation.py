"""An augmentation: a function of data and a parameter, and what parameters there are."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from headrace import fn, types
from headrace.auto_aug.core._args import accepted
from headrace.auto_aug.core._errors import (
    MagnitudeBinError,
    MissingArgException,
    UnusedArgException,
)
from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.graph.data_node import DataNode
from headrace.types import DALIDataType
from headrace.types.arrays import to_numpy

Magnitudes = tuple[float, float] | np.ndarray | None
_DEVICES = ("cpu", "gpu", "auto")


class SignedBin(NamedTuple):
    """A magnitude bin, and whether its magnitude is negated (1) or not (0)."""

    bin: int | DataNode
    sign: DataNode


class NumberedBin(SignedBin):
    """A signed bin whose number is known among the bins of all magnitudes and of their negatives:
    augmentations that are chosen from share it.
    """

    number: DataNode
    bins: int

    @classmethod
    def of(cls, signed: SignedBin, bins: int) -> NumberedBin:
        """`signed`, of so many bins."""
        found = cls(*signed)
        found.number, found.bins = signed.sign * bins + signed.bin, bins
        return found


def signed_bin(
    magnitude_bin: int | DataNode,
    random_sign: DataNode | None = None,
    seed: int | None = None,
    shape: tuple[int, ...] | None = None,
) -> SignedBin:
    """Join a magnitude bin with a sign that is drawn for each sample.

    Parameters
    ----------
    magnitude_bin
        The number of a bin, or one for each sample.
    random_sign
        0 or 1 for each sample; drawn when not given.
    seed, shape
        Of what is drawn.
    """
    if random_sign is None:
        values = fn.random.uniform(values=[0.0, 1.0], seed=seed, shape=shape)
        random_sign = fn.cast(values, dtype=DALIDataType.INT32)
    return SignedBin(magnitude_bin, random_sign)


class Augmentation:
    """A function of data and a parameter that follows from a magnitude.

    Made by `headrace.auto_aug.core.augmentation`, whose parameters these are.
    """

    def __init__(
        self,
        op: Callable[..., Any],
        mag_range: Magnitudes = None,
        mag_to_param: Callable[[float], Any] | None = None,
        randomly_negate: bool | None = None,
        param_device: str | None = None,
        name: str | None = None,
    ) -> None:
        if param_device not in (None, *_DEVICES):
            raise ArgumentValueError(
                f"`param_device` must be one of {', '.join(_DEVICES)}, got {param_device!r}."
            )
        self._op, self._given = op, (mag_range, mag_to_param, randomly_negate, param_device, name)

    @property
    def op(self) -> Callable[..., Any]:
        """The function."""
        return self._op

    @property
    def mag_range(self) -> Magnitudes:
        """First and last magnitude, or all of them; `None` for an augmentation without."""
        return self._given[0]

    @property
    def mag_to_param(self) -> Callable[[float], Any]:
        """Makes a parameter of a magnitude."""
        return self._given[1] or np.array

    @property
    def randomly_negate(self) -> bool:
        """True if magnitudes get a random sign."""
        return bool(self._given[2])

    @property
    def param_device(self) -> str:
        """Device of the parameter; ``"auto"`` for the device of the data."""
        return self._given[3] or "cpu"

    @property
    def name(self) -> str:
        """Name in policies and suites."""
        return self._given[4] or self._op.__name__

    def __repr__(self) -> str:
        names = ("mag_range", "mag_to_param", "randomly_negate", "param_device", "name")
        parts = [repr(self._op)]
        parts += [f"{n}={v!r}" for n, v in zip(names, self._given, strict=True) if v is not None]
        return f"Augmentation({', '.join(parts)})"

    def augmentation(self, **changes: Any) -> Augmentation:
        """A copy with other settings: those of `headrace.auto_aug.core.augmentation`.

        `None` sets one back to its default.
        """
        names = ("mag_range", "mag_to_param", "randomly_negate", "param_device", "name")
        cls = changes.pop("augmentation_cls", None) or type(self)
        settings: dict[str, Any] = dict(zip(names, self._given, strict=True))
        settings.update(changes)
        made: Augmentation = cls(self._op, **settings)
        return made

    def __call__(
        self,
        data: DataNode,
        *,
        magnitude_bin: int | DataNode | SignedBin | None = None,
        num_magnitude_bins: int | None = None,
        **kwargs: Any,
    ) -> DataNode:
        """Augment `data`.

        Parameters
        ----------
        magnitude_bin
            Index of the magnitude: a number for all samples or for each, or a `signed_bin`.
        num_magnitude_bins
            Number of magnitudes.
        **kwargs
            Further arguments of the function.
        """
        takes = accepted(self._op)
        unused = [key for key in kwargs if key not in takes]
        if unused:
            raise UnusedArgException(f"The augmentation `{self.name}` takes no `{unused[0]}`.")
        missing = [key for key, needed in takes.items() if needed and key not in kwargs]
        if missing:
            raise MissingArgException(
                f"The augmentation `{self.name}` requires `{missing[0]}` argument. Arguments that "
                f"were not provided to the call: {', '.join(missing)}."
            )
        param = self._param(data, magnitude_bin, num_magnitude_bins)
        found: DataNode = self._op(data, param, **kwargs)
        return found

    def _param(self, data: DataNode, magnitude_bin: Any, bins: int | None) -> Any:
        """The parameter of each sample, or of all."""
        if self.mag_range is None:
            return None
        if magnitude_bin is None:
            raise ArgumentValueError(
                f"The augmentation `{self.name}` has magnitudes: give `magnitude_bin`."
            )
        magnitudes = self._get_magnitudes(bins)
        assert magnitudes is not None
        sign, number = None, None
        if isinstance(magnitude_bin, SignedBin):
            if isinstance(magnitude_bin, NumberedBin) and magnitude_bin.bins == len(magnitudes):
                number = magnitude_bin.number
            magnitude_bin, sign = magnitude_bin
        elif self.randomly_negate:
            warnings.warn(
                f"The augmentation `{self.name}` negates magnitudes at random, but unsigned "
                "`magnitude_bin` was passed to the augmentation call: its sign is drawn. Use "
                "`signed_bin`.",
                stacklevel=4,
            )
            magnitude_bin, sign = signed_bin(magnitude_bin)
        if not isinstance(magnitude_bin, DataNode) and not 0 <= magnitude_bin < len(magnitudes):
            raise MagnitudeBinError(
                f"`magnitude_bin` is {magnitude_bin}; allowed are 0 to {len(magnitudes) - 1}."
            )
        params = self._map_mags_to_params(magnitudes)
        index = magnitude_bin
        if sign is not None and self.randomly_negate:
            params = np.concatenate([params, self._map_mags_to_params(-magnitudes)])
            index = sign * len(magnitudes) + index if number is None else number
        on_gpu = self.param_device == "gpu" or (
            self.param_device == "auto" and getattr(data, "device", "cpu") == "gpu"
        )
        if not isinstance(index, DataNode) and not on_gpu:
            return params[index]
        chosen = params[index] if not isinstance(index, DataNode) else _chosen(params, index)
        return _as_node(chosen).gpu() if on_gpu else chosen

    def _get_magnitudes(self, bins: int | None) -> np.ndarray | None:
        """The magnitudes of all bins; `None` for an augmentation without."""
        given = self.mag_range
        if given is None:
            return None
        if isinstance(given, np.ndarray):
            if bins not in (None, len(given)):
                raise ArgumentValueError(
                    f"The augmentation `{self.name}` has {len(given)} magnitudes, but "
                    f"`num_magnitude_bins` is {bins}."
                )
            return given
        if bins is None:
            raise ArgumentValueError(
                f"The augmentation `{self.name}` has a range of magnitudes: give "
                "`num_magnitude_bins`."
            )
        return np.linspace(given[0], given[1], bins, dtype=np.float32)

    def _map_mag_to_param(self, magnitude: Any) -> np.ndarray:
        """The parameter of one magnitude."""
        found = self.mag_to_param(magnitude)
        if isinstance(found, DataNode):
            raise ArgumentTypeError(
                f"`mag_to_param` of the augmentation `{self.name}` returns a `DataNode`; the "
                "callback must return parameter that is `np.ndarray` or can be made one."
            )
        return np.asarray(to_numpy(found))

    def _map_mags_to_params(self, magnitudes: np.ndarray) -> np.ndarray:
        """The parameters of `magnitudes`, one a row."""
        made = [self._map_mag_to_param(magnitude) for magnitude in magnitudes]
        first = made[0]
        for each in made:
            if each.shape != first.shape or each.dtype != first.dtype:
                raise ArgumentTypeError(
                    f"`mag_to_param` of the `{self.name}` augmentation must return the arrays of "
                    f"the same type and shape for all magnitudes. That of the first has shape "
                    f"{first.shape} and type {first.dtype}, another has shape {each.shape} and "
                    f"type {each.dtype}."
                )
        return np.stack(made)


def _as_node(values: Any) -> DataNode:
    if isinstance(values, DataNode):
        return values
    found: DataNode = fn.copy(types.Constant(np.asarray(values), device="cpu"))
    return found


def _chosen(params: np.ndarray, index: DataNode) -> DataNode:
    found: DataNode = _as_node(params)[index]
    return found
