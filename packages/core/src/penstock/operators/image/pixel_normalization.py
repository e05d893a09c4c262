"""Mean, deviation, scale and shift as two numbers a channel."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.errors import ArgumentValueError
from penstock.operators.argument_types import FLOAT, FLOATS
from penstock.operators.schema import Arg

if TYPE_CHECKING:
    from penstock.operators.operator import Operator

NORMALIZATION_ARGS: tuple[Arg, ...] = (
    Arg(
        "mean",
        FLOATS,
        (0.0,),
        "What is subtracted: one number, or one a channel.",
        per_sample=True,
        shape_of="() or (C,)",
    ),
    Arg(
        "std",
        FLOATS,
        (1.0,),
        "What is divided by: one number, or one a channel.",
        per_sample=True,
        shape_of="() or (C,)",
    ),
    Arg("scale", FLOAT, 1.0, "What the normalised values are multiplied with."),
    Arg("shift", FLOAT, 0.0, "What is added to the scaled values."),
)


class Coefficients(NamedTuple):
    """``(value - mean) * factor`` of each channel, in the form that kernels take."""

    means: np.ndarray
    """Sixteen pixels' worth of means, float32."""
    factors: np.ndarray
    """Sixteen pixels' worth of factors, float32."""
    planes: tuple[tuple[np.ndarray, np.ndarray], ...]
    """The same for each channel by itself."""


class PixelNormalization:
    """What the arguments of `NORMALIZATION_ARGS` ask for.

    Parameters
    ----------
    op
        The operator, in its `infer`.

    Raises
    ------
    ArgumentValueError
        If constants for mean and deviation do not fit together.
    """

    __slots__ = ("_constant", "_scale", "_shift")

    def __init__(self, op: Operator) -> None:
        args = op.args
        self._scale, self._shift = float(args.scale), float(args.shift)
        constant = "mean" not in op.tensor_args and "std" not in op.tensor_args
        self._constant = (_checked(args.mean, args.std)) if constant else None

    def __call__(
        self, args: Any, channels: int, padded_channels: int, fill: tuple[float, ...] = ()
    ) -> Coefficients:
        """Coefficients of channels, for one sample.

        Parameters
        ----------
        args
            The sample's arguments.
        channels
            How many channels the data has.
        padded_channels
            How many the output has.
        fill
            Values of further channels, which are to come out where kernels read zeros.

        Raises
        ------
        ArgumentValueError
            If the numbers of values do not fit the number of channels.
        """
        mean, std = self._constant or _checked(args.mean, args.std)
        for name, values in (("mean", mean), ("std", std)):
            # One value for each channel that padding adds is accepted, too, and not used.
            if len(values) not in (1, channels, padded_channels):
                raise ArgumentValueError(
                    f"`{name}` has {len(values)} values, but the data has {channels} channels; "
                    "give one value, or one a channel."
                )
        return _coefficients(mean, std, self._scale, self._shift, channels, fill)


def _checked(
    mean: tuple[float, ...], std: tuple[float, ...]
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    if not mean or not std or (len(mean) != len(std) and 1 not in (len(mean), len(std))):
        raise ArgumentValueError(
            f"`mean` has {len(mean)} values and `std` {len(std)}: both must have as many, or one "
            "of them a single one."
        )
    return mean, std


@lru_cache(maxsize=256)
def _coefficients(
    mean: tuple[float, ...],
    std: tuple[float, ...],
    scale: float,
    shift: float,
    channels: int,
    fill: tuple[float, ...],
) -> Coefficients:
    # The shift goes into the mean, as in DALI, whose float32 results this reproduces to the bit.
    single_mean, single_std = (
        np.broadcast_to(np.array(v[:channels], np.float32), channels).astype(np.float64)
        for v in (mean, std)
    )
    single_scale, single_shift = np.float64(np.float32(scale)), np.float64(np.float32(shift))
    with np.errstate(all="ignore"):
        means = (single_mean - single_shift * single_std / single_scale).astype(np.float32)
        factors = (single_scale / single_std).astype(np.float32)
    # Channels that are not in the data are read as 0.
    means = np.append(means, [-v for v in fill]).astype(np.float32)
    factors = np.append(factors, np.ones(len(fill))).astype(np.float32)
    return Coefficients(
        np.tile(means, 16),
        np.tile(factors, 16),
        tuple((np.repeat(m, 16), np.repeat(f, 16)) for m, f in zip(means, factors, strict=True)),
    )
