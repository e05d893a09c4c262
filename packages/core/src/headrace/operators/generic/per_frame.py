"""`per_frame`."""

from __future__ import annotations

import numpy as np

from headrace.errors import LayoutError, ShapeError
from headrace.operators.support.argument_types import BoolArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import LazyBatch


@operator(
    "per_frame",
    inputs=Input("data", "Data whose outermost axis counts frames."),
    args=(
        Arg(
            "replace",
            BoolArg,
            False,
            "Rename the outermost axis of data that has another layout; without it, such data is "
            "an error.",
        ),
    ),
    output_docs=("The same data, with a layout that starts with ``F``.",),
)
class PerFrame(SampleOperator):
    """Marks the outermost axis as frames, so that an argument may differ from frame to frame.

    Data without a layout gets ``"F"`` followed by ``"*"`` for each other axis.

    Examples
    --------
    >>> angles = fn.per_frame(fn.constant(fdata=[0, 30, 60], shape=[3]))
    >>> turned = fn.rotate(videos, angle=angles)
    """

    def infer(self, data: Spec) -> Spec:
        if data.ndim == 0:
            raise ShapeError("Cannot mark zero-dimensional input as a sequence.")
        layout = data.layout
        if not layout:
            # Of data of unknown rank there is no layout to write down.
            layout = "F" + "*" * (data.ndim - 1) if data.ndim else ""
        elif layout[0] != "F":
            if not self.args.replace:
                raise LayoutError(
                    "Per-frame argument input must be a sequence. The input layout should start "
                    f"with 'F', got \"{layout}\"; `replace=True` renames its first axis to make it "
                    f'"F{layout[1:]}".'
                )
            layout = "F" + layout[1:]
        return data._replace(layout=layout)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        return data

    takes = (LazyBatch,)
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        return data
