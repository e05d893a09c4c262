"""`erase`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import ArgumentValueError, LayoutError, MisusedArgumentError, ShapeError
from headrace.kernels.cpu import erase as _cpu
from headrace.kernels.cpu.fill import fill_of_type
from headrace.kernels.gpu import erase as _gpu
from headrace.kernels.plan import erased_regions as _plan
from headrace.operators.support.argument_types import BoolArg, FloatListArg, IntListArg, StringArg
from headrace.operators.support.arguments import rows_of
from headrace.operators.support.axes import checked_axes, named_axes
from headrace.operators.support.operator import BatchContext, ChunkContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from headrace.tensors.gpu.batch import DeviceBatch


def _vector(name: str, doc: str) -> Arg:
    return Arg(
        name,
        FloatListArg,
        None,
        doc,
        per_sample=True,
        shape_of="(regions * axes,) or (regions, axes)",
    )


@operator(
    "erase",
    inputs=Input(
        "data",
        "Data of any rank and layout.",
        dtypes=tuple(DALIDataType(t) for t in range(DALIDataType.UINT8, DALIDataType.FLOAT + 1)),
    ),
    args=(
        _vector(
            "anchor",
            "Where regions begin: a number for each axis, region after region. 0 when not given.",
        ),
        _vector("shape", "How large regions are, likewise. When not given, nothing is erased."),
        Arg(
            "axes",
            IntListArg,
            None,
            "Axes that numbers of `anchor` and `shape` are for; negative ones count from the last. "
            "When neither these nor `axis_names` are given, all axes of the layout but channels.",
        ),
        Arg(
            "axis_names",
            StringArg,
            None,
            "The same by letters of the layout, such as ``HW``; goes before `axes`.",
        ),
        Arg(
            "centered_anchor", BoolArg, False, "Whether anchors are the middles of regions instead."
        ),
        Arg(
            "fill_value",
            FloatListArg,
            (0.0,),
            "Value of regions: a number, or one for each channel (C). Fractions are dropped in "
            "integers, and what does not fit keeps its lowest bits.",
            per_sample=True,
            shape_of="() or (C,)",
        ),
        Arg("normalized", BoolArg, False, "Both of `normalized_anchor` and `normalized_shape`."),
        Arg("normalized_anchor", BoolArg, None, "Whether anchors are shares of extents."),
        Arg("normalized_shape", BoolArg, None, "Whether shapes are shares of extents."),
    ),
    output_docs=("The data with its regions erased, in the layout of the input.",),
)
class Erase(SampleOperator):
    """Fills regions of each sample with a value.

    Parts of regions outside of the data are left out. Begins and ends of regions are rounded down.

    Examples
    --------
    Two regions of 16 by 16 pixels each, at drawn places:

    >>> anchors = fn.random.uniform(range=(0, 1), shape=4)
    >>> erased = fn.erase(images, anchor=anchors, shape=[16, 16, 16, 16], normalized_anchor=True)
    """

    def infer(self, data: Spec) -> Spec:
        args = self.args
        given = [n for n in ("anchor", "shape") if getattr(args, f"normalized_{n}") is not None]
        if args.normalized and given:
            raise MisusedArgumentError(
                f"`normalized` and `normalized_{given[0]}` are both given; give one of them."
            )
        if self.given("anchor") and not self.given("shape"):
            raise MisusedArgumentError("`anchor` is given, but no `shape`: give both.")
        self._relative = [
            args.normalized or bool(getattr(args, f"normalized_{n}")) for n in ("anchor", "shape")
        ]
        self._layout = data.layout
        self._dtype = np.dtype(to_numpy_type(data.dtype))
        if data.ndim is not None and self.given("shape"):
            self._axes(data.ndim)
        return data

    def _axes(self, ndim: int) -> list[int]:
        """Axes of regions, in the order of the arguments."""
        args = self.args
        if args.axis_names is not None:
            axes = checked_axes(named_axes(args.axis_names, self._layout), ndim)
        elif args.axes is not None:
            axes = checked_axes(args.axes, ndim)
        elif self._layout:
            axes = tuple(k for k, letter in enumerate(self._layout) if letter != "C")
        else:
            raise LayoutError(
                "Nothing says which axes `anchor` and `shape` are for: the data has no layout. "
                "Give `axes`, or a layout with `fn.reshape(..., layout=...)`."
            )
        if not axes:
            raise ArgumentValueError("There are no axes to erase along; give at least one.")
        return list(axes)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes
        sizes = c.array("shape", np.float32)
        if sizes is None:
            return Planned(shapes, ([None] * len(shapes),) * 3)
        sizes = sizes.reshape(len(sizes), -1)
        anchors = c.array("anchor", np.float32)
        anchors = np.zeros_like(sizes) if anchors is None else anchors.reshape(len(anchors), -1)
        axes = self._axes(shapes.shape[1])
        if anchors.shape[1] != sizes.shape[1] or sizes.shape[1] % len(axes):
            raise ShapeError(
                f"`anchor` has {anchors.shape[1]} numbers and `shape` {sizes.shape[1]}; give as "
                f"many, {len(axes)} for each region."
            )
        count = max(len(shapes), len(sizes), len(anchors))
        begins, ends = np.empty((2, count, sizes.shape[1] // len(axes), len(axes)), np.int64)
        ways = *self._relative, self.args.centered_anchor
        _plan.erased_regions(anchors, sizes, shapes, np.array(axes), ways, begins, ends)
        return Planned(shapes, (list(begins), list(ends), self._fills(c, shapes, count)))

    def _fills(self, c: PlanContext, shapes: np.ndarray, count: int) -> list[np.ndarray]:
        """Values of each sample, one or one a channel, in the type of the data."""
        given = np.ascontiguousarray(rows_of(c, "fill_value", np.float32))
        if given.shape[1] == 0:
            given = np.zeros((len(given), 1), np.float32)
        if given.shape[1] > 1:
            channel = self._layout.find("C")
            if channel < 0:
                raise LayoutError(
                    f"`fill_value` has {given.shape[1]} numbers, but the data no channels (C) in "
                    f'its layout "{self._layout}"; give one number.'
                )
            if (shapes[:, channel] != given.shape[1]).any():
                raise ShapeError(
                    f"`fill_value` has {given.shape[1]} numbers, but the data "
                    f"{shapes[:, channel].max()} channels; give one, or one for each."
                )
        return list(repeated(fill_of_type(given, self._dtype), count))

    chunked = True

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows:
        begins, ends, fills = c.table
        if begins[0] is None:
            return data
        out = c.out()
        word = f"u{self._dtype.itemsize}"
        shapes = out.shapes
        _cpu.erase(
            *(data.addresses, out.addresses, out.flat.view(word), out.begins, shapes),  # type: ignore[union-attr]
            *(np.array(begins), np.array(ends), np.array(self._axes(shapes.shape[1]))),
            *(np.array(fills).view(word), self._layout.find("C")),
        )
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        begins, ends, fills = plan_batch(self, c, data).table
        if begins[0] is None:
            return data
        out = c.empty(data.extents, self._dtype)
        _gpu.erase(
            c.queue, data, out, begins, ends, fills, self._axes(data.ndim), self._layout.find("C")
        )
        return out
