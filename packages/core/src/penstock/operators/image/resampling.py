"""How pixels are interpolated: arguments shared by every operator that resamples images."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ArgumentValueError, DataTypeError
from penstock.operators.argument_types import BoolArg, DataTypeArg, IntArg, InterpTypeArg
from penstock.operators.batch_arguments import scalars
from penstock.operators.image.resize_geometry_batch import OneByOneError
from penstock.operators.schema import Arg
from penstock.types import DALIDataType, DALIInterpType, to_numpy_type

if TYPE_CHECKING:
    from types import ModuleType

    from penstock.kernels.cpu.resample_taps import AxisSampling, Filter
    from penstock.operators.image.resize_geometry import AxisGeometry
    from penstock.operators.operator import BatchContext, Operator

RESAMPLING_DTYPES = (
    DALIDataType.UINT8,
    DALIDataType.INT16,
    DALIDataType.UINT16,
    DALIDataType.FLOAT,
)
RESAMPLING_LAYOUTS = (
    "HWC",
    "FHWC",
    "CHW",
    "FCHW",
    "CFHW",
    "DHWC",
    "FDHWC",
    "CDHW",
    "FCDHW",
    "CFDHW",
)

_FILTERS = tuple(DALIInterpType)

RESAMPLING_ARGS: tuple[Arg, ...] = (
    Arg(
        "interp_type",
        InterpTypeArg,
        None,
        "Filter for both shrinking and enlarging; linear when not given. `INTERP_TRIANGULAR` is "
        "another name of `INTERP_LINEAR`.",
        per_sample=True,
        choices=_FILTERS,
    ),
    Arg(
        "min_filter",
        InterpTypeArg,
        None,
        "Filter for axes that shrink, instead of `interp_type`.",
        per_sample=True,
        choices=_FILTERS,
    ),
    Arg(
        "mag_filter",
        InterpTypeArg,
        None,
        "Filter for axes that do not shrink, instead of `interp_type`.",
        per_sample=True,
        choices=_FILTERS,
    ),
    Arg(
        "antialias",
        BoolArg,
        True,
        "Whether filters widen with the reduction, so that every source pixel counts. Nearest "
        "neighbours stay what they are.",
    ),
    Arg(
        "dtype",
        DataTypeArg,
        None,
        "Element type of the output: `FLOAT`, or that of the input, which is also the default. "
        "Integers are rounded.",
    ),
    Arg("minibatch_size", IntArg, 32, "How many images DALI processes at once.", hint=True),
    Arg("temp_buffer_hint", IntArg, 0, "Initial size of a temporary buffer, in bytes.", hint=True),
)

_float32 = Struct("f")
_NO_FILTER = -1


class Resampling:
    """What the arguments of `RESAMPLING_ARGS` ask for.

    Parameters
    ----------
    op
        The operator, in its `infer`.
    given
        Element type of the input.

    Attributes
    ----------
    dtype
        Element type of the output.
    numpy_dtype
        The same for NumPy.
    rounds_to
        The integer type of the output, or `None`.
    antialias
        Whether filters widen where an axis shrinks.
    by_sample
        Whether filters differ from sample to sample.

    Raises
    ------
    DataTypeError
        If `dtype` is neither `FLOAT` nor that of the input.
    """

    __slots__ = (
        "_constant",
        "_constant_numbers",
        "_taps",
        "antialias",
        "by_sample",
        "dtype",
        "numpy_dtype",
        "rounds_to",
    )

    def __init__(self, op: Operator, given: DALIDataType) -> None:
        # Numba is imported when an operator needs it, never by its declaration.
        from penstock.kernels.cpu import resample_taps

        self._taps: ModuleType = resample_taps
        dtype = op.args.dtype if op.args.dtype is not None else given
        if dtype not in (given, DALIDataType.FLOAT):
            raise DataTypeError(
                f"`dtype` is {dtype.name}, but images of type {given.name} can only become "
                f"{given.name} or FLOAT. Use `fn.cast` before or after."
            )
        self.dtype: DALIDataType = dtype
        self.numpy_dtype = np.dtype(to_numpy_type(dtype))
        self.rounds_to = None if dtype == DALIDataType.FLOAT else self.numpy_dtype
        self.antialias: bool = op.args.antialias
        names = ("interp_type", "min_filter", "mag_filter")
        self.by_sample = any(name in op.tensor_args for name in names)
        self._constant = (
            (resample_taps.Filter.TRIANGULAR,) * 2 if self.by_sample else self._filters(op.args)
        )
        shrinking, enlarging = (np.array([kind], np.int64) for kind in self._constant)
        self._constant_numbers = shrinking, enlarging

    def _filters(self, args: Any) -> tuple[Filter, Filter]:
        """The filters for shrinking and for enlarging."""
        usual = args.interp_type
        shrinking = args.min_filter if args.min_filter is not None else usual
        enlarging = args.mag_filter if args.mag_filter is not None else usual
        return self._filter(shrinking), self._filter(enlarging)

    def _filter(self, interpolation: DALIInterpType | None) -> Filter:
        kinds = self._taps.Filter
        if interpolation is None:
            return kinds.TRIANGULAR  # type: ignore[no-any-return]
        try:
            return {  # type: ignore[no-any-return]
                DALIInterpType.INTERP_NN: kinds.NEAREST,
                DALIInterpType.INTERP_LINEAR: kinds.TRIANGULAR,
                DALIInterpType.INTERP_TRIANGULAR: kinds.TRIANGULAR,
                DALIInterpType.INTERP_CUBIC: kinds.CUBIC,
                DALIInterpType.INTERP_LANCZOS3: kinds.LANCZOS,
                DALIInterpType.INTERP_GAUSSIAN: kinds.GAUSSIAN,
            }[interpolation]
        except KeyError:
            raise ArgumentValueError(f"{interpolation!r} is not an interpolation.") from None

    def batch_filters(self, c: BatchContext) -> tuple[np.ndarray, np.ndarray]:
        """The filters for axes that shrink and for others, int64, one a sample or one for all.

        Raises
        ------
        OneByOneError
            If a sample asks for what is no interpolation.
        """
        if not self.by_sample:
            return self._constant_numbers
        usual = self._batch_filter(c, "interp_type", self._taps.Filter.TRIANGULAR)
        shrinking = self._batch_filter(c, "min_filter", usual)
        return shrinking, self._batch_filter(c, "mag_filter", usual)

    def _batch_filter(self, c: BatchContext, name: str, missing: Any) -> np.ndarray:
        given = scalars(c, name, np.int64)
        if given is None:
            return np.full(c.size, missing, np.int64)
        filters = np.full(max(_FILTERS) + 1, _NO_FILTER)
        for interpolation in _FILTERS:
            with contextlib.suppress(ArgumentValueError):
                filters[interpolation] = self._filter(interpolation)
        if given.min() < 0 or given.max() >= len(filters):
            raise OneByOneError
        found: np.ndarray = filters[given]
        if (found == _NO_FILTER).any():
            raise OneByOneError
        return found

    def axes(self, args: Any, geometry: Sequence[AxisGeometry]) -> tuple[AxisSampling, ...]:
        """How each spatial axis is resampled; `args` are the sample's."""
        shrinking, enlarging = self._filters(args) if self.by_sample else self._constant
        make = self._taps.AxisSampling
        last = len(geometry) - 1
        samplings = []
        for position, (in_size, out_size, start, end) in enumerate(geometry):
            # The extent is rounded to single precision, so that equal extents count as equal.
            extent = _float32.unpack(_float32.pack(abs(end - start)))[0]
            kind = shrinking if extent > out_size else enlarging
            samplings.append(
                make(in_size, out_size, start, end, kind, self.antialias, position != last)
            )
        return tuple(samplings)
