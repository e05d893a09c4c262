"""Mean, deviation, scale and shift as two numbers a channel."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.gpu import device_constant as _device_constant
from headrace.operators.support.argument_types import FloatArg, FloatListArg
from headrace.operators.support.schema import Arg
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.operators.support.operator import Operator
    from headrace.operators.support.planning import PlanContext

Fills = dict[int, tuple[float, ...]]
MeanStd = tuple[tuple[float, ...], tuple[float, ...]]
"""Mean and deviation of a sample: one number, or one a channel, each."""

NORMALIZATION_ARGS: tuple[Arg, ...] = (
    Arg(
        "mean",
        FloatListArg,
        (0.0,),
        "Number subtracted: one, or one a channel.",
        per_sample=True,
        shape_of="() or (C,)",
    ),
    Arg(
        "std",
        FloatListArg,
        (1.0,),
        "Divisor: one number, or one a channel.",
        per_sample=True,
        shape_of="() or (C,)",
    ),
    Arg("scale", FloatArg, 1.0, "Factor of the normalised values."),
    Arg("shift", FloatArg, 0.0, "Number added to the scaled values."),
)


class Coefficients(NamedTuple):
    """``(value - mean) * factor`` of each channel, in the form that kernels take."""

    means: np.ndarray
    """Sixteen pixels' worth of means, float32."""
    factors: np.ndarray
    """Sixteen pixels' worth of factors, float32."""
    planes: tuple[tuple[np.ndarray, np.ndarray], ...]
    """The same for each channel by itself."""


class NumbersTable:
    """Coefficients of a batch on the GPU.

    `numbers`: float32: tables of means, factors and fill values, one value for each channel of the
    output. `offsets`: with which number that of each sample begins, int64, one a sample or one for
    all.
    """

    __slots__ = ("_kept", "_numbers", "_offsets", "is_constant")

    def __init__(self, numbers: np.ndarray, offsets: np.ndarray, *, is_constant: bool) -> None:
        self._numbers = numbers
        self._offsets = 4 * offsets
        self._kept = _device_constant.DeviceConstant(numbers) if is_constant else None
        self.is_constant = is_constant

    def addresses(self, queue: Queue) -> np.ndarray:
        """Address of each sample's table, for the kernel launched next; uint64."""
        if self._kept is not None:
            begin = self._kept.address(queue)
        else:
            begin = int(queue.upload(self._numbers))
        return (self._offsets + begin).astype(np.uint64)


class PixelNormalization:
    """Normalisation of pixels, as the arguments of `NORMALIZATION_ARGS` ask for it."""

    __slots__ = ("_constant", "_kept", "_pads", "_scale", "_shift", "by_channel")

    def __init__(self, op: Operator) -> None:
        args = op.args
        self._scale, self._shift = float(args.scale), float(args.shift)
        constant = "mean" not in op.tensor_args and "std" not in op.tensor_args
        self._constant = (_checked(args.mean, args.std)) if constant else None
        self.by_channel = self._constant is None or max(map(len, self._constant)) > 1
        """True if channels have means or deviations of their own."""
        self._pads = bool(args.pad_output)
        self._kept: dict[tuple[int, tuple[float, ...]], NumbersTable] = {}
        """Tables of constants on the GPU, by numbers of channels and values outside."""

    def plan(
        self, c: PlanContext, channels: np.ndarray, padded: np.ndarray, shown: np.ndarray
    ) -> list[MeanStd]:
        """Mean and deviation of each sample.

        `channels`, `padded`: how many channels each sample, and its output, has; int64
        ``(samples,)``.
        """
        counts = list(zip(channels.tolist(), padded.tolist(), shown.tolist(), strict=True))
        if self._constant is not None:
            for count, out, is_shown in dict.fromkeys(counts):
                if is_shown:
                    _check_fit(self._constant, count, out if self._pads else 0)
            return [self._constant] * len(counts)
        given = zip(c.values("mean"), c.values("std"), counts, strict=True)
        found = []
        for mean, std, (count, out, is_shown) in given:
            found.append(_checked(mean, std) if is_shown else ((0.0,), (1.0,)))
            if is_shown:
                _check_fit(found[-1], count, out if self._pads else 0)
        return found

    def coefficients(
        self, numbers: MeanStd, channels: int, fill: tuple[float, ...] = ()
    ) -> Coefficients:
        """Coefficients of the channels of one sample."""
        return _coefficients(*numbers, self._scale, self._shift, channels, fill)

    def constants(self, channels: int) -> tuple[np.ndarray, np.ndarray] | None:
        """Sixteen pixels' worth of means and factors of so many channels; `None` where they differ
        by sample, or do not fit.
        """
        constant = self._constant
        if constant is None or any(len(values) not in (1, channels) for values in constant):
            return None
        return self.coefficients(constant, channels)[:2]

    def table(self, numbers: Sequence[MeanStd], channels: np.ndarray, fills: Fills) -> NumbersTable:
        """Coefficients of all samples of a batch, as kernels on the GPU take them.

        `channels`: how many channels each of them has, int64 ``(samples,)``.
        """
        if self._constant is not None and len(fills) == 1:
            ((count, fill),) = fills.items()
            kept = self._kept.get((count, fill))
            if kept is None:
                table = _table(*self._constant, self._scale, self._shift, count, fill)
                kept = NumbersTable(table, np.zeros(1, np.int64), is_constant=True)
                self._kept[count, fill] = kept
            return kept
        tables: list[np.ndarray] = []
        places: dict[tuple[MeanStd, int], int] = {}
        offsets = np.empty(len(channels), np.int64)
        end = 0
        for k, key in enumerate(zip(numbers, channels.tolist(), strict=True)):
            offset = places.get(key)
            if offset is None:
                (mean, std), count = key
                table = _numbers(mean, std, self._scale, self._shift, count, fills[count])
                tables.append(table)
                offset = places[key] = end
                end += table.size
            offsets[k] = offset
        is_constant = self._constant is not None
        return NumbersTable(np.concatenate(tables), offsets, is_constant=is_constant)


def _check_fit(numbers: MeanStd, channels: int, padded_channels: int) -> None:
    for name, values in zip(("mean", "std"), numbers, strict=True):
        # Where channels are padded, DALI takes fewer values, too, and makes the others 0; values
        # for channels that padding adds are not used.
        if len(values) not in (1, channels) and not 1 < len(values) <= padded_channels:
            raise ArgumentValueError(
                f"`{name}` has {len(values)} values, but the data has {channels} channels; "
                "give one value, or one a channel."
            )


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
    means, factors = _scaled(mean, std, scale, shift, channels)
    # Channels that are not in the data are read as 0.
    means = np.append(means, [-v for v in fill]).astype(np.float32)
    factors = np.append(factors, np.ones(len(fill))).astype(np.float32)
    return Coefficients(
        np.tile(means, 16),
        np.tile(factors, 16),
        tuple((np.repeat(m, 16), np.repeat(f, 16)) for m, f in zip(means, factors, strict=True)),
    )


def _numbers(
    mean: tuple[float, ...],
    std: tuple[float, ...],
    scale: float,
    shift: float,
    channels: int,
    fill: tuple[float, ...],
) -> np.ndarray:
    """Means, factors and fill values of all channels of the output, one after the other."""
    table = np.zeros((3, len(fill)), np.float32)
    table[0, :channels], table[1, :channels] = _scaled(mean, std, scale, shift, channels)
    table[2] = fill
    return table.reshape(-1)


_table = lru_cache(maxsize=256)(_numbers)


def _scaled(
    given_mean: tuple[float, ...],
    given_std: tuple[float, ...],
    scale: float,
    shift: float,
    channels: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers subtracted from each channel, and factors of the difference."""
    # The shift goes into the mean, as in DALI, whose float32 results this reproduces to the bit.
    mean = np.array(given_mean[:channels], np.float32).astype(np.float64)
    std = np.array(given_std[:channels], np.float32).astype(np.float64)
    single_scale, single_shift = np.float64(np.float32(scale)), np.float64(np.float32(shift))
    with np.errstate(all="ignore"):
        means = (mean - single_shift * std / single_scale).astype(np.float32)
        factors = (single_scale / std).astype(np.float32)
    count = max(len(means), len(factors))
    if count == 1:
        count = channels
    rest = 0, channels - count
    return np.pad(np.broadcast_to(means, count), rest), np.pad(
        np.broadcast_to(factors, count), rest
    )
