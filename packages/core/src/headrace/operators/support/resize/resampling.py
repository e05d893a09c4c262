"""Interpolation of pixels: arguments shared by all operators that resample images."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError
from headrace.operators.support.argument_types import BoolArg, DataTypeArg, IntArg, InterpTypeArg
from headrace.operators.support.arguments import scalars
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.schema import Arg, data_types
from headrace.types import DALIDataType, DALIInterpType, to_numpy_type

if TYPE_CHECKING:
    from headrace.operators.support.operator import Operator

RESAMPLING_DTYPES = data_types("UINT8 INT16 UINT16 FLOAT")
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
    Arg("minibatch_size", IntArg, 32, "Number of images that DALI processes at once.", hint=True),
    Arg("temp_buffer_hint", IntArg, 0, "Initial size of a temporary buffer, in bytes.", hint=True),
)

_FILTER_NAMES = {
    DALIInterpType.INTERP_NN: "NEAREST",
    DALIInterpType.INTERP_LINEAR: "TRIANGULAR",
    DALIInterpType.INTERP_TRIANGULAR: "TRIANGULAR",
    DALIInterpType.INTERP_CUBIC: "CUBIC",
    DALIInterpType.INTERP_LANCZOS3: "LANCZOS",
    DALIInterpType.INTERP_GAUSSIAN: "GAUSSIAN",
}
_NO_FILTER = -1


class Resampling:
    """Interpolation as the arguments of `RESAMPLING_ARGS` ask for it.

    `dtype`: element type of the output. `numpy_dtype`: the same for NumPy. `rounds_to`: the integer
    type of the output, or `None`. `antialias`: whether filters widen where an axis shrinks.
    """

    __slots__ = (
        "_by_sample",
        "_constant",
        "_numbers",
        "_usual",
        "antialias",
        "dtype",
        "numpy_dtype",
        "rounds_to",
    )

    def __init__(self, op: Operator, given: DALIDataType) -> None:
        # Numba is imported when an operator needs it, never by its declaration.
        from headrace.kernels.cpu.resample_taps import Filter

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
        self._usual = int(Filter.TRIANGULAR)
        self._numbers = np.full(max(_FILTERS) + 1, _NO_FILTER, np.int64)
        for interpolation, name in _FILTER_NAMES.items():
            self._numbers[interpolation] = Filter[name]
        names = ("interp_type", "min_filter", "mag_filter")
        self._by_sample = any(name in op.tensor_args for name in names)
        self._constant: tuple[np.ndarray, np.ndarray] | None = None
        if not self._by_sample:
            self._constant = self.filters(PlanContext(op.args, {}, (0,), 0, 0))

    def filters(self, c: PlanContext) -> tuple[np.ndarray, np.ndarray]:
        """The filters for axes that shrink and for others, int64, one a sample or one for all."""
        if self._constant is not None:
            return self._constant
        usual = self._filter(c, "interp_type", np.full(c.size, self._usual, np.int64))
        return self._filter(c, "min_filter", usual), self._filter(c, "mag_filter", usual)

    def _filter(self, c: PlanContext, name: str, missing: np.ndarray) -> np.ndarray:
        given = scalars(c, name, np.int64)
        if given is None:
            return missing
        last = len(self._numbers) - 1
        found: np.ndarray = self._numbers[np.clip(given, 0, last)]
        wrong = (given < 0) | (given > last) | (found == _NO_FILTER)
        if wrong.any():
            c.values(name)  # says what is wrong, where a name is at hand
            raise ArgumentValueError(
                f"`{name}` has the value {given[int(wrong.argmax())]}, which is not an "
                "interpolation; see `types.DALIInterpType`."
            )
        return found
