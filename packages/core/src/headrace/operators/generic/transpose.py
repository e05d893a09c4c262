"""`transpose`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, LayoutError
from headrace.kernels.cpu.transpose import transpose_into
from headrace.operators.support.argument_types import BoolArg, IntListArg, LayoutArg
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch


@operator(
    "transpose",
    inputs=Input("data", "Data of any rank and layout."),
    args=(
        Arg(
            "perm",
            IntListArg,
            None,
            "For each axis of the output, the axis of the input it comes from. All axes in reverse "
            "order where not given.",
        ),
        Arg(
            "transpose_layout",
            BoolArg,
            True,
            "Whether the letters of the layout move with their axes; otherwise the layout stays.",
        ),
        Arg("output_layout", LayoutArg, None, "Layout of the output, whatever moves where."),
    ),
    output_docs=("The data with its axes in the new order.",),
)
class Transpose(SampleOperator):
    """Reorders the axes of data.

    Examples
    --------
    >>> planes = fn.transpose(images, perm=[2, 0, 1])
    """

    def check_constants(self) -> None:
        perm = self.args.perm
        if perm is not None and sorted(perm) != list(range(len(perm))):
            raise ArgumentValueError(
                f"`perm` must have each axis from 0 to {max(len(perm) - 1, 0)} once, got "
                f"{list(perm)}."
            )

    def infer(self, data: Spec) -> Spec:
        perm, ndim = self.args.perm, data.ndim
        if perm is not None:
            if ndim is None:
                ndim = len(perm)
            elif len(perm) != ndim:
                raise ArgumentValueError(
                    f"`perm` has {len(perm)} axes, but the data has {ndim} dimensions."
                )
        self._perm = tuple(perm) if perm is not None else None
        layout = self._layout(data, ndim)
        return Spec(data.dtype, ndim, layout)

    def _layout(self, data: Spec, ndim: int | None) -> str:
        wanted = self.args.output_layout
        if wanted is not None:
            if not wanted or (ndim is not None and len(wanted) != ndim):
                raise LayoutError(
                    f"`output_layout` must have a letter for each of the {ndim} dimensions, got "
                    f'"{wanted}".'
                )
            return str(wanted)
        if not data.layout or not self.args.transpose_layout:
            return data.layout
        if self._perm is None:
            return data.layout[::-1]
        return "".join(data.layout[axis] for axis in self._perm)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes
        return Planned(shapes[:, self._permutation(shapes.shape[1])])

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        perm = self._permutation(data.ndim)
        shape = data.shape
        # Order among axes longer than 1 is all that matters to memory.
        real = [axis for axis in perm if shape[axis] != 1]
        if real == sorted(real):
            return data.transpose(perm)
        out = c.out
        transpose_into(data, perm, out)
        return out

    compiled_views = True

    def compiled(self, c: CompiledStepContext, data: SampleColumns) -> SampleColumns | None:
        from headrace.kernels.cpu import view_steps

        if data.ndim < 2:
            return None
        out = c.view(data)
        words = *data.view_words, *out.words[:2], out.strides, *self._permutation(data.ndim)
        c.steps.add(view_steps.plan_transposed, view_steps.carry_transposed, words)
        return out

    takes = (StridedBatch,)
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: DeviceBatch | StridedBatch) -> LazyBatch:
        return StridedBatch.of(data).permuted(self._permutation(data.ndim))

    def _permutation(self, ndim: int) -> tuple[int, ...]:
        if self._perm is None:
            return tuple(range(ndim - 1, -1, -1))
        if len(self._perm) != ndim:
            raise ArgumentValueError(
                f"`perm` has {len(self._perm)} axes, but the data has {ndim} dimensions."
            )
        return self._perm
