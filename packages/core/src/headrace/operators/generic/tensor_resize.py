"""`tensor_resize`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError, UsageError
from headrace.kernels.cpu.resample_taps import Filter
from headrace.kernels.gpu import resample_axes as _resample_axes
from headrace.kernels.plan import resize_axes as _plan
from headrace.operators.support.argument_types import FloatListArg, IntListArg, LayoutArg, StringArg
from headrace.operators.support.axes import checked_axes, named_axes
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.resize.request import MODES, RESIZE_ARGS, by_axis, planned_axes
from headrace.operators.support.resize.resampling import (
    RESAMPLING_ARGS,
    RESAMPLING_DTYPES,
    Resampling,
)
from headrace.operators.support.resize.resized_batch import ResizedBatch
from headrace.operators.support.resize.sample import SampleResampler
from headrace.operators.support.rules import AXES_OR_NAMES, exactly_one, together
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import as_shapes

if TYPE_CHECKING:
    from headrace.tensors.gpu.batch import DeviceBatch

_ROUNDING = ("round", "truncate", "ceil")
_MOST_AXES = 3
_SHARED = ("mode", "max_size", "subpixel_scale", "roi_start", "roi_end", "roi_relative")


@operator(
    "tensor_resize",
    inputs=Input("data", "Tensors of any rank and layout.", dtypes=RESAMPLING_DTYPES),
    args=(
        Arg(
            "sizes",
            FloatListArg,
            None,
            "Extents of the output, one for each axis that is resized, or one for all. 0: it "
            "follows from the others, by `mode`; a negative one flips. Excludes `scales`.",
            per_sample=True,
            shape_of="(axes,)",
        ),
        Arg(
            "scales",
            FloatListArg,
            None,
            "Extents of the output as multiples of those of the input, like `sizes`.",
            per_sample=True,
            shape_of="(axes,)",
        ),
        Arg(
            "axes",
            IntListArg,
            None,
            "The axes that are resized, counted from the end if negative; all when not given.",
        ),
        Arg("axis_names", LayoutArg, None, "The same as letters of the layout."),
        Arg(
            "alignment",
            FloatListArg,
            (0.5,),
            "What of the region keeps its place where an extent has to be rounded to a whole "
            "number (see `subpixel_scale`): 0 its start, 0.5 its centre, 1 its end.",
            per_sample=True,
            shape_of="(axes,)",
        ),
        Arg(
            "size_rounding",
            StringArg,
            "round",
            "How extents are rounded; they are at least 1.",
            choices=_ROUNDING,
        ),
        *(arg for arg in RESIZE_ARGS if arg.name in _SHARED),
        *RESAMPLING_ARGS,
    ),
    rules=(exactly_one("sizes", "scales"), AXES_OR_NAMES, together("roi_start", "roi_end")),
    output_docs=("The resized tensors, in the layout of the input.",),
    old_names=("experimental.tensor_resize",),
)
class TensorResize(SampleOperator):
    """Resizes tensors along any axes, at most 3 side by side; axes that keep their extent are none.

    Filters, regions and `mode` are those of `resize`.

    Examples
    --------
    >>> spectrograms = fn.tensor_resize(spectrograms, sizes=(80, 400))
    >>> slower = fn.tensor_resize(samples, scales=1.5, axes=0)
    """

    def infer(self, data: Spec) -> Spec:
        args = self.args
        mode = args.mode or MODES[0]
        self._mode = MODES.index(mode)
        if self._mode > 1 and self.given("scales"):
            raise UsageError(f'`mode`="{mode}" needs `sizes`; `scales` say all by themselves.')
        if data.ndim == 0:
            raise ShapeError("A scalar has no axis that could be resized.")
        self._rounding = _ROUNDING.index(args.size_rounding)
        self._asked = args.axes
        if args.axis_names is not None:
            self._asked = named_axes(args.axis_names, data.layout)
        self._resampling = Resampling(self, data.dtype)
        self._converts = data.dtype != self._resampling.dtype
        self._resamplers = {k: SampleResampler(k) for k in ("FHWC", "FDHWC")}
        return data._replace(dtype=self._resampling.dtype)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes
        rank = shapes.shape[1]
        asked = range(rank) if self._asked is None else checked_axes(self._asked, rank)
        chosen = list(asked)
        table = np.zeros((len(shapes), rank), _plan.AXIS)
        for name in ("in_size", "out_size", "length"):
            table[name] = shapes
        table["end"] = shapes
        table["step"] = 1
        if chosen:
            table[:, chosen] = self._axes(c, np.ascontiguousarray(shapes[:, chosen].T)).T
        else:
            by_axis(c, "sizes" if self.given("sizes") else "scales", 0)  # there may be too many
        # A Gaussian of scale 1 would blur what lies beside the axes that change.
        table["filter"][~_changes(table)] = Filter.NEAREST
        return Planned(table["length"].copy(), (table,))

    def _axes(self, c: PlanContext, extents: np.ndarray) -> np.ndarray:
        """Resampling of the axes that were asked for: `AXIS` ``(axes, samples)``."""
        rank = len(extents)
        sizes = by_axis(c, "sizes" if self.given("sizes") else "scales", rank)
        if self.given("scales"):
            sizes = sizes.astype(np.float32).astype(np.float64) * extents
        regions = (np.empty((0, 0)), np.empty((0, 0)))
        if self.given("roi_start"):
            factor = extents if self.args.roi_relative else np.ones_like(extents)
            regions = by_axis(c, "roi_start", rank) * factor, by_axis(c, "roi_end", rank) * factor
        limits = np.zeros(rank)
        if self.args.max_size is not None:
            limits[:] = by_axis(c, "max_size", rank)[:, 0]
        return planned_axes(
            extents,
            sizes,
            self._resampling.filters(c),
            regions,
            self._mode,
            limits,
            subpixel=self.args.subpixel_scale,
            alignment=by_axis(c, "alignment", rank),
            rounding=self._rounding,
        )

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        (rows,) = c.row
        first, end = _span([r[0] != r[1] or r[2] != 0 or r[3] != r[0] for r in rows])
        if first == end and not self._converts:
            return data
        out = c.out
        if first == end:
            out[...] = data
            return out
        axes = _with_rows(rows[first:end], math.prod(data.shape[:first]))
        resampler = self._resamplers["FHWC" if len(axes) == 2 else "FDHWC"]
        resampling = self._resampling
        resampler.run(
            c,
            np.ascontiguousarray(data).reshape(_folded(data.shape, first, end)),
            axes,
            resampling.antialias,
            out.reshape(_folded(out.shape, first, end)),
            resampling.rounds_to,
        )
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        planned = plan_batch(self, c, data)
        (table,) = planned.table
        first, end = _span(_changes(table).any(axis=0).tolist())
        if first == end:
            if not self._converts:
                return data
            first, end = 0, 1
        axes = [np.ascontiguousarray(table[:, k]) for k in range(first, end)]
        shapes = as_shapes(data.shapes, len(data))
        if len(axes) == 1:
            outer = np.ascontiguousarray(np.broadcast_to(axes[0], len(shapes))).copy()
            for name in ("in_size", "out_size", "length", "end"):
                outer[name] = shapes[:, :first].prod(axis=1)
            outer["start"], outer["begin"], outer["filter"] = 0, 0, Filter.NEAREST
            axes = [outer, np.broadcast_to(axes[0], len(shapes))]
        rows = np.ascontiguousarray(np.stack(axes))
        antialias = self._resampling.antialias
        if rows.shape[1] == 1:
            sampling = _resample_axes.AxesSampling.in_common(rows, antialias, c.size)
        else:
            sampling = _resample_axes.AxesSampling(rows, antialias)
        resampled = ResizedBatch(
            data.reshaped(_folded_batch(shapes, first, end)),
            sampling,
            1,
            self._resampling.numpy_dtype,
            self._resampling.rounds_to,
        )
        return resampled.materialise(c.queue).reshaped(as_shapes(planned.shapes[0], len(data)))


def _changes(table: np.ndarray) -> Any:
    """True where a row of `AXIS` gives something else than the whole axis as it is."""
    found = (table["in_size"] != table["out_size"]) | (table["start"] != 0)
    return found | (table["end"] != table["in_size"])


def _span(changes: Sequence[bool]) -> tuple[int, int]:
    """The axes from the first that changes to the last."""
    changed = [k for k, change in enumerate(changes) if change]
    if not changed:
        return 0, 0
    first, end = changed[0], changed[-1] + 1
    if end - first > _MOST_AXES:
        raise ArgumentValueError(
            f"Axes {first} to {end - 1} would be resized; at most {_MOST_AXES} side by side can "
            "be. Resize some of them in a second step."
        )
    return first, end


def _with_rows(axes: Sequence[Any], outer: int) -> list[Any]:
    """`axes`, with one more for all axes in front where there is a single one."""
    if len(axes) > 1:
        return list(axes)
    return [(outer, outer, 0.0, float(outer), Filter.NEAREST, 0, outer, 1), *axes]


def _folded(shape: Sequence[int], first: int, end: int) -> tuple[int, ...]:
    """`shape` with the axes in front of `first`, and those from `end` on, as one each."""
    outer, inner = math.prod(shape[:first]), math.prod(shape[end:])
    if end - first == 1:
        return 1, outer, shape[first], inner
    return outer, *shape[first:end], inner


def _folded_batch(shapes: np.ndarray, first: int, end: int) -> np.ndarray:
    """`_folded` of each row of `shapes`."""
    outer = shapes[:, :first].prod(axis=1)
    inner = shapes[:, end:].prod(axis=1)
    middle = [shapes[:, k] for k in range(first, end)]
    if len(middle) == 1:
        return np.stack([np.ones_like(outer), outer, *middle, inner], axis=1)
    return np.stack([outer, *middle, inner], axis=1)
