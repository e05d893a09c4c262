"""Axes of filters and of `gaussian_blur`'s windows: the values of `sigma` and `window_size`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, LayoutError, ShapeError
from headrace.kernels.plan import blur_windows as _windows
from headrace.operators.support.argument_types import DataTypeArg
from headrace.operators.support.arguments import rows_of
from headrace.operators.support.schema import Arg
from headrace.tensors.gpu.batch import as_contiguous
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.operators.support.operator import Operator
    from headrace.operators.support.planning import PlanContext

_HUGE = 1e9
"""Standard deviations whose windows are too large for any memory."""

FILTERED_DTYPE = Arg(
    "dtype",
    DataTypeArg,
    None,
    "Element type of the output: FLOAT, or that of the input, which is also taken when it is not "
    "given.",
)


def filtered_type(dtype: DALIDataType | None, data: DALIDataType) -> DALIDataType:
    """Element type of a filter's output: its argument `dtype`, or the type of its input."""
    if dtype not in (None, data, DALIDataType.FLOAT):
        raise DataTypeError(
            "Output data type must be same as input, FLOAT or skipped: `dtype` is "
            f"{dtype.name}, the input {data.name}. Use `fn.cast` after the operator for others."
        )
    return data if dtype is None else dtype


def resolved(op: Operator, c: PlanContext, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Standard deviations, float64, and numbers of weights, int64, for each of `count` axes.

    Both are ``(samples, count)``; there is one row if both arguments are constants.
    """
    sigmas = for_each_axis(op, c, "sigma", np.dtype(np.float64), count)
    sizes = for_each_axis(op, c, "window_size", np.dtype(np.int64), count)
    shape = max(len(sigmas), len(sizes)), count
    found = np.empty(shape, np.float64), np.empty(shape, np.int64)
    if not _windows.resolve_windows(sigmas, sizes, _HUGE, *found):
        each_sigma, each_size = np.broadcast_arrays(sigmas, sizes)
        for row, axis in np.ndindex(shape):
            where = f"for sample: {c.indices[row]}, axis: {axis}."
            _check(each_sigma[row, axis].item(), each_size[row, axis].item(), where)
    return found


def for_each_axis(
    op: Operator, c: PlanContext, name: str, dtype: np.dtype, count: int
) -> np.ndarray:
    """An argument, ``(samples, count)``, or one row of a constant."""
    values = rows_of(c, name, dtype)
    if name not in op.tensor_args:
        values = values[:1]
    if values.shape[1] not in (1, count):
        got = tuple(values[0].tolist())
        if name in op.tensor_args:
            raise ShapeError(
                f"Argument {name} for sample {c.indices[0]} is expected to have 1 or {count} "
                f"elements, got: {len(got)}; there is one for each axis."
            )
        raise ShapeError(
            f'Argument "{name}" expects either a single value or a list of {count} elements. '
            f"{len(got)} given: {got}; there is one for each axis."
        )
    return as_contiguous(np.broadcast_to(values, (len(values), count)))


def _check(sigma: float, size: int, where: str) -> None:
    if not 0 <= sigma < np.inf:
        raise ArgumentValueError(
            f"`sigma` must have non-negative values, got {sigma:g} {where} It must be finite, too."
        )
    if size < 0:
        raise ArgumentValueError(f"`window_size` must have non-negative values, got {size} {where}")
    if size and size % 2 == 0:
        raise ArgumentValueError(
            f"Kernel window should have odd length, got: {size}. A `window_size` of 0 derives it "
            "from `sigma`."
        )
    if size == 0 and sigma == 0:
        raise ArgumentValueError(
            f"`sigma` and `window_size` shouldn't be 0 at the same time {where} Give at least one."
        )
    if sigma >= _HUGE:
        raise ArgumentValueError(f"`sigma` must be less than {_HUGE:g}, got {sigma}.")


def data_axes(layout: str, ndim: int, fewest: int = 1) -> tuple[int, int]:
    """First axis to filter along, and how many: all but frames and channels, `fewest` to three."""
    words = "one" if fewest == 1 else "two"
    if not layout:
        if not fewest <= ndim <= 3:
            raise ShapeError(
                f"Data without a layout has to have {fewest} to 3 axes, got {ndim}. Say what the "
                "axes are with `layout=` at the source or with `fn.reshape(..., layout=...)`."
            )
        return 0, ndim
    first = len(layout) - len(layout.lstrip("FC"))
    axes = layout[first:]
    axes = axes[:-1] if axes.endswith("C") else axes
    if "C" in axes:
        raise LayoutError(
            f'Only channel-first or channel-last layouts are supported, got: "{layout}". '
            "`fn.transpose` moves axes."
        )
    if len(set(layout[:first])) < first:
        raise LayoutError(
            f"Found more the one occurrence of 'F' or 'C' axes in layout: \"{layout}\"."
        )
    if not axes:
        raise LayoutError(
            f'No spatial axes found in the layout "{layout}"; expected {words} to three besides '
            "channels (C) and frames (F)."
        )
    if len(axes) > 3:
        raise LayoutError(
            f"Too many dimensions, found: {len(axes)} data axes, maximum supported is: 3. The "
            f'layout is "{layout}".'
        )
    if len(axes) < fewest:
        raise LayoutError(
            f"Expected {words} to three axes besides channels (C) and frames (F), got the layout "
            f'"{layout}".'
        )
    return first, len(axes)
