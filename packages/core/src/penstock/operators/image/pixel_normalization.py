"""Mean, deviation, scale and shift as two numbers a channel."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.errors import ArgumentValueError, ShapeError
from penstock.operators.argument_types import FloatArg, FloatListArg
from penstock.operators.schema import Arg

if TYPE_CHECKING:
    from penstock.operators.operator import BatchContext, Operator
    from penstock.tensors.gpu.queue import Queue

Fills = dict[int, tuple[float, ...]]

NORMALIZATION_ARGS: tuple[Arg, ...] = (
    Arg(
        "mean",
        FloatListArg,
        (0.0,),
        "What is subtracted: one number, or one a channel.",
        per_sample=True,
        shape_of="() or (C,)",
    ),
    Arg(
        "std",
        FloatListArg,
        (1.0,),
        "What is divided by: one number, or one a channel.",
        per_sample=True,
        shape_of="() or (C,)",
    ),
    Arg("scale", FloatArg, 1.0, "What the normalised values are multiplied with."),
    Arg("shift", FloatArg, 0.0, "What is added to the scaled values."),
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

    Parameters
    ----------
    numbers
        float32: tables of means, factors and fill values, one value for each channel of the output.
    offsets
        With which number that of each sample begins, int64, one a sample or one for all.
    is_constant
        Whether they are the same for further batches, and worth keeping on the device.
    """

    __slots__ = ("_kept", "_numbers", "_offsets", "is_constant")

    def __init__(self, numbers: np.ndarray, offsets: np.ndarray, *, is_constant: bool) -> None:
        from penstock.kernels.gpu.device_constant import DeviceConstant

        self._numbers = numbers
        self._offsets = 4 * offsets
        self._kept = DeviceConstant(numbers) if is_constant else None
        self.is_constant = is_constant

    def addresses(self, queue: Queue) -> np.ndarray:
        """Where the table of each sample begins, for the kernel launched next; uint64."""
        if self._kept is not None:
            begin = self._kept.address(queue)
        else:
            begin = int(queue.upload(self._numbers))
        return (self._offsets + begin).astype(np.uint64)


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

    __slots__ = ("_constant", "_kept", "_scale", "_shift")

    @property
    def is_constant(self) -> bool:
        """Whether the coefficients are the same for all samples with as many channels."""
        return self._constant is not None

    def __init__(self, op: Operator) -> None:
        args = op.args
        self._scale, self._shift = float(args.scale), float(args.shift)
        constant = "mean" not in op.tensor_args and "std" not in op.tensor_args
        self._constant = (_checked(args.mean, args.std)) if constant else None
        self._kept: dict[tuple[int, tuple[float, ...]], NumbersTable] = {}
        """Tables of constants on the GPU, by numbers of channels and values outside."""

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
        mean, std = self._checked(args, channels, padded_channels)
        return _coefficients(mean, std, self._scale, self._shift, channels, fill)

    def _checked(
        self, args: Any, channels: int, padded_channels: int
    ) -> tuple[tuple[float, ...], tuple[float, ...]]:
        """Mean and deviation for data of so many channels."""
        mean, std = self._constant or _checked(args.mean, args.std)
        for name, values in (("mean", mean), ("std", std)):
            # One value for each channel that padding adds is accepted, too, and not used.
            if len(values) not in (1, channels, padded_channels):
                raise ArgumentValueError(
                    f"`{name}` has {len(values)} values, but the data has {channels} channels; "
                    "give one value, or one a channel."
                )
        return mean, std

    def _fits(self, channels: int, padded_channels: int) -> bool:
        """Whether constants can be those of data of so many channels."""
        assert self._constant is not None
        return all(len(v) in (1, channels, padded_channels) for v in self._constant)

    def table(
        self,
        c: BatchContext,
        channels: np.ndarray,
        wanted: Callable[[], np.ndarray],
        fills: Fills,
    ) -> NumbersTable:
        """Coefficients of all samples of a batch, as kernels on the GPU take them.

        Parameters
        ----------
        c
            The batch.
        channels
            How many channels each sample has, int64 ``(samples,)``, or ``(1,)`` if it is the same
            and the coefficients are constants.
        wanted
            Tells which samples are normalised, ``(samples,)``; the arguments of others are not
            looked at.
        fills
            By number of channels: the values of all channels of the output outside of the data.

        Raises
        ------
        ArgumentValueError
            As `__call__` does, with the place of the sample.
        """
        if self._constant is None and len(fills) == 1:
            found = self._joint_tables(c, channels, fills)
            if found is not None:
                return NumbersTable(found, np.arange(c.size) * found.shape[1], is_constant=False)
        if self._constant is not None and len(fills) == 1:
            ((count, fill),) = fills.items()
            kept = self._kept.get((count, fill))
            if kept is None and self._fits(count, len(fill)):
                numbers = _table(*self._constant, self._scale, self._shift, count, fill)
                kept = NumbersTable(numbers, np.zeros(1, np.int64), is_constant=True)
                self._kept[count, fill] = kept
            if kept is not None:
                return kept
        offsets = np.zeros(len(channels), np.int64)
        shown = wanted()
        tables: list[np.ndarray] = []
        mean: tuple[float, ...]
        std: tuple[float, ...]
        end = 0
        by_sample = {name: c.values(name) for name in ("mean", "std")} if not self._constant else {}
        if by_sample:
            groups = [(count, np.array([i])) for i, count in enumerate(channels.tolist())]
        else:
            groups = [(count, np.flatnonzero(channels == count)) for count in fills]
        for count, members in groups:
            offsets[members] = end
            fill = fills[count]
            mean, std = (0.0,), (1.0,)
            used = members[shown[members]]
            if used.size:
                index = int(used[0])
                args = SimpleNamespace(**{name: v[index] for name, v in by_sample.items()})
                try:
                    mean, std = self._checked(args, count, len(fill))
                except ArgumentValueError as error:
                    raise c.located(error, index) from error
            tables.append(_table(mean, std, self._scale, self._shift, count, fill))
            end += tables[-1].size
        return NumbersTable(np.concatenate(tables), offsets, is_constant=not by_sample)

    def _joint_tables(
        self, c: BatchContext, channels: np.ndarray, fills: Fills
    ) -> np.ndarray | None:
        """Tables of samples that differ in numbers only, ``(samples, length)``; else `None`."""
        count = int(channels[0])
        fill = fills[count]
        given = []
        for name in ("mean", "std"):
            try:
                values = c.array(name, np.float32)
            except ShapeError:
                return None
            assert values is not None
            values = values.reshape(c.size, -1)
            if values.shape[1] not in (1, count, len(fill)):
                return None
            given.append(values)
        mean, std = given
        if mean.shape[1] != std.shape[1] and 1 not in (mean.shape[1], std.shape[1]):
            return None
        means, factors = _scaled(mean[:, :count], std[:, :count], self._scale, self._shift)
        tables = np.zeros((c.size, 3, len(fill)), np.float32)
        tables[:, 0, :count] = means
        tables[:, 1, :count] = factors
        tables[:, 2] = fill
        return tables.reshape(c.size, -1)


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
    given_mean, given_std = (np.array(v[:channels], np.float32) for v in (mean, std))
    scaled = _scaled(given_mean, given_std, scale, shift)
    means, factors = (np.broadcast_to(v, channels) for v in scaled)
    # Channels that are not in the data are read as 0.
    means = np.append(means, [-v for v in fill]).astype(np.float32)
    factors = np.append(factors, np.ones(len(fill))).astype(np.float32)
    return Coefficients(
        np.tile(means, 16),
        np.tile(factors, 16),
        tuple((np.repeat(m, 16), np.repeat(f, 16)) for m, f in zip(means, factors, strict=True)),
    )


@lru_cache(maxsize=256)
def _table(
    mean: tuple[float, ...],
    std: tuple[float, ...],
    scale: float,
    shift: float,
    channels: int,
    fill: tuple[float, ...],
) -> np.ndarray:
    """Means, factors and fill values of all channels of the output, one after the other."""
    found = _coefficients(mean, std, scale, shift, channels, ())
    table = np.zeros((3, len(fill)), np.float32)
    table[0, :channels] = found.means[:channels]
    table[1, :channels] = found.factors[:channels]
    table[2] = fill
    return table.reshape(-1)


def _scaled(
    mean: np.ndarray, std: np.ndarray, scale: float, shift: float
) -> tuple[np.ndarray, np.ndarray]:
    """What is subtracted, and what the difference is multiplied with; `mean`, `std` are float32."""
    # The shift goes into the mean, as in DALI, whose float32 results this reproduces to the bit.
    mean, std = mean.astype(np.float64), std.astype(np.float64)
    single_scale, single_shift = np.float64(np.float32(scale)), np.float64(np.float32(shift))
    with np.errstate(all="ignore"):
        means = (mean - single_shift * std / single_scale).astype(np.float32)
        factors = (single_scale / std).astype(np.float32)
    return means, factors
